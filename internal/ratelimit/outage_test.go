package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
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

// movableClock is the real clock plus an offset that a test increases. So no test has to wait until the breaker sends
// its next probe.
type movableClock struct{ ahead atomic.Int64 }

func (c *movableClock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *movableClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// decisionMost is the longest time of a decision while Redis is away: ten times its budget, because the machine may
// be busy.
const decisionMost = 10 * redisstore.DefaultBudget

// productionClient returns a client with the timeouts of the service's own client.
func productionClient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	return testenv.CloseAtEnd(t, testenv.Must(t).Get(redisstore.NewClient(url)))
}

// TestOutage_NoDecisionOutlivesItsBudget takes Redis away under load, in three ways, and brings it back.
func TestOutage_NoDecisionOutlivesItsBudget(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ away, back func(*testenv.RedisServer) }{
		"hangs":  {(*testenv.RedisServer).Pause, (*testenv.RedisServer).Resume},
		"killed": {(*testenv.RedisServer).Kill, (*testenv.RedisServer).Start},
		"stops":  {(*testenv.RedisServer).Stop, (*testenv.RedisServer).Start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			clock, log := &movableClock{}, &testenv.Log{}
			l := limiterOn(t, productionClient(t, server.URL), settings{
				Now: clock.now, Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: NewMetrics(nil),
			})
			r := compile(t, rule.Spec{Rate: "1000000/s"})
			var load streams
			for i := range 4 { // 800 requests/s, as in a busy service
				load = append(load, flow(t, l, requestFor(fmt.Sprint("t", i), r, "", 1), 4, 20*time.Millisecond))
			}
			testenv.Eventually(t, func() bool { return load.redis() > 200 }, "redis decides")
			outage.away(server)
			testenv.Eventually(t, func() bool { return isAway(l) }, "the breaker opens")
			local := load.local()
			testenv.Eventually(t, func() bool { return load.local() > local+200 }, "decisions go on")
			for range 3 { // these probes fail
				clock.advance(redisstore.RetryAfter)
				local := load.local()
				testenv.Eventually(t, func() bool { return load.local() > local+50 }, "decisions go on")
			}
			outage.back(server)
			before := load.redis()
			testenv.Eventually(t, func() bool {
				clock.advance(redisstore.RetryAfter)
				return !isAway(l) && load.redis() > before+10
			}, "redis decides again")
			for _, s := range load {
				s.end()
				s.checkTimes(name, redisstore.DefaultBudget)
			}
			away, back := log.Count("redis is away"), log.Count("redis is back")
			assert.True(t, away == back && away >= 1 && away <= 3, "%d lines about the outage, %d about its end", away, back)
		})
	}
}

func TestOutage_DeadAddress_CostsTheBudgetAtMost(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	refusing := testenv.Must(t).Get(net.Listen("tcp", "127.0.0.1:0"))
	_ = refusing.Close()
	for name, url := range map[string]string{
		"silent":           "redis://" + silent.Addr().String(),
		"refusing":         "redis://" + refusing.Addr().String(),
		"unroutable":       "redis://192.0.2.1:6379",
		"silent cluster":   "redis+cluster://" + silent.Addr().String(),
		"silent sentinel":  "redis+sentinel://" + silent.Addr().String() + "/main",
		"refusing cluster": "redis+cluster://" + refusing.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limiterOn(t, productionClient(t, url), settings{})
			r := compile(t, rule.Spec{Rate: "1/day", Burst: 3})
			var answers []bool
			for range 8 {
				started := time.Now()
				d := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
				took := time.Since(started)
				assert.True(t, took <= decisionMost, "a decision took %s", took)
				answers = append(answers, d.Allowed)
				assert.True(t, d.Degraded && d.Mode == ModeLocal, d)
			}
			assert.Equal(t, []bool{true, true, true, false, false, false, false, false}, answers,
				"admitted %v, want the burst of 3", answers)
			assert.True(t, isAway(l), "the breaker is closed")
		})
	}
}

// TestBudget_IsIndependentOfClientTimeouts: a decision takes at most its budget, even if the timeouts of the client
// are much longer.
func TestBudget_IsIndependentOfClientTimeouts(t *testing.T) {
	t.Parallel()
	const budget = 300 * time.Millisecond
	server := testenv.RedisPrivate(t)
	l := limiterOn(t, patientClient(t, server.Options()), settings{Lanes: 1, Budget: budget})
	r := compile(t, rule.Spec{Rate: "1/day"})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	testenv.Eventually(t, func() bool { return mustPeek(t, l, req).Mode == ModeRedis }, "redis decides")
	server.Pause()
	defer server.Resume()
	testenv.Together(3, func(int) { // some requests wait for Redis, the others in the queue
		started := time.Now()
		_, err := l.Peek(context.Background(), req)
		assert.NoError(t, err)
		took := time.Since(started)
		assert.True(t, took <= 10*budget, "a decision took %s", took)
	})
}

