package testenv

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRedisCluster_Slots_ServedAndMoved(t *testing.T) {
	t.Parallel()
	c := RedisClusterPrivate(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Masters[0].Addr}, Password: c.Password})
	defer func() { _ = client.Close() }()
	for i := range 50 {
		require.NoError(t, client.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err())
	}
	for i, m := range c.Masters {
		assert.NotZero(t, c.Client(m).DBSize(t.Context()).Val(), "master %d has no keys", i)
	}
	from, slot := c.Owner("key7"), c.Slot("key7")
	to := (from + 1) % len(c.Masters)
	c.Move(slot, c.Masters[from], c.Masters[to])
	assert.EqualValues(t, "7", c.Client(c.Masters[to]).Get(t.Context(), "key7").Val(), "the new owner returns")
}

func TestRedisCluster_MasterKilled_ReplicaTakesOver(t *testing.T) {
	t.Parallel()
	c := RedisClusterPrivate(t)
	c.LetFail()
	c.Masters[1].Kill()
	c.AwaitPromotion(c.Replicas[1], c.Masters[0])
}

func TestRedisSentinels_MasterKilled_Replaced(t *testing.T) {
	t.Parallel()
	s := RedisSentinelsPrivate(t)
	ctx := context.Background()
	require.NoError(t, s.Master.client().Set(ctx, "k", "v", 0).Err())
	s.Master.Kill()
	s.AwaitMaster(s.Replica)
}
