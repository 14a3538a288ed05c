package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// onBoth runs a test on Redis and in local mode, in which client is nil. Both modes must give the same results.
func onBoth(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, patientClient(t, testenv.Redis(t)))
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, nil)
	})
}

// everywhere runs a test as onBoth does, with a limiter.
func everywhere(t *testing.T, test func(t *testing.T, l *Limiter)) {
	t.Helper()
	onBoth(t, func(t *testing.T, client redis.UniversalClient) { test(t, patientLimiter(t, client, settings{})) })
}

func mustConsume(t tester, l *Limiter, req Request) Decision {
	t.Helper()
	return testenv.Must(t).Get(l.Consume(context.Background(), req))
}

// mustPass returns the verdict of the first rule of a request that must be allowed.
func mustPass(t tester, l *Limiter, req Request) Verdict {
	t.Helper()
	d := mustConsume(t, l, req)
	require.True(t, d.Allowed, "%+v; want no denial", d)
	return d.Verdicts[0]
}

func mustPeek(t tester, l *Limiter, req Request) Decision {
	t.Helper()
	return testenv.Must(t).Get(l.Peek(context.Background(), req))
}

// remaining returns the remaining tokens of the first rule of req.
func remaining(t tester, l *Limiter, req Request) int64 {
	t.Helper()
	return mustPeek(t, l, req).Verdicts[0].Remaining
}

// mustRefund refunds what d has charged for req.
func mustRefund(t tester, l *Limiter, d Decision, req Request) {
	t.Helper()
	testenv.Must(t).Get(l.Refund(context.Background(), d.Charged(req)))
}

func TestConsume_Concurrent_AdmitsExactlyTheCapacity(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		const clients, each, capacity = 32, 40, 1000
		r := compile(t, rule.Spec{Rate: "1/day", Burst: capacity})
		wide := compile(t, rule.Spec{ID: "wide", Rate: "1/day", Burst: 5000})
		var admitted atomic.Int64
		testenv.Together(clients, func(_ int) {
			for range each {
				d, err := l.Consume(context.Background(), Request{Tenant: "acme", Charges: []Charge{{Rule: r}, {Rule: wide}}})
				assert.NoError(t, err)
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
		assert.EqualValues(t, capacity, admitted.Load(), "admitted of %d", clients*each)
		assert.EqualValues(t, 4000, remaining(t, l, requestOf(Charge{Rule: wide})),
			"left of the other rule: it must be charged for admitted requests only")
	})
}

func TestConsume_AnyInterval_AtMostBurstAndRefill(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		const burst, perSecond = 50, 700 // 7/10 of a token per ms: not a whole number
		r := compile(t, rule.Spec{Rate: fmt.Sprintf("%d/s", perSecond), Burst: burst})
		const enough = burst + perSecond/4 // the refill of a quarter of a second
		var mu sync.Mutex
		var sent, answered []time.Time // times of admitted requests
		missing := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sent) < enough
		}
		testenv.Together(8, func(_ int) {
			for missing() {
				from := time.Now()
				d, err := l.Consume(context.Background(), Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
				if !assert.NoError(t, err) {
					return
				}
				if d.Allowed {
					mu.Lock()
					sent, answered = append(sent, from), append(answered, time.Now())
					mu.Unlock()
				}
			}
		})
		// Requests i..j were decided after the first of them was sent, and before the last of them was answered.
		for i := range sent {
			first, last := sent[i], answered[i]
			for j := i; j < len(sent); j++ {
				if sent[j].Before(first) {
					first = sent[j]
				}
				if answered[j].After(last) {
					last = answered[j]
				}
				if most := burst + last.Sub(first).Seconds()*perSecond + 1; float64(j-i+1) > most {
					t.Fatalf("%d admitted in %s, at most %.1f may be", j-i+1, last.Sub(first), most)
				}
			}
		}
	})
}

func TestConsume_CostBeyondCapacity_IsNever(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r, other := compile(t, rule.Spec{Rate: "10/s"}), compile(t, rule.Spec{ID: "other", Rate: "10/s"})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 11}, {Rule: other}}}
		d := mustConsume(t, l, req)
		v := d.Verdicts[0]
		assert.True(t, !d.Allowed && !v.Allowed && v.Never && v.RetryAfter == 0 && v.Remaining == 10, "cost 11: %+v", d)
		v = d.Verdicts[1]
		assert.True(t, v.Allowed && !v.Never && v.Remaining == 10, "the other rule: %+v", v)
		req.Charges[0].Cost = 10
		d = mustConsume(t, l, req)
		assert.True(t, d.Allowed && d.Verdicts[0].Remaining == 0 && d.Verdicts[1].Remaining == 9, "cost 10: %+v", d)
	})
}

