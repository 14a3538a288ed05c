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
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// everywhere runs a test on Redis and in local mode: they promise the same.
func everywhere(t *testing.T, test func(t *testing.T, l *Limiter)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{}))
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, patientLimiter(t, nil, Config{}))
	})
}

func mustConsume(t testing.TB, l *Limiter, req Request) Decision {
	t.Helper()
	d, err := l.Consume(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustPeek(t testing.TB, l *Limiter, req Request) Decision {
	t.Helper()
	d, err := l.Peek(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConcurrentClientsAreAdmittedExactlyTheCapacity(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		const clients, each, capacity = 32, 40, 1000
		rule := compile(t, Spec{Rate: "1/day", Burst: capacity})
		wide := compile(t, Spec{ID: "wide", Rate: "1/day", Burst: 5000})
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range each {
					d, err := l.Consume(context.Background(), Request{Tenant: "acme", Charges: []Charge{{Rule: rule}, {Rule: wide}}})
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if admitted.Load() != capacity {
			t.Errorf("%d of %d admitted, want %d", admitted.Load(), clients*each, capacity)
		}
		if got := mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: wide}}}).Verdicts[0].Remaining; got != 4000 {
			t.Errorf("the other rule has %d left, want 4000: it must be charged for admitted requests only", got)
		}
	})
}

func TestNoIntervalAdmitsMoreThanBurstAndRefill(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		const burst, perSecond = 50, 700 // 7/10 of a token per ms: does not divide
		rule := compile(t, Spec{Rate: fmt.Sprintf("%d/s", perSecond), Burst: burst})
		var mu sync.Mutex
		var sent, answered []time.Time // of admitted requests
		deadline := time.Now().Add(500 * time.Millisecond)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for time.Now().Before(deadline) {
					from := time.Now()
					d, err := l.Consume(context.Background(), Request{Tenant: "acme", Charges: []Charge{{Rule: rule}}})
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						mu.Lock()
						sent, answered = append(sent, from), append(answered, time.Now())
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		// Requests i..j were all decided between the first sending and the last answer among them.
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
		if len(sent) < burst+perSecond/4 {
			t.Errorf("%d admitted in half a second: the refill is missing", len(sent))
		}
	})
}

func TestCostBeyondTheCapacityIsNever(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		rule, other := compile(t, Spec{Rate: "10/s"}), compile(t, Spec{ID: "other", Rate: "10/s"})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: rule, Cost: 11}, {Rule: other}}}
		d := mustConsume(t, l, req)
		if v := d.Verdicts[0]; d.Allowed || v.Allowed || !v.Never || v.RetryAfter != 0 || v.Remaining != 10 {
			t.Errorf("cost 11 of 10: %+v", d)
		}
		if v := d.Verdicts[1]; !v.Allowed || v.Never || v.Remaining != 10 {
			t.Errorf("the other rule: %+v", v)
		}
		req.Charges[0].Cost = 10
		if d := mustConsume(t, l, req); !d.Allowed || d.Verdicts[0].Remaining != 0 || d.Verdicts[1].Remaining != 9 {
			t.Errorf("cost 10 of 10: %+v", d)
		}
	})
}

func TestRetryAfterIsExactToTheMicrosecond(t *testing.T) {
	t.Parallel()
	now := worldStart
	redisLimiter := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{redisNow: func() int64 { return now }})
	clock := time.UnixMicro(now)
	localLimiter := patientLimiter(t, nil, Config{Now: func() time.Time { return clock }})
	advance := func(d time.Duration) { now, clock = now+d.Microseconds(), clock.Add(d) }
	for _, rate := range []string{"7/s", "1/3s", "1000000/s", "999983/min", "1/day"} {
		rule := compile(t, Spec{ID: "rule-" + strings.ReplaceAll(rate, "/", "-"), Rate: rate, Burst: 5})
		for _, l := range []*Limiter{redisLimiter, localLimiter} {
			req := func(cost int64) Request {
				return Request{Tenant: "acme", Charges: []Charge{{Rule: rule, Cost: cost}}}
			}
			mustConsume(t, l, req(5))
			denied := mustConsume(t, l, req(3)).Verdicts[0]
			advance(denied.RetryAfter - time.Microsecond)
			if d := mustConsume(t, l, req(3)); d.Allowed || d.Verdicts[0].RetryAfter != time.Microsecond {
				t.Errorf("%s: allowed %v a microsecond early, retry after %s", rate, d.Allowed, d.Verdicts[0].RetryAfter)
			}
			advance(time.Microsecond)
			if d := mustConsume(t, l, req(3)); !d.Allowed {
				t.Errorf("%s: denied after RetryAfter: %+v", rate, d.Verdicts[0])
			}
			reset := mustPeek(t, l, req(1)).Verdicts[0].Reset
			advance(reset - time.Microsecond)
			if v := mustPeek(t, l, req(1)).Verdicts[0]; v.Reset != time.Microsecond || v.Next != time.Microsecond || v.Remaining != 4 {
				t.Errorf("%s: a microsecond before Reset: %+v", rate, v)
			}
			advance(time.Microsecond)
			if v := mustPeek(t, l, req(1)).Verdicts[0]; v.Reset != 0 || v.Next != 0 || v.Remaining != 5 {
				t.Errorf("%s: at Reset: %+v", rate, v)
			}
		}
	}
}

