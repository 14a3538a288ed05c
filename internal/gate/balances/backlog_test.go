package balances

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// beforeScripts is a hook of a Redis client. The function is called before each pipeline of scripts. If it returns an
// error, the pipeline is not sent.
type beforeScripts func(ctx context.Context) error

func (beforeScripts) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (beforeScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f beforeScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" { // the client also uses pipelines to set up connections
			if err := f(ctx); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// cacheBehind returns a cache that is not started. Its Redis store has already loaded the scripts. It calls the
// function `before` for each later pipeline of scripts.
func cacheBehind(t *testing.T, before beforeScripts) *Cache {
	t.Helper()
	client := redis.NewClient(testenv.Redis(t))
	store := redisstore.New(client, redisstore.Config{})
	t.Cleanup(func() { _ = store.Stop(context.Background()); _ = client.Close() })
	c := New(store, Config{})
	require.NoError(t, store.Start(t.Context()))
	client.AddHook(before)
	return c
}

// Each round trip of a flush has its own time budget. When all round trips shared one budget, a long queue caused an
// outage: the flush failed, the publisher paused, and the queue grew.
func TestPublish_LongQueue_EachRoundTripHasItsOwnBudget(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	deadlines := map[time.Time]int{}
	c := cacheBehind(t, func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		deadline, _ := ctx.Deadline()
		deadlines[deadline]++
		return nil
	})
	all := make([]ledger.BalanceCopy, pendingMax)
	for i := range all {
		all[i] = *copyOf(fmt.Sprint("tenant", i), 1, time.Now())
	}
	c.Publish(all) // c has read no announcements, so it publishes every copy
	c.Start()
	published := func() float64 { return testutil.ToFloat64(c.metrics.published) }
	testenv.Eventually(t, func() bool { return published() == pendingMax }, "all are published")
	assert.NoError(t, c.Stop(t.Context()))
	assert.True(t, len(deadlines) >= pendingMax/publishMax,
		"%d deadlines of at least %d round trips", len(deadlines), pendingMax/publishMax)
	for deadline, n := range deadlines {
		assert.True(t, n <= 1 && !deadline.IsZero(), "%d round trips share the deadline %s", n, deadline)
	}
}

// When a cache stops, it passes all copies to a slow Redis. If Redis is down, the stop takes at most lastTries round
// trips longer.
func TestStop_RedisFails_TriesAgain(t *testing.T) {
	t.Parallel()
	// The first number is only half of lastTries, because other calls may fail as well.
	for failures, wanted := range map[int64]bool{lastTries / 2: true, 2 * lastTries: false} {
		var sent atomic.Int64
		c := cacheBehind(t, func(context.Context) error {
			if sent.Add(1) <= failures {
				return context.DeadlineExceeded
			}
			return nil
		})
		for i := range publishMax + 1 {
			c.pending.add([]*ledger.BalanceCopy{copyOf(fmt.Sprint("tenant", i), 1, time.Now())})
		}
		err := c.flushLast(t.Context())
		if n := testutil.ToFloat64(c.metrics.published); (n == publishMax+1) != wanted || (err == nil) != wanted {
			t.Errorf("%d failures: %v copies are published, %v", failures, n, err)
		}
		assert.False(t, !wanted && sent.Load() != lastTries, "%d round trips, want %d", sent.Load(), lastTries)
	}
}