func TestRefund_GivesBackTheChargeAndNoMore(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		live := compile(t, rule.Spec{ID: "live", Rate: "1/day", Burst: 10})
		shadow := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Burst: 2, Shadow: true})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: live, Cost: 3}, {Rule: shadow, Cost: 2}}}
		left := func() string {
			d := mustPeek(t, l, req)
			return fmt.Sprint(d.Verdicts[0].Remaining, d.Verdicts[1].Remaining)
		}
		first := mustConsume(t, l, req)
		second := mustConsume(t, l, req) // the shadow rule would deny, so it is not charged
		require.EqualValues(t, "4 0", left(), "left")
		mustRefund(t, l, second, req)
		assert.Equal(t, "7 0", left(), "left after the second's refund")
		for range 2 { // a repeated refund does not make a bucket more than full
			mustRefund(t, l, first, req)
		}
		assert.EqualValues(t, "10 2", left(), "left")
		mustRefund(t, l, Decision{}, req) // a refund of nothing
	})
}

func TestShadow_WouldDenyWhatItWouldDenyAlone(t *testing.T) {
	client := parallelClient(t)
	now := worldStart
	l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		spec := rule.Spec{ID: "rule", Rate: "3/s", Burst: rapid.Int64Range(1, 10).Draw(t, "burst")}
		enforced := compile(t, spec)
		spec.Shadow = true
		shadow := compile(t, spec)
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += rapid.Int64Range(0, 700_000).Draw(t, "us")
			cost := rapid.Int64Range(1, spec.Burst+1).Draw(t, "cost")
			var said [2]Decision
			for i, r := range []*rule.Rule{enforced, shadow} {
				said[i] = mustConsume(t, l, requestFor(fmt.Sprintf("t%d-%d", i, run), r, "", cost))
			}
			require.True(t, said[1].Allowed, "a shadow rule denied")
			a, b := said[0].Verdicts[0], said[1].Verdicts[0]
			require.True(t, !a.Shadow && b.Shadow, "the verdicts do not say which is shadow")
			a.Rule, b.Rule, b.Shadow = nil, nil, false
			require.True(t, a == b, "enforced %+v, shadow %+v", a, b)
		}
	})
}

func TestShadow_DeniedRequest_IsNotCharged(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		shadow := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Burst: 10, Shadow: true})
		empty := compile(t, rule.Spec{ID: "empty", Rate: "1/day", Burst: 1})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: shadow}, {Rule: empty}}}
		for range 3 {
			mustConsume(t, l, req)
		}
		assert.EqualValues(t, 9, remaining(t, l, req), "left")
	})
}

func TestConsume_UnreadableBucket_PolicyDecides(t *testing.T) {
	client := parallelClient(t)
	ctx := context.Background()
	metrics := NewMetrics(nil)
	l := patientLimiter(t, client, settings{Metrics: metrics})
	healthy := compile(t, rule.Spec{ID: "healthy", Rate: "1/day", Burst: 10})
	for policy, check := range map[string]func(r *rule.Rule, req Request){
		"closed": func(_ *rule.Rule, req Request) {
			_, err := l.Consume(ctx, req)
			assert.ErrorIs(t, err, ErrUnavailable, "closed")
		},
		"open": func(_ *rule.Rule, req Request) {
			d := mustConsume(t, l, req)
			assert.True(t, d.Allowed && d.Degraded && d.Verdicts[0].Unknown, "open: %+v", d)
		},
		"local_share": func(_ *rule.Rule, req Request) { // the share admits some requests, not all
			admitted := 0
			for range 20 {
				if mustConsume(t, l, req).Allowed {
					admitted++
				}
			}
			assert.Equal(t, 5, admitted, "local_share: %d admitted, want the burst of 5", admitted)
		},
		"shadow": func(_ *rule.Rule, req Request) {
			d := mustConsume(t, l, req)
			assert.True(t, d.Allowed && !d.Degraded && d.Verdicts[0].Unknown && d.Mode == ModeRedis, "shadow: %+v", d)
		},
	} {
		spec := rule.Spec{ID: "rule", Rate: "1/day", Burst: 5, OnBackendError: policy}
		if policy == "shadow" {
			spec.OnBackendError, spec.Shadow = "", true
		}
		limit := compile(t, spec)
		req := Request{Tenant: "t-" + strings.ReplaceAll(policy, "_", "-"), Charges: []Charge{{Rule: limit}, {Rule: healthy}}}
		key, _ := limit.BucketKey(req.Tenant, "")
		client.Set(ctx, key, "not a bucket", 0)
		check(limit, req)
		assert.EqualValues(t, "not a bucket", client.Get(ctx, key).Val(), "%s: the value became", policy)
		if policy == "closed" {
			sibling, _ := healthy.BucketKey(req.Tenant, "")
			assert.Zero(t, client.Exists(ctx, sibling).Val(), "the other rule was charged in Redis")
		}
	}
	assert.False(t, isAway(l), "an unreadable bucket opened the breaker")
	assert.NotZero(t, testutil.ToFloat64(metrics.corrupt), "it was not counted")
}

