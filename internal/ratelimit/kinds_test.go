package ratelimit

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// kinds returns the kinds that the limits script decides, that is, all kinds except concurrency.
func kinds() []rule.Kind {
	return []rule.Kind{rule.KindTokenBucket, rule.KindLeakyBucket, rule.KindFixedWindow, rule.KindSlidingWindow, rule.KindSlidingLog}
}

// testClock is the clock that scripts and local decisions use in a test.
type testClock struct{ us atomic.Int64 }

func (c *testClock) now() int64              { return c.us.Load() }
func (c *testClock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }
func (c *testClock) set(at time.Time)        { c.us.Store(at.UnixMicro()) }

// limiter returns a limiter that uses the clock c. It is on client, or in local mode if client is nil.
func (c *testClock) limiter(t testing.TB, client redis.UniversalClient) *Limiter {
	if client == nil {
		return patientLimiter(t, nil, settings{Now: func() time.Time { return time.UnixMicro(c.now()) }})
	}
	return patientLimiter(t, client, settings{redisNow: c.now})
}

// onTestTime runs a test on Redis and in local mode, with a clock that the test moves. The results must be the same.
func onTestTime(t *testing.T, test func(t *testing.T, l *Limiter, clock *testClock)) {
	t.Helper()
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		clock := &testClock{}
		clock.us.Store(worldStart)
		test(t, clock.limiter(t, client), clock)
	})
}

// exhaust sends req until it is denied, and returns how often it was admitted.
func exhaust(t tester, l *Limiter, req Request) (admitted int64) {
	t.Helper()
	for mustConsume(t, l, req).Allowed {
		admitted++
		require.True(t, admitted <= 300_000, "%d admitted, and no end: %+v", admitted, req)
	}
	return admitted
}

func requestOf(charges ...Charge) Request { return Request{Tenant: "acme", Charges: charges} }

func requestFor(tenant string, r *rule.Rule, dimension string, cost int64) Request {
	return Request{Tenant: tenant, Charges: []Charge{{Rule: r, Dimension: dimension, Cost: cost}}}
}

// requestOn returns a request that charges each of the rules. A cost of 0 means the rule's own cost.
func requestOn(tenant string, cost int64, rules ...*rule.Rule) Request {
	req := Request{Tenant: tenant}
	for _, r := range rules {
		req.Charges = append(req.Charges, Charge{Rule: r, Cost: cost})
	}
	return req
}

// TestKinds_EveryInterval_KeepTheirPromise sends random requests. For the interval between every pair of admitted
// requests, it checks the bound of the rule's kind.
func TestKinds_EveryInterval_KeepTheirPromise(t *testing.T) {
	client := parallelClient(t)
	var clock testClock
	limiters := []*Limiter{clock.limiter(t, client), clock.limiter(t, nil)}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		kind := rapid.SampledFrom(kinds()).Draw(t, "kind")
		l := rapid.SampledFrom(limiters).Draw(t, "where")
		count, period := rapid.Int64Range(1, 9).Draw(t, "count"), rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 7 * time.Second}).Draw(t, "period")
		spec := rule.Spec{ID: "rule", Kind: kind.String(), Rate: rule.Rate{Count: count, Period: period}.String()}
		if kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket {
			spec.Burst = rapid.Int64Range(1, 12).Draw(t, "burst")
		}
		r := compile(t, spec)
		// In local mode the clock must not jump back, so each run starts an hour later. Each run has its own tenant,
		// so the levels of other runs do not matter.
		clock.us.Store(worldStart + int64(run)*int64(time.Hour/time.Microsecond))
		var admitted []int64
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			clock.us.Add(rapid.Int64Range(0, 2*period.Microseconds()/count).Draw(t, "us"))
			cost := rapid.Int64Range(1, min(2, r.Burst)).Draw(t, "cost")
			if mustConsume(t, l, requestFor(fmt.Sprintf("t%d", run), r, "", cost)).Allowed {
				admitted = append(admitted, slices.Repeat([]int64{clock.now()}, int(cost))...)
			}
		}
		for i := range admitted {
			for j := i; j < len(admitted); j++ {
				n, took, p := int64(j-i+1), admitted[j]-admitted[i], period.Microseconds()
				var most int64 // tokens, times the period
				switch kind {
				case rule.KindFixedWindow: // the limit, for each window that the interval touches
					most = count * p * (admitted[j]/p - admitted[i]/p + 1)
				case rule.KindSlidingLog: // the limit, for each period of the window's length in the interval
					most = count * p * (took/p + 1)
				default:
					most = r.Burst*p + count*took
				}
				if n*p > most {
					t.Fatalf("%s %s burst %d: %d tokens in %d us", kind, r.Rate, r.Burst, n, took)
				}
			}
		}
	})
}