// TestFractionsAreNotLost: a bucket that is asked often must refill as fast as one that is asked never.
func TestFractionsAreNotLost(t *testing.T) {
	t.Parallel()
	now := worldStart
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{redisNow: func() int64 { return now }})
	rule := compile(t, Spec{Rate: "7/min", Burst: 100})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: rule}}}
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: rule, Cost: 100}}})
	admitted := 0
	for range 3000 { // 10 minutes, five requests per second: 70 tokens come back
		now += 200_000
		if mustConsume(t, l, req).Allowed {
			admitted++
		}
	}
	if admitted != 70 {
		t.Errorf("%d admitted in ten minutes at 7/min", admitted)
	}
}

// TestClockSetBackGrantsNothingAndStarvesNobody: the danger is both ways. A refill that is paid twice is a leak; a bucket
// that waits for the clock to catch up is an outage, even if every single request is denied.
func TestClockSetBackGrantsNothingAndStarvesNobody(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	for _, step := range []time.Duration{time.Microsecond, time.Millisecond, 4 * time.Second, 5 * time.Second, 5*time.Second + time.Microsecond, time.Hour, 24 * time.Hour} {
		for _, o := range []op{opConsume, opPeek} {
			now := worldStart
			metrics := NewMetrics(nil)
			l := patientLimiter(t, client, Config{redisNow: func() int64 { return now }, Metrics: metrics})
			rule := compile(t, Spec{Rate: "10/min", Burst: 10})
			req := Request{Tenant: fmt.Sprintf("acme-%d-%d", step, o), Charges: []Charge{{Rule: rule}}}
			for mustConsume(t, l, req).Allowed {
			}
			if got := mustPeek(t, l, req).Verdicts[0].Remaining; got != 0 {
				t.Fatalf("%d left", got)
			}

			now -= step.Microseconds()
			wait := mustPeek(t, l, req).Verdicts[0].RetryAfter
			if longest := 6*time.Second + min(step, 5*time.Second); wait > longest {
				t.Errorf("step of %s: retry after %s, at most %s", step, wait, longest)
			}
			// Denied requests all the way: they must not keep the bucket from refilling.
			end := now + wait.Microseconds()
			for now < end-1000 {
				now += 100_000
				now = min(now, end-1)
				d, err := l.decide(context.Background(), req, o)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					t.Fatalf("step of %s: admitted %d us early", step, end-now)
				}
			}
			now = end
			if d := mustConsume(t, l, req); !d.Allowed {
				t.Errorf("step of %s, %v only: still denied after %s: %+v", step, o, wait, d.Verdicts[0])
			}
			if rebased := testutil.ToFloat64(metrics.rebased); (rebased > 0) != (step > 5*time.Second) {
				t.Errorf("step of %s: %v buckets rebased", step, rebased)
			}
			// And forth again: what passed twice is not paid twice beyond the burst.
			now += step.Microseconds()
			if got := mustPeek(t, l, req).Verdicts[0].Remaining; got > 10 {
				t.Errorf("step of %s: %d left of 10", step, got)
			}
		}
	}
}

func TestChangedRuleKeepsTheDebt(t *testing.T) {
	t.Parallel()
	now := worldStart
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{redisNow: func() int64 { return now }})
	peek := func(r *Rule) Verdict {
		return mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}).Verdicts[0]
	}
	hundred := compile(t, Spec{Rate: "1/s", Burst: 100})
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: hundred, Cost: 60}}})
	if v := peek(compile(t, Spec{Rate: "1/s", Burst: 150})); v.Remaining != 90 {
		t.Errorf("a larger burst adds the difference: %d left, want 90", v.Remaining)
	}
	if v := peek(compile(t, Spec{Rate: "1/s", Burst: 50})); v.Remaining != 0 || v.Allowed || v.RetryAfter != 11*time.Second {
		t.Errorf("a smaller burst gives nothing away: %+v", v)
	}
	if v := peek(compile(t, Spec{Rate: "7/min", Burst: 100})); v.Remaining != 40 {
		t.Errorf("another rate keeps the debt in tokens: %d left, want 40", v.Remaining)
	}
	if v := peek(hundred); v.Remaining != 40 {
		t.Errorf("looking at it has changed it: %d left, want 40", v.Remaining)
	}
}