func TestStop_FinishesQueuedRequestsRefusesTheRest(t *testing.T) {
	client := parallelClient(t)
	store := redisstore.New(client, redisstore.Config{Budget: testenv.Patience})
	l := New(store, Config{})
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 100_000})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	var answered atomic.Int64
	enough := make(chan struct{})
	var load sync.WaitGroup
	for range 16 {
		load.Go(func() {
			for {
				d, err := l.Consume(context.Background(), req)
				if errors.Is(err, ErrStopped) {
					return
				}
				if !assert.True(t, err == nil && d.Allowed && !d.Degraded, "%+v, %v", d, err) {
					return
				}
				if answered.Add(1) == 1000 {
					close(enough)
				}
			}
		})
	}
	testenv.Receive(t, enough)
	assert.NoError(t, errors.Join(l.Stop(context.Background()), store.Stop(context.Background())))
	load.Wait()
	again := patientLimiter(t, client, settings{})
	left := mustPeek(t, again, req).Verdicts[0].Remaining
	assert.True(t, left == 100_000-answered.Load(), "%d charged, %d answered", 100_000-left, answered.Load())
	_, err := l.Refund(context.Background(), req)
	assert.ErrorIs(t, err, ErrStopped, "a refund after Stop")
}

// TestBackground_Stopped_WorkStartsMoreWork: work that runs after the stop may need other work, for example a refund that
// finds Redis away and wants to send later what it could not send.
func TestBackground_Stopped_WorkStartsMoreWork(t *testing.T) {
	t.Parallel()
	var b background
	b.stop()
	both := make(chan struct{})
	go b.run(func() { b.run(func() { close(both) }) })
	testenv.Receive(t, both)
}

func TestConsume_ContextEnds_ReturnsItsError(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{})
	r := compile(t, rule.Spec{Rate: "1/day"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Consume(ctx, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestMetrics_CountVerdictsWithoutTenants(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{Metrics: NewMetrics(reg)})
	live, shadow := compile(t, rule.Spec{ID: "live", Rate: "1/day"}), compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Shadow: true})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: live}, {Rule: shadow}}}
	mustConsume(t, l, req)
	mustConsume(t, l, req)
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: live, Cost: 2}, {Rule: shadow, Cost: 2}}})
	want := `
# HELP quotasvc_limit_decisions_total Verdicts per rule, of checks and charges. Only shadow rules have the outcomes would_deny and would_never.
# TYPE quotasvc_limit_decisions_total counter
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="allow",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="allow",rule="shadow"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="deny",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="memo",outcome="never",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="would_deny",rule="shadow"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="memo",outcome="would_never",rule="shadow"} 1
`
	assert.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want), "quotasvc_limit_decisions_total"))
}

// TestConsume_SharedRule_OneBucketForAllTenants: a request is charged on a shared rule and the tenant's own rule, or
// on neither.
func TestConsume_SharedRule_OneBucketForAllTenants(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		shared := compile(t, rule.Spec{ID: "shared", Rate: "1/day", Burst: 10, Shared: true})
		own := compile(t, rule.Spec{ID: "own", Rate: "1/day", Burst: 4})
		req := func(tenant string) Request {
			return Request{Tenant: tenant, Charges: []Charge{{Rule: own}, {Rule: shared, Dimension: rule.Dimension("/search")}}}
		}
		var admitted atomic.Int64
		testenv.Together(2, func(i int) {
			for range 10 {
				d, err := l.Consume(context.Background(), req([]string{"a", "b"}[i]))
				assert.NoError(t, err)
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
		assert.EqualValues(t, 8, admitted.Load(), "admitted of 4 for each of two tenants")
		for range 5 {
			mustConsume(t, l, req("c"))
		}
		d := mustPeek(t, l, req("c"))
		assert.True(t, !d.Allowed && d.Verdicts[0].Remaining == 2 && d.Verdicts[1].Remaining == 0,
			"a third tenant, with 2 left of its own and 0 of the shared bucket: %+v", d)
	})
}