// timings returns rules of every kind whose rates do not divide evenly.
func timings() []rule.Spec {
	var all []rule.Spec
	for _, kind := range kinds() {
		for _, rate := range []string{"7/s", "5/3s", "7/day", "5/min", "999/1001ms"} {
			if r, _ := rule.ParseRate(rate); kind == rule.KindSlidingLog && r.Count > 10 {
				continue
			}
			all = append(all, rule.Spec{ID: fmt.Sprintf("%s-%d", kind, len(all)), Kind: kind.String(), Rate: rate})
		}
	}
	for i, rate := range []string{"7/s", "1/3s", "1000000/s", "999983/min", "1/day"} {
		all = append(all, rule.Spec{ID: fmt.Sprint("five-", i), Rate: rate, Burst: 5})
	}
	return append(all,
		rule.Spec{ID: "a-month", Kind: "fixed_window", Rate: "5/month"},
		// These rules use milliseconds instead of microseconds as the unit of time.
		rule.Spec{ID: "many", Kind: "sliding_window", Rate: "104250/day"},
		rule.Spec{ID: "most", Kind: "sliding_log", Rate: "1000/31d"},
	)
}

func TestKinds_RetryAfter_IsExactToTheMicrosecond(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for _, spec := range timings() {
			r := compile(t, spec)
			for _, part := range []int64{1, max(2, r.Burst/2), r.Burst} { // costs, as parts of the capacity
				name := fmt.Sprintf("%s %s, cost %d", r.Kind, r.Rate, part)
				req := func(cost int64) Request {
					return requestOf(Charge{Rule: r, Dimension: rule.Dimension(name), Cost: cost})
				}
				clock.advance(777 * time.Microsecond)
				mustConsume(t, l, req(r.Burst-1))
				clock.advance(r.Rate.Period / 3)
				exhaust(t, l, req(1))
				denied := mustConsume(t, l, req(part)).Verdicts[0]
				assert.True(t, !denied.Allowed && denied.RetryAfter > 0 && denied.Next > 0 && denied.Next <= denied.RetryAfter &&
					denied.RetryAfter <= denied.Reset, "%s: %+v", name, denied)
				clock.advance(denied.RetryAfter - time.Microsecond)
				v := mustConsume(t, l, req(part)).Verdicts[0]
				assert.True(t, !v.Allowed && v.RetryAfter == time.Microsecond, "%s: a microsecond early: %+v", name, v)
				clock.advance(time.Microsecond)
				mustPass(t, l, req(part)) // after RetryAfter
				clock.advance(mustPeek(t, l, req(1)).Verdicts[0].Reset - time.Microsecond)
				v = mustPeek(t, l, req(1)).Verdicts[0]
				missing := v.Limit - v.Remaining
				assert.True(t, v.Reset == time.Microsecond && v.Next == time.Microsecond && missing > 0 &&
					(r.Kind != rule.KindTokenBucket || missing == 1), "%s: a microsecond before Reset: %+v", name, v)
				clock.advance(time.Microsecond)
				v = mustPeek(t, l, req(1)).Verdicts[0]
				assert.True(t, v.Reset == 0 && v.Next == 0 && v.Remaining == v.Limit, "%s: at Reset: %+v", name, v)
			}
		}
	})
}

