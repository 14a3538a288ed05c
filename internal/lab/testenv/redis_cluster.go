package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384

	// migrateKeys is the number of keys in one MIGRATE command. migrateMillis is the command's timeout in ms.
	migrateKeys, migrateMillis = 100, 5000
)

// RedisCluster is a Redis Cluster for one test: three masters with a third of the slots each, and a replica of each
// master. While a master is down, the cluster serves the slots of the other masters (cluster-require-full-coverage
// no), as the limiter requires.
type RedisCluster struct {
	URL      string
	Password string
	Masters  []*RedisServer // the masters at the start
	Replicas []*RedisServer // Replicas[i] replicates Masters[i]

	g       *group
	clients map[*RedisServer]*redis.Client
	ids     map[*RedisServer]string
}

// RedisClusterPrivate starts a cluster for this test from local binaries. Before the test calls LetFail, no replica
// replaces a slow master, because a takeover loses the last writes.
func RedisClusterPrivate(t testing.TB) *RedisCluster {
	t.Helper()
	g := newGroup(t)
	c := &RedisCluster{Password: g.password, g: g, clients: map[*RedisServer]*redis.Client{}, ids: map[*RedisServer]string{}}
	nodes := c.startNodes(2 * clusterMasters)
	c.Masters, c.Replicas = slices.Clone(nodes[:clusterMasters]), nodes[clusterMasters:]
	c.URL = (&url.URL{Scheme: "redis+cluster", User: url.UserPassword("", g.password), Host: addresses(nodes)}).String()
	c.join(nodes)
	c.failAfter(calmTimeout)
	return c
}

// startNodes starts nodes that do not belong to a cluster yet.
func (c *RedisCluster) startNodes(n int) []*RedisServer {
	c.g.t.Helper()
	nodes := c.g.start(n, localstack.RedisConfig{Mode: localstack.RedisClusterNode, Extra: []string{
		"cluster-node-timeout " + strconv.FormatInt(failureTimeout.Milliseconds(), 10),
		"cluster-require-full-coverage no",
		"cluster-replica-validity-factor 0", // a replica may take over even if its data is old
		"cluster-allow-replica-migration no",
		"repl-diskless-sync-delay 0", "repl-ping-replica-period 1",
	}})
	for _, n := range nodes {
		c.clients[n] = n.client()
		c.ids[n] = fmt.Sprint(c.g.do(c.clients[n], "CLUSTER", "MYID"))
	}
	return nodes
}

