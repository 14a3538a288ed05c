package ratelimit

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// TestOutage_KilledUnderLoad_AdmitsTheShares: Redis is killed under load. No request waits longer than its budget.
// Redis and the replicas' shares may together admit a certain number of requests. Not more are admitted, although
// several times that number is sent.
func TestOutage_KilledUnderLoad_AdmitsTheShares(t *testing.T) {
	t.Parallel()
	const replicas, callers, every, rate, burst = 2, 8, 10 * time.Millisecond, 200, 60
	server := testenv.RedisPrivate(t)
	r := compile(t, rule.Spec{ID: "rule", Rate: fmt.Sprint(rate, "/s"), Burst: burst})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	clock := &movableClock{}
	began := time.Now()
	var all streams
	for range replicas {
		l := limiterOn(t, productionClient(t, server.URL), settings{Replicas: func() *replica.Set { return replica.Anonymous(replicas) }, Now: clock.now})
		all = append(all, flow(t, l, req, callers, every))
	}
	testenv.Eventually(t, func() bool { return all.redis() > 600 }, "redis decides")
	server.Kill()
	testenv.Eventually(t, func() bool { return all.local() > 1500 }, "the replicas decide")
	server.Start()
	before := all.redis()
	clock.advance(redisstore.RetryAfter)
	testenv.Eventually(t, func() bool { return all.redis() > before+200 }, "redis decides again")
	over := time.Since(began) + redisstore.RetryAfter
	var admitted, out float64
	for i, s := range all {
		s.end()
		s.checkTimes(fmt.Sprint("replica ", i), redisstore.DefaultBudget)
		admitted += float64(s.redisAdmitted.Load() + s.localAdmitted.Load())
		out = max(out, time.Duration(s.latestDegraded.Load()-s.firstDegraded.Load()).Seconds()+redisstore.RetryAfter.Seconds())
	}
	// Redis was killed and has lost its data, so it may admit its burst twice.
	most := 2*burst + over.Seconds()*rate + burst + out*rate + 2*replicas
	t.Logf("%.0f admitted in %s, of which %.1f s without redis; at most %.0f may be", admitted, over, out, most)
	assert.True(t, admitted <= most, "%.0f admitted, at most %.0f may be", admitted, most)
}

// TestRecovery_IsNoStampede: while Redis is away, each process sends one call (a probe) every 5 s. When Redis is
// back, each process opens only a few connections.
func TestRecovery_IsNoStampede(t *testing.T) {
	t.Parallel()
	const replicas, callers = 4, 12
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	proxy := testenv.NewLossyProxy(t, server.Addr)
	address := (&url.URL{Scheme: "redis", User: url.UserPassword("", server.Options().Password), Host: proxy.Addr}).String()
	clock := &movableClock{}
	r := compile(t, rule.Spec{ID: "rule", Rate: "1000000/s"})
	var all []*stream
	var limiters []*Limiter
	for range replicas {
		l := limiterOn(t, productionClient(t, address), settings{Now: clock.now})
		limiters = append(limiters, l)
		all = append(all, flow(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}, callers, 20*time.Millisecond))
	}
	eachOf := func(what string, is func(i int) bool) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			for i := range limiters {
				if !is(i) {
					return false
				}
			}
			return true
		}, what)
	}
	eachOf("redis decides", func(i int) bool { return all[i].redis.Load() > 50 })
	proxy.Lose.Store(true) // every call runs, and no reply arrives
	eachOf("the breakers open", func(i int) bool { return isAway(limiters[i]) })

	for range 3 {
		awaitQuiet(t, direct)
		local := make([]int64, replicas)
		for i, s := range all {
			local[i] = s.local.Load()
		}
		before := evalCalls(t, direct)
		failed := make([]float64, replicas)
		for i, l := range limiters {
			failed[i] = redisCount(t, l, "quotasvc_limit_backend_failures_total", "redis")
		}
		clock.advance(redisstore.RetryAfter)
		eachOf("the probe has failed and others go on", func(i int) bool {
			return all[i].local.Load() > local[i]+2*callers && redisCount(t, limiters[i], "quotasvc_limit_backend_failures_total", "redis") > failed[i]
		})
		if probes := evalCalls(t, direct) - before; probes > replicas { // on a busy machine a probe may fail before it arrives
			t.Errorf("%d calls reached redis in five seconds, want one of each of the %d processes at most", probes, replicas)
		}
	}

	proxy.Lose.Store(false)
	connections := received(t, direct)
	before := evalCalls(t, direct)
	redisBefore := make([]int64, replicas)
	for i, s := range all {
		redisBefore[i] = s.redis.Load()
	}
	clock.advance(redisstore.RetryAfter)
	eachOf("redis decides again", func(i int) bool { return all[i].redis.Load() > redisBefore[i]+200 && !isAway(limiters[i]) })
	var requests int64
	for i, s := range all {
		s.end()
		s.checkTimes(fmt.Sprint("process ", i), redisstore.DefaultBudget)
		requests += s.redis.Load() - redisBefore[i]
	}
	// Each process may open a connection for each probe and each lane. It may open one more for each of these, because
	// the machine may delay a call.
	n := received(t, direct) - connections
	assert.True(t, n <= replicas*(2*DefaultLanes+2), "%d connections were made, want a few per process", n)
	n = evalCalls(t, direct) - before
	assert.True(t, int64(n) <= requests+replicas, "%d script calls for %d requests", n, requests)
}

// awaitQuiet waits until the server receives no more script calls.
func awaitQuiet(t *testing.T, client *redis.Client) {
	t.Helper()
	last, still := -1, 0
	testenv.Eventually(t, func() bool {
		n := evalCalls(t, client)
		if still++; n != last {
			last, still = n, 0
		}
		return still == 10
	}, "no calls are under way")
}

// received returns the number of connections that a server has accepted so far.
func received(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "stats").Result()
	require.NoError(t, err)
	var n int
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "total_connections_received:%d", &n); err == nil {
			return n
		}
	}
	t.Fatal("the server does not say")
	return 0
}