// TestKinds_ClockSetBack_StayCorrect: when the clock is set back, tokens must not come back twice. No request may
// have to wait until the clock has caught up, even if all requests until then are denied.
func TestKinds_ClockSetBack_StayCorrect(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		steps := []time.Duration{time.Microsecond, time.Millisecond, 4 * time.Second, 5 * time.Second, 5*time.Second + time.Microsecond, time.Hour, rule.Day}
		for _, kind := range kinds() {
			r := compile(t, rule.Spec{Kind: kind.String(), Rate: "10/min"})
			for _, step := range steps {
				for _, o := range []rule.Op{rule.Consume, rule.Peek} {
					name := fmt.Sprintf("%s, step %s, %d", kind, step, o)
					req := requestOf(Charge{Rule: r, Dimension: rule.Dimension(name)})
					clock.us.Store(worldStart)
					admitted := exhaust(t, l, req)
					clock.advance(-step)
					d := mustPeek(t, l, req)
					assert.True(t, admitted == 10 && !d.Allowed, "%s: admitted %d, then %+v", name, admitted, d)
					wait := d.Verdicts[0].RetryAfter
					longest := map[rule.Kind]time.Duration{rule.KindTokenBucket: 6 * time.Second, rule.KindLeakyBucket: 6 * time.Second}[kind]
					if longest == 0 {
						longest = 2 * time.Minute // the most that a sliding window needs; other kinds need a minute
					}
					longest += min(step, 5*time.Second)
					assert.True(t, wait <= longest, "%s: retry after %s, at most %s", name, wait, longest)
					// Requests are denied all the time. The denied requests must not prevent tokens from coming back.
					for end := clock.now() + wait.Microseconds(); clock.now() < end-1; {
						clock.us.Store(min(clock.now()+1_700_000, end-1))
						if d, err := l.decide(context.Background(), req, o); err != nil || d.Allowed {
							t.Fatalf("%s: admitted %d us early (%v)", name, end-clock.now(), err)
						}
					}
					clock.advance(time.Microsecond)
					mustPass(t, l, req)
					// The clock is set forward again, so the same time passes twice. The bucket must not have more
					// tokens than its capacity.
					clock.advance(step)
					assert.LessOrEqual(t, remaining(t, l, req), int64(10), "%s: left of 10", name)
				}
			}
		}
	})
}

// TestRefund_GivesBackItsOwnCharge: a refund gives back only tokens of the refunded request. It gives back neither
// tokens that have already come back with time, nor tokens of later requests.
func TestRefund_GivesBackItsOwnCharge(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		clock.set(time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC))
		for _, tc := range []struct {
			kind string
			// remaining tokens of 10/min: 3 are taken, the time passes, 4 are taken, and the first 3 are refunded
			after map[time.Duration]int64
		}{
			{"token_bucket", map[time.Duration]int64{0: 6, 6 * time.Second: 6, 30 * time.Second: 6, time.Minute: 6, 2 * time.Minute: 6}},
			{"leaky_bucket", map[time.Duration]int64{0: 6, 6 * time.Second: 6, 30 * time.Second: 6, time.Minute: 6, 2 * time.Minute: 6}},
			{"fixed_window", map[time.Duration]int64{0: 6, 30 * time.Second: 6, time.Minute: 6, 2 * time.Minute: 6}},
			// At the start of the next window the 3 tokens of the last window count in full, and are given back.
			{"sliding_window", map[time.Duration]int64{0: 6, 30 * time.Second: 6, time.Minute: 6, 2 * time.Minute: 6}},
			{"sliding_log", map[time.Duration]int64{0: 6, 30 * time.Second: 6, time.Minute: 6, 2 * time.Minute: 6}},
		} {
			for passed, want := range tc.after {
				r := compile(t, rule.Spec{ID: fmt.Sprintf("%s-%s", tc.kind, passed), Kind: tc.kind, Rate: "10/min"})
				clock.advance(time.Hour)
				req := requestOf(Charge{Rule: r, Cost: 3})
				d := mustConsume(t, l, req)
				clock.advance(passed)
				mustConsume(t, l, requestOf(Charge{Rule: r, Cost: 4}))
				before := remaining(t, l, req)
				mustRefund(t, l, d, req)
				if got := remaining(t, l, req); got != want || got < before {
					t.Errorf("%s after %s: %d left, %d before the refund, want %d", tc.kind, passed, got, before, want)
				}
				clock.advance(-passed)
			}
		}
	})
}

