package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// TestRefund_ReturnsTheVerdictsAfterIt: Refund returns the same verdicts as a peek after it, in the order of the
// charges. The test runs in Redis and in local mode.
func TestRefund_ReturnsTheVerdictsAfterIt(t *testing.T) {
	t.Parallel()
	for where, client := range bothStores(t) {
		l := patientLimiter(t, client, settings{})
		req := Request{Tenant: "acme"}
		for i, kind := range []string{"sliding_log", "token_bucket", "fixed_window", "leaky_bucket", "sliding_window"} {
			r := compile(t, rule.Spec{ID: fmt.Sprint("r", i), Kind: kind, Rate: fmt.Sprintf("%d/day", 9+i)})
			req.Charges = append(req.Charges, Charge{Rule: r, Cost: int64(1 + i)})
		}
		mustConsume(t, l, req)
		d := mustConsume(t, l, req)
		after, err := l.Refund(t.Context(), d.Charged(req))
		require.True(t, err == nil && len(after) == len(req.Charges), "%s: %+v, %v", where, after, err)
		for i, want := range mustPeek(t, l, req).Verdicts {
			got := after[i]
			assert.True(t, got.Rule == want.Rule && !got.Unknown && got.Remaining == want.Remaining &&
				got.Remaining == d.Verdicts[i].Remaining+int64(1+i), "%s: %s: %+v; a peek says %+v", where, want.Rule.Kind, got, want)
		}
	}
}

// TestRefund_OtherRate_GoesByTheRateOfTheBucket: a refund may be made with another rate than the charges, because an
// override of a subject is not known then. It gives back what has not come back at the rate of the bucket.
func TestRefund_OtherRate_GoesByTheRateOfTheBucket(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for i, tc := range []struct {
			rate, other string
			passed      time.Duration
		}{{"60/min", "7/min", 30 * time.Second}, {"6/min", "60/min", 5 * time.Minute}, {"60/min", "7/min", 0}} {
			spec := rule.Spec{ID: fmt.Sprint("r", i), Rate: tc.rate, Burst: 60}
			r := compile(t, spec)
			spec.Rate = tc.other
			all := requestOf(Charge{Rule: r, Cost: 60})
			d := mustConsume(t, l, all)
			clock.advance(tc.passed)
			want := int64(60)
			if tc.passed > 0 {
				mustPass(t, l, requestOf(Charge{Rule: r, Cost: 30}))
				want = 30
			}
			mustRefund(t, l, d, requestOf(Charge{Rule: compile(t, spec), Cost: 60}))
			assert.Equal(t, want, remaining(t, l, all), "%s, refunded at %s", tc.rate, tc.other)
		}
	})
}

// TestRefund_AfterOutage_GoesByTheClockOfRedis: during an outage a process decides a charge by its own clock. After the
// outage it refunds the charge in Redis, however wrong its own clock is.
func TestRefund_AfterOutage_GoesByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"behind": -80 * 24 * time.Hour, "ahead": 80 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, clock := newPlace(t), &movableClock{}
			clock.advance(skew)
			l := limiterOn(t, productionClient(t, at.url), settings{Now: clock.now})
			for _, kind := range []rule.Kind{rule.KindTokenBucket, rule.KindFixedWindow, rule.KindSlidingWindow} {
				r := slowRule(t, kind, 10)
				look := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Fresh: true}
				back := func() bool {
					clock.advance(redisstore.RetryAfter)
					return l.local.owing.Load() == 0 && mustPeek(t, l, look).Mode == ModeRedis
				}
				testenv.Eventually(t, back, "redis decides")
				at.server.Pause()
				testenv.Eventually(t, func() bool { _ = mustPeek(t, l, look); return isAway(l) }, "away")
				req := requestOf(Charge{Rule: r, Cost: 4})
				d := mustConsume(t, l, req)
				require.True(t, d.Allowed && d.Mode == ModeLocal, d)
				at.server.Resume()
				testenv.Eventually(t, back, "redis decides and has the charge")
				require.EqualValues(t, 6, remaining(t, l, look), "%s: left after the outage", kind)
				mustRefund(t, l, d, req)
				// The clock of the process has jumped by seconds since the charge, and a bucket refills for that long.
				assert.GreaterOrEqual(t, remaining(t, l, look), int64(9), "%s: left after the refund", kind)
			}
		})
	}
}