// join joins the nodes to a cluster.
func (c *RedisCluster) join(nodes []*RedisServer) {
	c.g.t.Helper()
	for i, n := range nodes {
		c.g.do(c.clients[n], "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i, m := range c.Masters {
		c.g.do(c.clients[m], "CLUSTER", "ADDSLOTSRANGE", clusterSlots*i/clusterMasters, clusterSlots*(i+1)/clusterMasters-1)
	}
	for _, n := range nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr)
		c.g.do(c.clients[nodes[0]], "CLUSTER", "MEET", host, port, n.redis.BusPort())
	}
	for i, r := range c.Replicas {
		c.g.await("the replica accepts its master", func(ctx context.Context) error {
			return c.clients[r].ClusterReplicate(ctx, c.ids[c.Masters[i]]).Err()
		})
	}
	c.g.await("all nodes agree on the cluster", func(ctx context.Context) error {
		for _, n := range nodes {
			if err := c.complete(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete returns an error unless n reports that every slot is served by a master with a replica.
func (c *RedisCluster) complete(ctx context.Context, n *RedisServer) error {
	info, err := c.clients[n].ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return errors.New("the state is not ok")
	}
	shards, err := c.clients[n].ClusterShards(ctx).Result()
	if err != nil {
		return err
	}
	served := int64(0)
	for _, s := range shards {
		for _, r := range s.Slots {
			served += r.End - r.Start + 1
		}
		if len(s.Slots) > 0 && len(s.Nodes) != 2 {
			return fmt.Errorf("a shard has %d nodes", len(s.Nodes))
		}
	}
	if served != clusterSlots {
		return fmt.Errorf("%d slots are served", served)
	}
	return nil
}

// LetFail sets the cluster so that a replica takes over a few seconds after its master has stopped answering.
func (c *RedisCluster) LetFail() {
	c.g.t.Helper()
	c.failAfter(failureTimeout)
}

// failAfter sets the time without answers after which a node counts as failed.
func (c *RedisCluster) failAfter(silent time.Duration) {
	c.g.t.Helper()
	for _, client := range c.clients {
		c.g.do(client, "CONFIG", "SET", "cluster-node-timeout", silent.Milliseconds())
	}
}

// Client returns a client that is connected to one node and follows no redirections.
func (c *RedisCluster) Client(n *RedisServer) *redis.Client { return c.clients[n] }

// Slot returns the slot of a key.
func (c *RedisCluster) Slot(key string) int {
	c.g.t.Helper()
	slot, ok := c.g.do(c.clients[c.Masters[0]], "CLUSTER", "KEYSLOT", key).(int64)
	require.True(c.g.t, ok, "testenv: the slot of %q is not a number", key)
	return int(slot)
}

// Owner returns the index in Masters of the node that served a key's slot at the start.
func (c *RedisCluster) Owner(key string) int {
	c.g.t.Helper()
	slot := c.Slot(key)
	for i := range c.Masters {
		if slot < clusterSlots*(i+1)/clusterMasters {
			return i
		}
	}
	return -1
}

// AwaitPromotion waits until observer sees the replica as a master with slots.
func (c *RedisCluster) AwaitPromotion(replica *RedisServer, observer *RedisServer) {
	c.g.t.Helper()
	c.g.await("the replica takes over", func(ctx context.Context) error {
		shards, err := c.clients[observer].ClusterShards(ctx).Result()
		if err != nil {
			return err
		}
		for _, s := range shards {
			for _, n := range s.Nodes {
				if n.ID == c.ids[replica] && n.Role == "master" && len(s.Slots) > 0 {
					return nil
				}
			}
		}
		return errors.New("it serves no slot")
	})
}

// BeginMove begins the move of a slot. The old node still serves the slot's existing keys, and the new node serves
// the new keys (ASK).
func (c *RedisCluster) BeginMove(slot int, from, to *RedisServer) {
	c.g.t.Helper()
	c.g.do(c.clients[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.g.do(c.clients[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
}

// MoveKeys moves the keys of a slot after BeginMove and returns their number.
func (c *RedisCluster) MoveKeys(slot int, from, to *RedisServer) int {
	c.g.t.Helper()
	host, port, _ := net.SplitHostPort(to.Addr)
	moved := 0
	for {
		keys, _ := c.g.do(c.clients[from], "CLUSTER", "GETKEYSINSLOT", slot, migrateKeys).([]any)
		if len(keys) == 0 {
			return moved
		}
		command := []any{"MIGRATE", host, port, "", 0, migrateMillis, "AUTH", c.Password, "KEYS"}
		c.g.do(c.clients[from], append(command, keys...)...) // the reply is NOKEY if all keys have expired
		moved += len(keys)
	}
}

// EndMove assigns a slot to its new owner after MoveKeys, and waits until all masters know the new assignment.
// Without the wait, an older assignment could replace it.
func (c *RedisCluster) EndMove(slot int, to *RedisServer) {
	c.g.t.Helper()
	// The new owner must get the command first. Otherwise the two nodes would redirect clients to each other for a
	// moment.
	c.g.do(c.clients[to], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	for _, m := range c.Masters {
		if m != to {
			c.g.do(c.clients[m], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
		}
	}
	c.g.await("the masters agree on the move", func(ctx context.Context) error {
		claim, err := c.epoch(ctx, to, to)
		for _, m := range c.Masters {
			heard, e := c.epoch(ctx, m, to)
			if err = errors.Join(err, e); err == nil && heard != claim {
				err = fmt.Errorf("epoch %s of %s", heard, claim)
			}
		}
		return err
	})
}

// epoch returns the configuration epoch of the node `of`, as the node `observer` reports it.
func (c *RedisCluster) epoch(ctx context.Context, observer, of *RedisServer) (string, error) {
	const epochField = 6
	nodes, err := c.clients[observer].ClusterNodes(ctx).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(nodes) {
		if fields := strings.Fields(line); len(fields) > epochField && fields[0] == c.ids[of] {
			return fields[epochField], nil
		}
	}
	return "", errors.New("the node is unknown")
}

// Move moves a slot with its keys from one node to another.
func (c *RedisCluster) Move(slot int, from, to *RedisServer) {
	c.g.t.Helper()
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, to)
}