// TestRefund_Bucket_GivesBackWhatIsNotBackYet: what a bucket has left after a refund is at most its burst minus what was
// charged since the refunded charge. A bucket that was in use before gets its whole charge back, as long as what was
// taken until then has not come back.
func TestRefund_Bucket_GivesBackWhatIsNotBackYet(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		clock.set(time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC))
		for _, kind := range []string{"token_bucket", "leaky_bucket"} {
			for i, tc := range []struct {
				rate              string
				before, charged   int64
				passed            time.Duration
				since, left, want int64
			}{
				{rate: "10/min", charged: 10, passed: 30 * time.Second, since: 5, want: 5},
				{rate: "10/min", charged: 10, passed: 59900 * time.Millisecond, since: 9, want: 1},
				{rate: "10/s", charged: 10, passed: 500 * time.Millisecond, since: 5, want: 5},
				{rate: "10/min", charged: 10, passed: 0, since: 0, want: 10},
				{rate: "10/min", charged: 10, passed: time.Minute, since: 10, want: 0},
				{rate: "10/min", before: 8, charged: 2, passed: 12 * time.Second, since: 2, want: 2},
				{rate: "10/min", before: 8, charged: 2, passed: 48 * time.Second, since: 8, want: 2},
				{rate: "10/min", before: 8, charged: 2, passed: 54 * time.Second, since: 9, want: 1},
				{rate: "10/min", before: 8, charged: 2, passed: 10 * time.Minute, since: 9, left: 1, want: 1},
			} {
				r := compile(t, rule.Spec{ID: fmt.Sprint(kind, i), Kind: kind, Rate: tc.rate, Burst: 10})
				if tc.before > 0 {
					mustPass(t, l, requestOf(Charge{Rule: r, Cost: tc.before}))
				}
				req := requestOf(Charge{Rule: r, Cost: tc.charged})
				d := mustConsume(t, l, req)
				clock.advance(tc.passed)
				if tc.since > 0 {
					mustPass(t, l, requestOf(Charge{Rule: r, Cost: tc.since}))
				}
				require.Equal(t, tc.left, remaining(t, l, req), "%s %d: left before the refund", kind, i)
				mustRefund(t, l, d, req)
				assert.Equal(t, tc.want, remaining(t, l, req), "%s %d: left after the refund", kind, i)
			}
		}
	})
}