func TestExpiryOfAFullBucketChangesNothing(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	l := patientLimiter(t, client, Config{})
	rule := compile(t, Spec{Rate: "20/s", Burst: 4}) // full again in 200 ms; the key lives a second longer
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: rule, Cost: 4}}}
	key := bucketKey("acme", rule, "")
	mustConsume(t, l, req)
	wasFullAt := time.Duration(-1)
	started := time.Now()
	for client.Exists(context.Background(), key).Val() == 1 {
		if v := mustPeek(t, l, req).Verdicts[0]; v.Remaining == 4 && wasFullAt < 0 {
			wasFullAt = time.Since(started)
		}
		if time.Since(started) > patience {
			t.Fatal("the key never expires")
		}
	}
	if wasFullAt < 0 || wasFullAt > time.Since(started)-500*time.Millisecond {
		t.Errorf("full after %s, expired after %s: expiry made it full", wasFullAt, time.Since(started))
	}
	if v := mustPeek(t, l, req).Verdicts[0]; v.Remaining != 4 {
		t.Errorf("%d left after expiry", v.Remaining)
	}
}

func TestRefundGivesBackWhatWasChargedAndNoMore(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		ctx := context.Background()
		live := compile(t, Spec{ID: "live", Rate: "1/day", Burst: 10})
		shadow := compile(t, Spec{ID: "shadow", Rate: "1/day", Burst: 2, Shadow: true})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: live, Cost: 3}, {Rule: shadow, Cost: 2}}}
		left := func() string {
			d := mustPeek(t, l, req)
			return fmt.Sprint(d.Verdicts[0].Remaining, d.Verdicts[1].Remaining)
		}
		first := mustConsume(t, l, req)
		second := mustConsume(t, l, req) // the shadow rule would deny: it is not charged
		if got := left(); got != "4 0" {
			t.Fatalf("left %s, want 4 0", got)
		}
		if err := l.Refund(ctx, second.Charged(req)); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != "7 0" {
			t.Errorf("left %s after the second's refund, want 7 0", got)
		}
		for range 2 { // a refund that comes twice never makes a bucket more than full
			if err := l.Refund(ctx, first.Charged(req)); err != nil {
				t.Fatal(err)
			}
		}
		if got := left(); got != "10 2" {
			t.Errorf("left %s, want 10 2", got)
		}
		if err := l.Refund(ctx, Decision{}.Charged(req)); err != nil {
			t.Errorf("a refund of nothing: %v", err)
		}
	})
}

func TestShadowRuleWouldDenyWhatItWouldDenyAlone(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	now := worldStart
	l := patientLimiter(t, client, Config{redisNow: func() int64 { return now }})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		spec := Spec{ID: "rule", Rate: "3/s", Burst: rapid.Int64Range(1, 10).Draw(t, "burst")}
		enforced, err := Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Shadow = true
		shadow, err := Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += rapid.Int64Range(0, 700_000).Draw(t, "us")
			cost := rapid.Int64Range(1, spec.Burst+1).Draw(t, "cost")
			var said [2]Decision
			for i, r := range []*Rule{&enforced, &shadow} {
				var err error
				req := Request{Tenant: fmt.Sprintf("t%d-%d", i, run), Charges: []Charge{{Rule: r, Cost: cost}}}
				if said[i], err = l.Consume(context.Background(), req); err != nil {
					t.Fatal(err)
				}
			}
			if !said[1].Allowed {
				t.Fatal("a shadow rule denied")
			}
			a, b := said[0].Verdicts[0], said[1].Verdicts[0]
			if a.Shadow || !b.Shadow {
				t.Fatal("the verdicts do not say which is shadow")
			}
			a.Rule, b.Rule, b.Shadow = nil, nil, false
			if a != b {
				t.Fatalf("enforced %+v, shadow %+v", a, b)
			}
		}
	})
}

