package ratelimit

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// evalCalls returns the number of script calls that the server has received.
func evalCalls(t *testing.T, client *redis.Client) int {
	t.Helper()
	info := testenv.Must(t).Get(client.Info(context.Background(), "commandstats").Result())
	total := 0
	for _, line := range strings.Split(info, "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			_, rest, _ = strings.Cut(rest, "calls=")
			n := testenv.Must(t).Get(strconv.Atoi(rest[:strings.IndexByte(rest, ',')]))
			total += n
		}
	}
	return total
}

// TestConsume_LostReply_ChargesOnce: if a reply is lost, the request is charged once. With its own retries the client
// library would send the script up to four times.
func TestConsume_LostReply_ChargesOnce(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(o *redis.Options) redis.UniversalClient{
		"single": func(o *redis.Options) redis.UniversalClient {
			c, err := redisstore.NewClient((&url.URL{Scheme: "redis", User: url.UserPassword(o.Username, o.Password), Host: o.Addr}).String())
			require.NoError(t, err)
			return c
		},
		// The worst case is a client that was not created by redisstore, and that retries.
		"single, default options": func(o *redis.Options) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: o.Addr, Username: o.Username, Password: o.Password})
		},
		// A cluster client retries even if MaxRetries forbids it.
		"cluster": func(o *redis.Options) redis.UniversalClient {
			c := testenv.Must(t).Get(redisstore.NewClient("redis+cluster://" + o.Addr))
			opts := c.(*redis.ClusterClient).Options()
			_ = c.Close()
			opts.Username, opts.Password = o.Username, o.Password
			opts.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: o.Addr}}}}, nil
			}
			return redis.NewClusterClient(opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			direct := patientClient(t, server.Options())
			proxy := testenv.NewLossyProxy(t, server.Options().Addr)
			o := server.Options()
			o.Addr = proxy.Addr
			client := testenv.CloseAtEnd(t, connect(o))
			r := compile(t, rule.Spec{Rate: "1/day", Burst: 100, OnBackendError: "closed"})
			req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
			l := patientLimiter(t, client, settings{})
			require.NoError(t, l.store.Start(context.Background()))
			_, err := l.Consume(context.Background(), req)
			require.NoError(t, err)
			before := evalCalls(t, direct)

			proxy.Lose.Store(true)
			_, err = l.Consume(context.Background(), req)
			require.ErrorIs(t, err, ErrUnavailable, "a lost reply")
			proxy.Lose.Store(false)

			sent := evalCalls(t, direct) - before
			assert.True(t, sent == 1, "the script was sent %d times", sent)
			d, err := l.Peek(context.Background(), req)
			assert.True(t, err == nil && d.Verdicts[0].Remaining == 98,
				"%d tokens left (%v), want 98 of 100 after two charges", d.Verdicts[0].Remaining, err)
		})
	}
}

// TestConsume_MissingScript_NothingLostOrDoubled deletes the server's scripts again and again under load. Every
// request must be charged exactly once.
func TestConsume_MissingScript_NothingLostOrDoubled(t *testing.T) {
	_, client := parallelServer(t)
	metrics := NewMetrics(nil)
	l := patientLimiter(t, client, settings{Metrics: metrics})
	const capacity, clients, each = 700, 16, 60 // 960 requests for 700 tokens per tenant
	r := compile(t, rule.Spec{Rate: "1/day", Burst: capacity, OnBackendError: "closed"})

	ctx, cancel := context.WithCancel(context.Background())
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			client.ScriptFlush(ctx)
		}
	})
	var admitted [2]atomic.Int64
	testenv.Together(clients, func(c int) {
		for range each {
			for tenant := range admitted {
				d, err := l.Consume(ctx, Request{Tenant: fmt.Sprintf("t%d", tenant), Charges: []Charge{{Rule: r}}})
				if !assert.NoError(t, err, "client %d: %v", c, err) {
					return
				}
				if d.Allowed {
					admitted[tenant].Add(1)
				}
			}
		}
	})
	cancel()
	flusher.Wait()
	for tenant := range admitted {
		got := admitted[tenant].Load()
		assert.True(t, got == capacity, "tenant %d: %d admitted, want %d", tenant, got, capacity)
	}
	assert.NotZero(t, redisCount(t, l, "quotasvc_redis_noscript_total", "limits"),
		"the script was never missing: the test proved nothing")
}