// TestRefund_Bucket_NeverBetterThanNoCharge: after random charges, a refund leaves a bucket with at most the tokens that
// it would have if the refunded charge had not been made.
func TestRefund_Bucket_NeverBetterThanNoCharge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var clock testClock
		clock.us.Store(worldStart)
		l := New(nil, Config{Now: func() time.Time { return time.UnixMicro(clock.now()) }})
		r := compile(t, rule.Spec{Rate: rapid.SampledFrom([]string{"10/min", "7/min", "3/s"}).Draw(t, "rate"), Burst: rapid.Int64Range(1, 12).Draw(t, "burst")})
		of := func(tenant string, cost int64) Request {
			return Request{Tenant: tenant, Charges: []Charge{{Rule: r, Cost: cost}}}
		}
		both := func(cost int64) bool { // charges both buckets
			d := testenv.Must(t).Get(l.Consume(context.Background(), of("acme", cost)))
			if d.Allowed {
				require.True(t, testenv.Must(t).Get(l.Consume(context.Background(), of("without", cost))).Allowed)
			}
			return d.Allowed
		}
		pass := func() { clock.us.Add(rapid.Int64Range(0, 20_000_000).Draw(t, "us")) }
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			both(rapid.Int64Range(1, r.Burst).Draw(t, "cost"))
			pass()
		}
		req := of("acme", rapid.Int64Range(1, r.Burst).Draw(t, "refunded"))
		d := testenv.Must(t).Get(l.Consume(context.Background(), req))
		if !d.Allowed {
			return
		}
		since := int64(0)
		for range rapid.IntRange(0, 8).Draw(t, "since") {
			pass()
			if cost := rapid.Int64Range(1, r.Burst).Draw(t, "cost"); both(cost) {
				since += cost
			}
		}
		before := remaining(t, l, req)
		mustRefund(t, l, d, req)
		left, without := remaining(t, l, req), remaining(t, l, of("without", 1))
		require.True(t, left <= without && left <= max(before, r.Burst-since),
			"%d left, %d without the charge, %d charged since of %d", left, without, since, r.Burst)
	})
}

// TestRefund_LostWindow_GivesNothing: two windows after a charge, a refund gives nothing back, because the tokens
// taken by now are tokens of other requests.
func TestRefund_LostWindow_GivesNothing(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		clock.set(time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC))
		for _, kind := range []string{"fixed_window", "sliding_window", "sliding_log"} {
			req := requestOf(Charge{Rule: compile(t, rule.Spec{Kind: kind, Rate: "10/min"}), Cost: 3})
			d := mustConsume(t, l, req)
			for range 2 { // three tokens in each of the next windows
				clock.advance(time.Minute)
				mustConsume(t, l, req)
			}
			before := mustPeek(t, l, req).Verdicts[0]
			mustRefund(t, l, d, req)
			if after := mustPeek(t, l, req).Verdicts[0]; after.Remaining != before.Remaining || after.Reset != before.Reset {
				t.Errorf("%s: %d left before the refund, %d after it", kind, before.Remaining, after.Remaining)
			}
		}
	})
}

// TestShadow_Twin_WouldDenyTheSame: for the same sequence of requests, a shadow rule reports the same denials that an
// enforced rule makes.
func TestShadow_Twin_WouldDenyTheSame(t *testing.T) {
	client := parallelClient(t)
	var clock testClock
	limiters := []*Limiter{clock.limiter(t, client), clock.limiter(t, nil)}
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		kind := rapid.SampledFrom(kinds()).Draw(t, "kind")
		spec := rule.Spec{ID: "twin", Kind: kind.String(), Rate: rapid.SampledFrom([]string{"3/s", "7/3s", "5/min"}).Draw(t, "rate")}
		live := compile(t, spec)
		spec.Shadow = true
		shadow := compile(t, spec)
		l := rapid.SampledFrom(limiters).Draw(t, "where")
		clock.us.Store(worldStart + int64(run)*int64(time.Hour/time.Microsecond))
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			clock.us.Add(rapid.Int64Range(0, 900_000).Draw(t, "us"))
			cost := rapid.Int64Range(1, 8).Draw(t, "cost")
			a := mustConsume(t, l, requestFor(fmt.Sprint("live-", run), live, "", cost))
			b := mustConsume(t, l, requestFor(fmt.Sprint("shadow-", run), shadow, "", cost))
			require.True(t, a.Verdicts[0].Allowed == b.Verdicts[0].Allowed && a.Allowed == a.Verdicts[0].Allowed &&
				b.Allowed, "live says %+v, its shadow %+v", a, b)
		}
	})
}

