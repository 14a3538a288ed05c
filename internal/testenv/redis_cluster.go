package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/localstack"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384

	// migrateKeys is how many keys one MIGRATE moves; its timeout is in milliseconds.
	migrateKeys, migrateMillis = 100, 5000
)

// RedisCluster is a Redis Cluster of one test's own: three masters with a third of
// the slots each, and a replica of each master. It serves the slots it has when a
// master is away (cluster-require-full-coverage no), as the limiter wants it.
type RedisCluster struct {
	URL      string
	Password string
	Masters  []*RedisServer // as of the start
	Replicas []*RedisServer // Replicas[i] is Masters[i]'s

	g       *group
	clients map[*RedisServer]*redis.Client
	ids     map[*RedisServer]string
}

// RedisClusterPrivate starts a cluster for this test alone, from local binaries.
func RedisClusterPrivate(t testing.TB) *RedisCluster {
	t.Helper()
	g := newGroup(t)
	nodes := g.start(2*clusterMasters, localstack.RedisConfig{Mode: localstack.RedisClusterNode, Extra: []string{
		"cluster-node-timeout " + strconv.FormatInt(failureTimeout.Milliseconds(), 10),
		"cluster-require-full-coverage no",
		"cluster-replica-validity-factor 0", // a replica may always take over: nothing here is worth a vote on its age
		"cluster-allow-replica-migration no",
		"repl-diskless-sync-delay 0", "repl-ping-replica-period 1",
	}})
	c := &RedisCluster{
		Password: g.password, Masters: nodes[:clusterMasters], Replicas: nodes[clusterMasters:],
		g: g, clients: map[*RedisServer]*redis.Client{}, ids: map[*RedisServer]string{},
	}
	for _, n := range nodes {
		c.clients[n] = n.client()
		c.ids[n] = fmt.Sprint(g.do(c.clients[n], "CLUSTER", "MYID"))
	}
	c.URL = (&url.URL{Scheme: "redis+cluster", User: url.UserPassword("", g.password), Host: addresses(nodes)}).String()
	c.join(nodes)
	return c
}

// join makes the nodes a cluster.
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
		c.g.await("the replica knows its master", func(ctx context.Context) error {
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

// complete says whether n sees every slot served by a master with a replica.
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

// Calm keeps replicas from taking over where a busy machine makes a master slow.
func (c *RedisCluster) Calm() {
	c.g.t.Helper()
	for _, client := range c.clients {
		c.g.do(client, "CONFIG", "SET", "cluster-node-timeout", calmTimeout.Milliseconds())
	}
}

// Client is a plain client of one node.
func (c *RedisCluster) Client(n *RedisServer) *redis.Client { return c.clients[n] }

// Slot is the slot of a key.
func (c *RedisCluster) Slot(key string) int {
	c.g.t.Helper()
	slot, ok := c.g.do(c.clients[c.Masters[0]], "CLUSTER", "KEYSLOT", key).(int64)
	if !ok {
		c.g.t.Fatalf("testenv: the slot of %q is no number", key)
	}
	return int(slot)
}

// Owner is the node that serves a key's slot, as one of the first masters said at
// the start: index i of Masters.
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

// AwaitPromotion waits until a replica has become a master that others agree on.
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

// BeginMove makes a slot importing at to and migrating at from: keys that exist are
// still served by from, others by to (ASK).
func (c *RedisCluster) BeginMove(slot int, from, to *RedisServer) {
	c.g.t.Helper()
	c.g.do(c.clients[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.g.do(c.clients[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
}

// MoveKeys moves the keys of a slot that has begun to move; it returns their number.
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
		c.g.do(c.clients[from], append(command, keys...)...) // NOKEY where they have expired meanwhile
		moved += len(keys)
	}
}

// EndMove gives a slot whose keys have moved to its new owner, and waits until all
// masters have heard of it: a claim nobody has heard of loses against an older one.
func (c *RedisCluster) EndMove(slot int, to *RedisServer) {
	c.g.t.Helper()
	// The new owner first: were the old one first, both would send clients to the other for a moment.
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

// epoch is the configuration epoch of a node as another one knows it.
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
	return "", errors.New("the node is not known")
}

// Move moves a slot with its keys.
func (c *RedisCluster) Move(slot int, from, to *RedisServer) {
	c.g.t.Helper()
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, to)
}
