package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func TestVerdict_RetryAfter_IsExactToTheMicrosecond(t *testing.T) {
	t.Parallel()
	now := worldStart
	redisLimiter := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: func() int64 { return now }})
	clock := time.UnixMicro(now)
	localLimiter := patientLimiter(t, nil, settings{Now: func() time.Time { return clock }})
	advance := func(d time.Duration) { now, clock = now+d.Microseconds(), clock.Add(d) }
	for _, rate := range []string{"7/s", "1/3s", "1000000/s", "999983/min", "1/day"} {
		r := compile(t, rule.Spec{ID: "rule-" + strings.ReplaceAll(rate, "/", "-"), Rate: rate, Burst: 5})
		for _, l := range []*Limiter{redisLimiter, localLimiter} {
			req := func(cost int64) Request {
				return Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: cost}}}
			}
			mustConsume(t, l, req(5))
			denied := mustConsume(t, l, req(3)).Verdicts[0]
			advance(denied.RetryAfter - time.Microsecond)
			if d := mustConsume(t, l, req(3)); d.Allowed || d.Verdicts[0].RetryAfter != time.Microsecond {
				t.Errorf("%s: allowed %v a microsecond early, retry after %s", rate, d.Allowed, d.Verdicts[0].RetryAfter)
			}
			advance(time.Microsecond)
			d := mustConsume(t, l, req(3))
			assert.True(t, d.Allowed, "%s: denied after RetryAfter: %+v", rate, d.Verdicts[0])
			reset := mustPeek(t, l, req(1)).Verdicts[0].Reset
			advance(reset - time.Microsecond)
			if v := mustPeek(t, l, req(1)).Verdicts[0]; v.Reset != time.Microsecond || v.Next != time.Microsecond || v.Remaining != 4 {
				t.Errorf("%s: a microsecond before Reset: %+v", rate, v)
			}
			advance(time.Microsecond)
			v := mustPeek(t, l, req(1)).Verdicts[0]
			assert.True(t, v.Reset == 0 && v.Next == 0 && v.Remaining == 5, "%s: at Reset: %+v", rate, v)
		}
	}
}

// TestBucket_FractionsAreNotLost: a bucket must be refilled as fast with many requests as without requests. So a
// decision may not round away fractions of a token.
func TestBucket_FractionsAreNotLost(t *testing.T) {
	t.Parallel()
	now := worldStart
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: func() int64 { return now }})
	r := compile(t, rule.Spec{Rate: "7/min", Burst: 100})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 100}}})
	admitted := 0
	for range 3000 { // 10 minutes, five requests per second: 70 tokens come back
		now += 200_000
		if mustConsume(t, l, req).Allowed {
			admitted++
		}
	}
	assert.Equal(t, 70, admitted, "admitted in ten minutes at 7/min")
}

// TestClock_SetBack_GrantsNothingStarvesNobody: when the clock is set back, a bucket must not be refilled twice for
// the same time, because it would admit too much. It must not wait until the clock has caught up, because it would
// deny every request until then.
func TestClock_SetBack_GrantsNothingStarvesNobody(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	for _, step := range []time.Duration{time.Microsecond, time.Millisecond, 4 * time.Second, 5 * time.Second, 5*time.Second + time.Microsecond, time.Hour, 24 * time.Hour} {
		for _, o := range []rule.Op{rule.Consume, rule.Peek} {
			now := worldStart
			metrics := NewMetrics(nil)
			l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }, Metrics: metrics})
			r := compile(t, rule.Spec{Rate: "10/min", Burst: 10})
			req := Request{Tenant: fmt.Sprintf("acme-%d-%d", step, o), Charges: []Charge{{Rule: r}}}
			exhaust(t, l, req)
			require.Zero(t, mustPeek(t, l, req).Verdicts[0].Remaining, "left")

			now -= step.Microseconds()
			wait := mustPeek(t, l, req).Verdicts[0].RetryAfter
			longest := 6*time.Second + min(step, 5*time.Second)
			assert.True(t, wait <= longest, "step of %s: retry after %s, at most %s", step, wait, longest)
			// Requests are denied all the time. The denied requests must not prevent the bucket from being refilled.
			end := now + wait.Microseconds()
			for now < end-1000 {
				now += 100_000
				now = min(now, end-1)
				d, err := l.decide(context.Background(), req, o)
				require.NoError(t, err)
				require.False(t, d.Allowed, "step of %s: admitted %d us early", step, end-now)
			}
			now = end
			d := mustConsume(t, l, req)
			assert.True(t, d.Allowed, "step of %s, %v only: still denied after %s: %+v", step, o, wait, d.Verdicts[0])
			rebased := testutil.ToFloat64(metrics.rebased)
			assert.True(t, (rebased > 0) == (step > 5*time.Second), "step of %s: %v buckets rebased", step, rebased)
			// The clock is set forward again, so the same time passes twice. The bucket must not have more tokens
			// than the burst.
			now += step.Microseconds()
			got := mustPeek(t, l, req).Verdicts[0].Remaining
			assert.True(t, got <= 10, "step of %s: %d left of 10", step, got)
		}
	}
}

func TestRule_Changed_KeepsTheDebt(t *testing.T) {
	t.Parallel()
	now := worldStart
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: func() int64 { return now }})
	peek := func(r *rule.Rule) Verdict {
		return mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}).Verdicts[0]
	}
	hundred := compile(t, rule.Spec{Rate: "1/s", Burst: 100})
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: hundred, Cost: 60}}})
	v := peek(compile(t, rule.Spec{Rate: "1/s", Burst: 150}))
	assert.True(t, v.Remaining == 90, "a larger burst adds the difference: %d left, want 90", v.Remaining)
	v = peek(compile(t, rule.Spec{Rate: "1/s", Burst: 50}))
	assert.True(t, v.Remaining == 0 && !v.Allowed && v.RetryAfter == 11*time.Second, "a smaller burst gives nothing away: %+v", v)
	v = peek(compile(t, rule.Spec{Rate: "7/min", Burst: 100}))
	assert.True(t, v.Remaining == 40, "another rate keeps the debt in tokens: %d left, want 40", v.Remaining)
	v = peek(hundred)
	assert.True(t, v.Remaining == 40, "looking at it has changed it: %d left, want 40", v.Remaining)
}

func TestBucket_FullAndExpired_ChangesNothing(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	l := patientLimiter(t, client, settings{})
	r := compile(t, rule.Spec{Rate: "20/s", Burst: 4}) // full again in 200 ms; the key lives a second longer
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 4}}}
	key, _ := r.BucketKey("acme", "")
	mustConsume(t, l, req)
	lives := client.PTTL(t.Context(), key).Val() // read before the peek: a delay only makes it longer
	if full := mustPeek(t, l, req).Verdicts[0].Reset; lives < full+500*time.Millisecond {
		t.Errorf("full after %s, expired after %s: expiry makes it full", full, lives)
	}
	testenv.Eventually(t, func() bool { return client.Exists(t.Context(), key).Val() == 0 }, "the key expires")
	v := mustPeek(t, l, req).Verdicts[0]
	assert.True(t, v.Remaining == 4, "%d left after expiry", v.Remaining)
}