// TestLeakyBucket_SpacesRequests: the Delay of each request is the time until all requests before it are processed.
func TestLeakyBucket_SpacesRequests(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		r := compile(t, rule.Spec{Kind: "leaky_bucket", Rate: "3/s", Burst: 4}) // one request every third of a second
		req := func(cost int64) Request { return requestOf(Charge{Rule: r, Cost: cost}) }
		for i, want := range []int64{0, 333_334, 666_667, 1_000_000} {
			peeked, d := mustPeek(t, l, req(1)).Verdicts[0], mustConsume(t, l, req(1))
			if got := d.Verdicts[0].Delay; got != rule.Micros(want) || peeked.Delay != got || !d.Allowed {
				t.Errorf("request %d waits %s (%s peeked), want %d us", i, got, peeked.Delay, want)
			}
		}
		v := mustConsume(t, l, req(1)).Verdicts[0]
		assert.True(t, !v.Allowed && v.Delay == 0 && v.RetryAfter == 333_334*time.Microsecond, "beyond the queue: %+v", v)
		clock.advance(time.Second) // one request is left in the queue
		v = mustConsume(t, l, req(3)).Verdicts[0]
		assert.True(t, v.Allowed && v.Delay == 333_334*time.Microsecond, "behind one: %+v", v)
		// If another rule denies the request, the leaky bucket is not charged. Its verdict still shows a Delay.
		full := compile(t, rule.Spec{ID: "full", Rate: "1/day"})
		mustConsume(t, l, requestOf(Charge{Rule: full}))
		clock.advance(time.Second)
		d := mustConsume(t, l, requestOf(Charge{Rule: r}, Charge{Rule: full}))
		v = d.Verdicts[0]
		assert.True(t, !d.Allowed && v.Allowed && v.Delay == 333_334*time.Microsecond, "beside another: %+v", d)
	})
}

// TestKinds_KeepTheirBucketsApart: when the kind of a rule changes, the rule has new buckets and does not read the
// buckets of its old kind.
func TestKinds_KeepTheirBucketsApart(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, _ *testClock) {
		for _, kind := range kinds() {
			r := compile(t, rule.Spec{Kind: kind.String(), Rate: "5/day"})
			mustPass(t, l, requestOf(Charge{Rule: r, Cost: 5}))
		}
	})
}

// TestKinds_RedisAway_ContinueFromItsLastLevel: when Redis goes away, a process does not begin with an unused bucket.
// It continues from the level in Redis's last reply, with its share of the rule.
func TestKinds_RedisAway_ContinueFromItsLastLevel(t *testing.T) {
	t.Parallel()
	var rules []*rule.Rule
	for _, kind := range kinds() {
		rules = append(rules, compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: "100/30d"}))
	}
	req := func(tenant string, cost int64) Request { return requestOn(tenant, cost, rules...) }
	l := away(t, settings{Replicas: func() *replica.Set { return replica.Anonymous(4) }}, func(l *Limiter) {
		for tenant, cost := range map[string]int64{"heavy": 100, "half": 50, "spent": 99} {
			d := mustConsume(t, l, req(tenant, cost))
			assert.True(t, d.Allowed && !d.Degraded, "%s: %+v", tenant, d)
		}
		mustPeek(t, l, req("idle", 1))
	})
	for tenant, want := range map[string]int64{"heavy": 0, "half": 12, "spent": 0, "idle": 25, "unknown": 25} {
		for i, v := range mustPeek(t, l, req(tenant, 1)).Verdicts {
			assert.True(t, v.Remaining == want && v.Limit == 25 && v.Allowed == (want > 0),
				"%s, %s: %d of %d left, want %d of 25", tenant, rules[i].Kind, v.Remaining, v.Limit, want)
		}
	}
	for n := range int64(12) {
		d := mustConsume(t, l, req("half", 1))
		assert.True(t, d.Allowed && d.Verdicts[4].Remaining == 11-n, "request %d of the share: %+v", n, d)
	}
	d := mustConsume(t, l, req("half", 1))
	for i, v := range d.Verdicts {
		assert.True(t, !v.Allowed && v.RetryAfter > 0, "%s beyond the share: %+v", rules[i].Kind, v)
	}
	// The cost is more than this replica's share and less than the rule's capacity, so the verdict is not Never.
	v := mustConsume(t, l, req("idle", 26)).Verdicts[0]
	assert.True(t, !v.Allowed && !v.Never && v.RetryAfter >= redisstore.RetryAfter, "26 of a share of 25: %+v", v)
	v = mustConsume(t, l, req("idle", 101)).Verdicts[0]
	assert.True(t, !v.Allowed && v.Never, "101 of 100: %+v", v)
	// A charge of this process is refunded in this process.
	taken := mustConsume(t, l, req("idle", 5))
	mustRefund(t, l, taken, req("idle", 5))
	for i, v := range mustPeek(t, l, req("idle", 1)).Verdicts {
		assert.True(t, v.Remaining == 25, "%s: %d left after the refund", rules[i].Kind, v.Remaining)
	}
}