func TestShadowRuleIsNotChargedForDeniedRequests(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		shadow := compile(t, Spec{ID: "shadow", Rate: "1/day", Burst: 10, Shadow: true})
		empty := compile(t, Spec{ID: "empty", Rate: "1/day", Burst: 1})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: shadow}, {Rule: empty}}}
		for range 3 {
			mustConsume(t, l, req)
		}
		if got := mustPeek(t, l, req).Verdicts[0].Remaining; got != 9 {
			t.Errorf("%d left, want 9", got)
		}
	})
}

func TestUnreadableBucketDecidesByPolicyAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	ctx := context.Background()
	metrics := NewMetrics(nil)
	l := patientLimiter(t, client, Config{Metrics: metrics})
	healthy := compile(t, Spec{ID: "healthy", Rate: "1/day", Burst: 10})
	for policy, check := range map[string]func(r *Rule, req Request){
		"closed": func(_ *Rule, req Request) {
			if _, err := l.Consume(ctx, req); !errors.Is(err, ErrUnavailable) {
				t.Errorf("closed: %v", err)
			}
		},
		"open": func(_ *Rule, req Request) {
			if d := mustConsume(t, l, req); !d.Allowed || !d.Degraded || !d.Verdicts[0].Unknown {
				t.Errorf("open: %+v", d)
			}
		},
		"local_share": func(_ *Rule, req Request) { // bounded, not unlimited
			admitted := 0
			for range 20 {
				if mustConsume(t, l, req).Allowed {
					admitted++
				}
			}
			if admitted != 5 {
				t.Errorf("local_share: %d admitted, want the burst of 5", admitted)
			}
		},
		"shadow": func(_ *Rule, req Request) {
			if d := mustConsume(t, l, req); !d.Allowed || d.Degraded || !d.Verdicts[0].Unknown || d.Mode != ModeRedis {
				t.Errorf("shadow: %+v", d)
			}
		},
	} {
		spec := Spec{ID: "rule", Rate: "1/day", Burst: 5, OnBackendError: policy}
		if policy == "shadow" {
			spec.OnBackendError, spec.Shadow = "", true
		}
		rule := compile(t, spec)
		req := Request{Tenant: "t-" + strings.ReplaceAll(policy, "_", "-"), Charges: []Charge{{Rule: rule}, {Rule: healthy}}}
		key := bucketKey(req.Tenant, rule, "")
		client.Set(ctx, key, "not a bucket", 0)
		check(rule, req)
		if got := client.Get(ctx, key).Val(); got != "not a bucket" {
			t.Errorf("%s: the value became %q", policy, got)
		}
		if policy == "shadow" {
			continue
		}
		if n := client.Exists(ctx, bucketKey(req.Tenant, healthy, "")).Val(); n != 0 {
			t.Errorf("%s: the other rule was charged in Redis", policy)
		}
	}
	if l.Degraded() {
		t.Error("an unreadable bucket opened the breaker")
	}
	if testutil.ToFloat64(metrics.corrupt) == 0 {
		t.Error("it was not counted")
	}
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, nil, Config{})
	rule := compile(t, Spec{Rate: "10/s"})
	var seventeen []Charge
	for i := range 17 {
		seventeen = append(seventeen, Charge{Rule: compile(t, Spec{ID: fmt.Sprintf("r%d", i), Rate: "1/s"})})
	}
	for name, tc := range map[string]struct {
		req   Request
		field string
	}{
		"no tenant":          {Request{}, "tenant"},
		"tenant with braces": {Request{Tenant: "a}{b"}, "tenant"},
		"tenant newline":     {Request{Tenant: "a\n"}, "tenant"},
		"tenant of 129":      {Request{Tenant: strings.Repeat("a", 129)}, "tenant"},
		"17 rules":           {Request{Tenant: "a", Charges: seventeen}, "charges"},
		"no rule":            {Request{Tenant: "a", Charges: []Charge{{}}}, "charges[0].rule"},
		"rule not compiled":  {Request{Tenant: "a", Charges: []Charge{{Rule: &Rule{ID: "x"}}}}, "charges[0].rule"},
		"negative cost":      {Request{Tenant: "a", Charges: []Charge{{Rule: rule, Cost: -1}}}, "charges[0].cost"},
		"cost of 2^53":       {Request{Tenant: "a", Charges: []Charge{{Rule: rule, Cost: 1 << 53}}}, "charges[0].cost"},
		"raw dimension":      {Request{Tenant: "a", Charges: []Charge{{Rule: rule, Dimension: "alice}"}}}, "charges[0].dimension"},
		"same bucket twice":  {Request{Tenant: "a", Charges: []Charge{{Rule: rule}, {Rule: rule, Cost: 2}}}, "charges[1].rule"},
	} {
		for _, do := range []func(context.Context, Request) error{
			func(ctx context.Context, r Request) error { _, err := l.Consume(ctx, r); return err },
			func(ctx context.Context, r Request) error { _, err := l.Peek(ctx, r); return err },
			l.Refund,
		} {
			var field *FieldError
			if err := do(context.Background(), tc.req); !errors.As(err, &field) || field.Field != tc.field {
				t.Errorf("%s: %v; want an error on %s", name, err, tc.field)
			}
		}
	}
	ok := Request{Tenant: strings.Repeat("a", 128), Charges: append(seventeen[:15:15], Charge{Rule: rule, Dimension: Dimension("x")})}
	if d := mustConsume(t, l, ok); !d.Allowed {
		t.Error("16 rules are refused")
	}
	if d := mustConsume(t, l, Request{Tenant: "a"}); !d.Allowed || len(d.Verdicts) != 0 {
		t.Errorf("a request without rules: %+v", d)
	}
}

