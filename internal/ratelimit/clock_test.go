package ratelimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

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
	client := parallelClient(t)
	for _, step := range []time.Duration{time.Microsecond, time.Millisecond, 4 * time.Second, 5 * time.Second, 5*time.Second + time.Microsecond, time.Hour, 24 * time.Hour} {
		for _, o := range []rule.Op{rule.Consume, rule.Peek} {
			now := worldStart
			metrics := NewMetrics(nil)
			l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }, Metrics: metrics})
			r := compile(t, rule.Spec{Rate: "10/min", Burst: 10})
			req := Request{Tenant: fmt.Sprintf("acme-%d-%d", step, o), Charges: []Charge{{Rule: r}}}
			exhaust(t, l, req)
			require.Zero(t, remaining(t, l, req), "left")

			now -= step.Microseconds()
			wait := mustPeek(t, l, req).Verdicts[0].RetryAfter
			longest := 6*time.Second + min(step, 5*time.Second)
			assert.True(t, wait <= longest, "step of %s: retry after %s, at most %s", step, wait, longest)
			// Requests are denied all the time. The denied requests must not prevent the bucket from being refilled.
			end := now + wait.Microseconds()
			for now < end-1000 {
				now += 100_000
				now = min(now, end-1)
				d := testenv.Must(t).Get(l.decide(context.Background(), req, o))
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
			assert.LessOrEqual(t, remaining(t, l, req), int64(10), "step of %s: left of 10", step)
		}
	}
}

func TestRule_Changed_KeepsTheDebt(t *testing.T) {
	t.Parallel()
	now := worldStart
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: func() int64 { return now }})
	with := func(rate string, burst int64) Request {
		return requestOf(Charge{Rule: compile(t, rule.Spec{Rate: rate, Burst: burst})})
	}
	hundred := with("1/s", 100)
	mustConsume(t, l, requestOf(Charge{Rule: hundred.Charges[0].Rule, Cost: 60}))
	assert.EqualValues(t, 90, remaining(t, l, with("1/s", 150)), "left: a larger burst adds the difference")
	v := mustPeek(t, l, with("1/s", 50)).Verdicts[0]
	assert.True(t, v.Remaining == 0 && !v.Allowed && v.RetryAfter == 11*time.Second, "a smaller burst gives nothing away: %+v", v)
	assert.EqualValues(t, 40, remaining(t, l, with("7/min", 100)), "left: another rate keeps the debt in tokens")
	assert.EqualValues(t, 40, remaining(t, l, hundred), "left: looking at it has changed it")
}

func TestBucket_FullAndExpired_ChangesNothing(t *testing.T) {
	client := parallelClient(t)
	l := patientLimiter(t, client, settings{})
	r := compile(t, rule.Spec{Rate: "20/s", Burst: 4}) // full again in 200 ms; the key lives a second longer
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 4}}}
	key, _ := r.BucketKey("acme", "")
	mustConsume(t, l, req)
	lives := client.PTTL(t.Context(), key).Val() // read before the peek: a delay only makes it longer
	full := mustPeek(t, l, req).Verdicts[0].Reset
	assert.True(t, lives >= full+500*time.Millisecond, "expiry after %s makes it full, due after %s", lives, full)
	testenv.Eventually(t, func() bool { return client.Exists(t.Context(), key).Val() == 0 }, "the key expires")
	assert.EqualValues(t, 4, remaining(t, l, req), "left after expiry")
}