// TestKinds_ConcurrentUse_AdmitTheCapacity: many clients send requests at the same time. Each request charges a rule
// of every kind. Exactly the smallest capacity is admitted.
func TestKinds_ConcurrentUse_AdmitTheCapacity(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		var charges []Charge
		for i, kind := range kinds() {
			charges = append(charges, Charge{Rule: compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: fmt.Sprintf("%d/30d", 90+i)})})
		}
		var admitted atomic.Int64
		testenv.Together(16, func(_ int) {
			for range 10 {
				d, err := l.Consume(context.Background(), requestOf(charges...))
				if !assert.NoError(t, err) {
					return
				}
				if !d.Allowed {
					continue
				}
				if admitted.Add(1)%3 == 0 { // every third admitted request is refunded
					admitted.Add(-1)
					_, err = l.Refund(context.Background(), d.Charged(requestOf(charges...)))
					assert.NoError(t, err)
				}
			}
		})
		for _, v := range mustPeek(t, l, requestOf(charges...)).Verdicts {
			got := v.Limit - v.Remaining
			assert.True(t, got == admitted.Load(), "%s counts %d, %d were admitted", v.Rule.Kind, got, admitted.Load())
		}
		all := admitted.Load() + exhaust(t, l, requestOf(charges...))
		assert.True(t, all == 90, "%d admitted, want 90", all)
	})
}

// TestRule_Changed_KeepsWhatWasTaken: if a rule's capacity changes, the number of taken tokens stays the same. So a
// larger capacity adds exactly the difference. Taken tokens come back at the same time as without the change.
func TestRule_Changed_KeepsWhatWasTaken(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for _, kind := range kinds() {
			r := func(count int64) *rule.Rule {
				spec := rule.Spec{Kind: kind.String(), Rate: fmt.Sprintf("%d/min", count)}
				if kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket {
					spec.Rate, spec.Burst = "6/min", count
				}
				return compile(t, spec)
			}
			clock.set(time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC))
			for range 8 { // taken a second apart, so they come back a second apart
				mustConsume(t, l, requestOf(Charge{Rule: r(10)}))
				clock.advance(time.Second)
			}
			more, before := mustPeek(t, l, requestOf(Charge{Rule: r(14)})).Verdicts[0], mustPeek(t, l, requestOf(Charge{Rule: r(10)})).Verdicts[0]
			assert.True(t, more.Remaining == before.Remaining+4,
				"%s: %d left of 10, %d of 14", kind, before.Remaining, more.Remaining)
			less := requestOf(Charge{Rule: r(5)})
			v := mustPeek(t, l, less).Verdicts[0]
			assert.True(t, v.Remaining == 0 && !v.Allowed && v.Next == v.RetryAfter && v.Next > 0,
				"%s: of 5, after 8 were taken: %+v", kind, v)
			clock.advance(v.Next - time.Microsecond)
			v = mustPeek(t, l, less).Verdicts[0]
			assert.True(t, v.Remaining == 0 && !v.Allowed, "%s: a microsecond early: %+v", kind, v)
			clock.advance(time.Microsecond)
			v = mustPeek(t, l, less).Verdicts[0]
			assert.True(t, v.Remaining >= 1 && v.Allowed, "%s: at Next: %+v", kind, v)
		}
	})
}