func TestDimensionSeparatesValuesAndHidesThem(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("}{\n\x00", 250_000)
	seen := make(map[string][]string)
	for _, values := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {hostile}, {"a\x00b"}, {"a", "b"}} {
		d := Dimension(values...)
		if !isDimension(d) || len(d) != 32 {
			t.Errorf("Dimension gives %q", d)
		}
		if other, dup := seen[d]; dup {
			t.Errorf("%.20q and %.20q share a bucket", values, other)
		}
		seen[d] = values
		if d != Dimension(values...) {
			t.Error("Dimension is not a function")
		}
	}
}

func TestBucketsOfOneTenantShareASlotAndNothingElse(t *testing.T) {
	t.Parallel()
	a, b := compile(t, Spec{ID: "a", Rate: "1/s"}), compile(t, Spec{ID: "a:b", Rate: "1/s"})
	keys := []string{
		bucketKey("acme", a, ""), bucketKey("acme", b, ""), bucketKey("acme", a, Dimension("b")), bucketKey("acme:tb:a", a, ""),
	}
	seen := make(map[string]bool)
	for _, key := range keys {
		if seen[key] {
			t.Errorf("%s is two buckets", key)
		}
		seen[key] = true
	}
	if keys[0] != "rl:{acme}:tb:a:-" {
		t.Errorf("the key is %s", keys[0])
	}
}

func TestStopFinishesWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	l := New(patientClient(t, testenv.Redis(t)), Config{Budget: patience})
	rule := compile(t, Spec{Rate: "1/day", Burst: 100_000})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: rule}}}
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
				if err != nil || !d.Allowed || d.Degraded {
					t.Errorf("%+v, %v", d, err)
					return
				}
				if answered.Add(1) == 1000 {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(patience):
		t.Error("a thousand requests take too long")
	}
	if err := l.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	load.Wait()
	again := patientLimiter(t, l.client, Config{})
	if left := mustPeek(t, again, req).Verdicts[0].Remaining; left != 100_000-answered.Load() {
		t.Errorf("%d charged, %d answered", 100_000-left, answered.Load())
	}
	if err := l.Refund(context.Background(), req); !errors.Is(err, ErrStopped) {
		t.Errorf("a refund after Stop: %v", err)
	}
}

func TestClientWhoLeavesGetsItsContextsError(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{})
	rule := compile(t, Spec{Rate: "1/day"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Consume(ctx, Request{Tenant: "acme", Charges: []Charge{{Rule: rule}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestMetricsCountVerdictsWithoutTenants(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{Metrics: NewMetrics(reg)})
	live, shadow := compile(t, Spec{ID: "live", Rate: "1/day"}), compile(t, Spec{ID: "shadow", Rate: "1/day", Shadow: true})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: live}, {Rule: shadow}}}
	mustConsume(t, l, req)
	mustConsume(t, l, req)
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: live, Cost: 2}, {Rule: shadow, Cost: 2}}})
	want := `
# HELP quotasvc_limit_decisions_total Verdicts per rule, of checks and charges. Outcomes would_deny and would_never are a shadow rule's.
# TYPE quotasvc_limit_decisions_total counter
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="allow",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="allow",rule="shadow"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="deny",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="never",rule="live"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="would_deny",rule="shadow"} 1
quotasvc_limit_decisions_total{kind="token_bucket",mode="redis",outcome="would_never",rule="shadow"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "quotasvc_limit_decisions_total"); err != nil {
		t.Error(err)
	}
}
