package testenv

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// toolTimeout is the time limit of one run of redis-cli. A rebalance moves thousands of slots.
const toolTimeout = 4 * time.Minute

// Join adds a master without slots, as an operator would, and waits until every node has seen it.
func (c *RedisCluster) Join() *RedisServer {
	c.g.t.Helper()
	n := c.startNodes(1)[0]
	c.tool("add-node", n.Addr, c.Masters[0].Addr)
	c.awaitKnown(n)
	c.Masters = append(c.Masters, n)
	return n
}

// Rebalance moves slots to a master that joined. weight is the master's share of the slots, compared with the weight
// 1 of every other master.
func (c *RedisCluster) Rebalance(n *RedisServer, weight string) {
	c.g.t.Helper()
	c.tool("rebalance", c.Masters[0].Addr, "--cluster-use-empty-masters", "--cluster-weight", c.ids[n]+"="+weight)
}

// Leave moves all slots of a master that joined to the other masters, and removes it from the cluster.
func (c *RedisCluster) Leave(n *RedisServer) {
	c.g.t.Helper()
	c.tool("rebalance", c.Masters[0].Addr, "--cluster-weight", c.ids[n]+"=0")
	c.tool("del-node", c.Masters[0].Addr, c.ids[n])
	c.Masters = slices.DeleteFunc(c.Masters, func(m *RedisServer) bool { return m == n })
	delete(c.clients, n)
}

// Serves reports whether a node serves the slot of a key according to the node's own slot table.
func (c *RedisCluster) Serves(n *RedisServer, key string) bool {
	c.g.t.Helper()
	slot := int64(c.Slot(key))
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	shards, err := c.clients[n].ClusterShards(ctx).Result()
	require.NoError(c.g.t, err, "testenv")
	for _, s := range shards {
		for _, r := range s.Slots {
			if r.Start <= slot && slot <= r.End {
				return slices.ContainsFunc(s.Nodes, func(m redis.Node) bool { return m.ID == c.ids[n] })
			}
		}
	}
	return false
}

// awaitKnown waits until every node knows n.
func (c *RedisCluster) awaitKnown(n *RedisServer) {
	c.g.t.Helper()
	c.g.await("all nodes know the new one", func(ctx context.Context) error {
		for _, client := range c.clients {
			nodes, err := client.ClusterNodes(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(nodes, c.ids[n]) {
				return errors.New("one does not")
			}
		}
		return nil
	})
}

// tool runs a command of redis-cli --cluster. First it waits until the nodes agree about the cluster, because the
// command fails otherwise.
func (c *RedisCluster) tool(args ...string) {
	c.g.t.Helper()
	c.g.await("the nodes agree", func(ctx context.Context) error { return c.cli(ctx, "check", c.Masters[0].Addr) })
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	require.NoError(c.g.t, c.cli(ctx, args...), "testenv")
}

// cli runs redis-cli --cluster.
func (c *RedisCluster) cli(ctx context.Context, args ...string) error {
	server, err := shared.source.search.Redis()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, strings.TrimSuffix(server, "-server")+"-cli", append([]string{"--cluster"}, args...)...)
	command.Env = append(command.Environ(), "REDISCLI_AUTH="+c.Password)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("redis-cli --cluster %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