// TestOutage_ServerCannotWrite_IsAway: a server that cannot write still answers. It counts as away, because it cannot
// charge, and so would admit everything.
func TestOutage_ServerCannotWrite_IsAway(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, harm := range map[string]func(*redis.Client) error{
		"out of memory":     func(c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", "1").Err() },
		"read-only replica": func(c *redis.Client) error { return c.ReplicaOf(ctx, "127.0.0.1", "1").Err() },
		"other password":    func(c *redis.Client) error { return c.ConfigSet(ctx, "requirepass", "another").Err() },
		"no scripts":        func(c *redis.Client) error { return c.Do(ctx, "ACL", "SETUSER", "default", "-evalsha", "-eval").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			require.NoError(t, harm(patientClient(t, server.Options())))
			metrics := NewMetrics(nil)
			l := patientLimiter(t, patientClient(t, server.Options()), settings{Metrics: metrics})
			r := compile(t, rule.Spec{Rate: "1/day", Burst: 3})
			admitted := 0
			for range 10 {
				d := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
				assert.True(t, d.Degraded, d)
				if d.Allowed {
					admitted++
				}
			}
			assert.True(t, admitted == 3 && isAway(l), "%d admitted, degraded %v; want 3, true", admitted, isAway(l))
			n := redisCount(t, l, "quotasvc_limit_backend_failures_total", "redis")
			assert.True(t, n == 5, "%v decisions failed in redis, want %d until the breaker opened", n, 5)
		})
	}
}

func TestStart_WithoutRedis_FindsItLater(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	server.Stop()
	clock := &movableClock{}
	l := patientLimiter(t, patientClient(t, server.Options()), settings{Now: clock.now})
	assert.Error(t, l.store.Start(context.Background()), "Start does not say that the script is not loaded")
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 100})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	for range 5 {
		d := mustConsume(t, l, req)
		assert.True(t, d.Degraded, d)
	}
	server.Start()
	clock.advance(redisstore.RetryAfter)
	testenv.Eventually(t, func() bool {
		clock.advance(redisstore.RetryAfter)
		return mustConsume(t, l, req).Mode == ModeRedis
	}, "redis decides")
	left := remaining(t, l, req)
	assert.True(t, left >= 90, "%d left: local charges are forgotten when Redis is back", left)
}

// away runs the function `warm` on a new limiter, kills its Redis, and returns the limiter.
func away(t *testing.T, cfg settings, warm func(l *Limiter)) *Limiter {
	t.Helper()
	server := testenv.RedisPrivate(t)
	l := patientLimiter(t, patientClient(t, server.Options()), cfg)
	warm(l)
	server.Kill()
	testenv.Eventually(t, func() bool { return !l.store.Watch().Holds() }, "nothing is held") // else held levels decide
	return l
}

func TestConsume_RedisAway_PoliciesDecide(t *testing.T) {
	t.Parallel()
	l := away(t, settings{}, func(*Limiter) {})
	ctx := context.Background()
	r := func(id, policy string, shadow bool) Charge {
		return Charge{Rule: compile(t, rule.Spec{ID: id, Rate: "1/day", Burst: 2, OnBackendError: policy, Shadow: shadow})}
	}
	shared, open := r("shared", "local_share", false), r("open", "open", false)
	closed, closedShadow := r("closed", "closed", false), r("closed-shadow", "closed", true)

	d := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{open, shared, closedShadow}})
	assert.True(t, d.Allowed && d.Degraded && d.Mode == ModeLocal, d)
	for i, unknown := range []bool{true, false, true} {
		v := d.Verdicts[i]
		assert.True(t, v.Unknown == unknown && v.Allowed, "verdict %d: %+v", i, v)
	}
	v := d.Verdicts[1]
	assert.True(t, v.Remaining == 1 && v.Limit == 2, "the local share: %+v", v)
	// A closed rule makes the request fail before anything is charged.
	for _, do := range []func(context.Context, Request) (Decision, error){l.Consume, l.Peek} {
		_, err := do(ctx, Request{Tenant: "acme", Charges: []Charge{shared, closed}})
		assert.True(t, errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "closed"), "closed: %v", err)
	}
	assert.EqualValues(t, 1, remaining(t, l, requestOf(shared)), "left: the refused request was charged")
	// Charges that this process has made are refunded in this process. Charges in Redis cannot be refunded while
	// Redis is away.
	mustRefund(t, l, d, requestOf(open, shared, closedShadow))
	assert.EqualValues(t, 2, remaining(t, l, requestOf(shared)), "left after the refund")
	_, err := l.Refund(ctx, Request{Tenant: "acme", Charges: []Charge{shared}})
	assert.ErrorIs(t, err, ErrUnavailable, "a refund to Redis")
}

// TestOutage_ReplicasStayWithinTheRule: during an outage four replicas together admit at most the limit. If each of
// them used the full limit, they would admit four times the limit.
func TestOutage_ReplicasStayWithinTheRule(t *testing.T) {
	t.Parallel()
	const replicas, burst = 4, 40
	server := testenv.RedisPrivate(t)
	r := compile(t, rule.Spec{Rate: "1/day", Burst: burst})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	var all []*Limiter
	for range replicas {
		all = append(all, patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: func() *replica.Set { return replica.Anonymous(replicas) }}))
	}
	before := 0
	for i := range 16 { // every replica has seen a level
		if mustConsume(t, all[i%replicas], req).Allowed {
			before++
		}
	}
	server.Kill()
	var admitted atomic.Int64
	testenv.Together(replicas, func(i int) {
		for range burst {
			d, err := all[i].Consume(context.Background(), req)
			assert.NoError(t, err)
			if d.Allowed {
				admitted.Add(1)
			}
		}
	})
	during := int(admitted.Load())
	assert.True(t, before == 16 && during <= burst-before+replicas && during >= burst/2,
		"%d admitted before and %d during the outage, of a burst of %d", before, during, burst)
}
