package citus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// reachTimeout bounds the time that Reach waits for a node. No request waits for Reach: meanwhile statements go
// through the coordinator.
const reachTimeout = time.Second

// Address is the address of a node in pg_dist_node.
type Address struct {
	Host string
	Port uint16
}

func (a Address) String() string { return fmt.Sprintf("%s:%d", a.Host, a.Port) }

// Nodes has a pool of connections to each node that has shards and its own copy of the shard map. Such a node plans
// and executes the statements about its tenants without the coordinator. The zero value and nil have no pools.
type Nodes struct {
	groups *Groups
	open   func(Address) (*pgxpool.Pool, error)
	log    *slog.Logger

	mu    sync.RWMutex
	nodes map[Address]*node
}

type node struct {
	pool    *pgxpool.Pool
	reached bool // the node answered the latest check or statement
}

// NewNodes returns Nodes for groups. open creates a pool for an address. It must not connect.
func NewNodes(groups *Groups, log *slog.Logger, open func(Address) (*pgxpool.Pool, error)) *Nodes {
	return &Nodes{groups: groups, open: open, log: log, nodes: map[Address]*node{}}
}

// Of returns the pool of the node that holds the tenant. It returns nil if the coordinator must be used. The tenant is
// then on the coordinator, or the latest check or statement did not reach the node.
func (n *Nodes) Of(tenant string) *pgxpool.Pool {
	if n == nil || n.groups == nil {
		return nil
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if of := n.nodes[n.groups.address(tenant)]; of != nil && of.reached {
		return of.pool
	}
	return nil
}

// Lost records that the node of this pool cannot be used. Until Reach reaches the node again, its tenants are served
// through the coordinator.
func (n *Nodes) Lost(pool *pgxpool.Pool, cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for at, of := range n.nodes {
		if of.pool == pool && of.reached {
			of.reached = false
			n.log.Warn("a node cannot be reached; its tenants are served through the coordinator", "node", at.String(), "error", cause)
		}
	}
}

// Reach checks whether each node that holds shards answers. It checks all nodes at the same time.
func (n *Nodes) Reach(ctx context.Context) {
	if n == nil || n.groups == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, at := range n.groups.addresses() {
		asked.Go(func() { n.reach(ctx, at) })
	}
	asked.Wait()
}

func (n *Nodes) reach(ctx context.Context, at Address) {
	of, err := n.node(at)
	if err == nil {
		err = of.pool.Ping(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil && !of.reached:
		of.reached = true
		n.log.Info("statements of its tenants go to the node", "node", at.String())
	case err != nil && (of == nil || of.reached):
		n.log.Warn("a node cannot be reached; its tenants are served through the coordinator", "node", at.String(), "error", err)
		if of != nil {
			of.reached = false
		}
	}
}

// node returns the node at an address. If the node has no pool yet, it creates the pool.
func (n *Nodes) node(at Address) (*node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if of := n.nodes[at]; of != nil {
		return of, nil
	}
	pool, err := n.open(at)
	if err != nil {
		return nil, err
	}
	n.nodes[at] = &node{pool: pool}
	return n.nodes[at], nil
}

// Reached returns the number of nodes to which statements are sent.
func (n *Nodes) Reached() (count int) {
	if n == nil {
		return 0
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, of := range n.nodes {
		if of.reached {
			count++
		}
	}
	return count
}

// Close closes the pools.
func (n *Nodes) Close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, of := range n.nodes {
		of.reached = false
		of.pool.Close()
	}
}
