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

func zone(t tester, name string) *time.Location {
	t.Helper()
	return testenv.Must(t).Get(time.LoadLocation(name))
}

// TestFixedWindow_FollowsTheCalendar tests the starts and ends of windows. There are days of 23 and 25 hours, and a
// day that does not exist in its zone.
func TestFixedWindow_FollowsTheCalendar(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for i, tc := range []struct {
			rate, zone, at, start, end string // RFC 3339
		}{
			{"9/min", "", "2026-10-05T12:34:56Z", "2026-10-05T12:34:00Z", "2026-10-05T12:35:00Z"},
			{"9/min", "Asia/Kathmandu", "2026-10-05T12:34:56Z", "2026-10-05T12:34:00Z", "2026-10-05T12:35:00Z"},
			{"9/h", "", "2026-10-05T12:34:56Z", "2026-10-05T12:00:00Z", "2026-10-05T13:00:00Z"},
			{"9/60min", "Asia/Kathmandu", "2026-10-05T12:34:56Z", "2026-10-05T12:15:00Z", "2026-10-05T13:15:00Z"},
			{"9/day", "", "2026-10-05T12:34:56Z", "2026-10-05T00:00:00Z", "2026-10-06T00:00:00Z"},
			{"9/24h", "Europe/Berlin", "2026-10-05T22:00:00Z", "2026-10-05T22:00:00Z", "2026-10-06T22:00:00Z"},
			{"9/day", "Europe/Berlin", "2026-10-05T21:59:59.999999Z", "2026-10-04T22:00:00Z", "2026-10-05T22:00:00Z"},
			{"9/day", "Europe/Berlin", "2027-03-28T12:00:00Z", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"}, // 23 hours
			{"9/day", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // 25 hours
			{"9/day", "Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
			{"9/day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}, // the 30th was skipped
			{"9/week", "", "2026-10-05T00:00:00Z", "2026-10-05T00:00:00Z", "2026-10-12T00:00:00Z"},            // a Monday
			{"9/7d", "", "2026-10-04T23:59:59Z", "2026-09-28T00:00:00Z", "2026-10-05T00:00:00Z"},
			{"9/week", "America/New_York", "2026-11-01T12:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"},
			{"9/month", "", "2027-02-28T23:59:59Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"},
			{"9/month", "", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
			{"9/month", "America/New_York", "2026-11-01T03:59:59Z", "2026-10-01T04:00:00Z", "2026-11-01T04:00:00Z"},
			// Windows of other lengths are counted from 1970-01-01 UTC, in any zone.
			{"9/90min", "Asia/Kathmandu", "2026-10-05T12:34:56Z", "2026-10-05T12:00:00Z", "2026-10-05T13:30:00Z"},
			{"9/2d", "Europe/Berlin", "2026-10-05T12:00:00Z", "2026-10-04T00:00:00Z", "2026-10-06T00:00:00Z"},
			{"9/250ms", "", "2026-10-05T12:00:00.3Z", "2026-10-05T12:00:00.25Z", "2026-10-05T12:00:00.5Z"},
		} {
			name := fmt.Sprintf("%s in %q at %s", tc.rate, tc.zone, tc.at)
			spec := rule.Spec{ID: fmt.Sprint("rule-", i), Kind: "fixed_window", Rate: tc.rate}
			if tc.zone != "" {
				spec.Zone = zone(t, tc.zone)
			}
			req := requestOf(Charge{Rule: compile(t, spec)})
			instant := func(s string) time.Time {
				return testenv.Must(t).Get(time.Parse(time.RFC3339Nano, s))
			}
			start, at, end := instant(tc.start), instant(tc.at), instant(tc.end)
			consume := func(at time.Time, want bool) Verdict {
				t.Helper()
				clock.set(at)
				v := mustConsume(t, l, req).Verdicts[0]
				assert.True(t, v.Allowed == want, "%s: at %s: %+v", name, at, v)
				return v
			}
			for range 9 {
				consume(start.Add(-time.Microsecond), true)
			}
			consume(start.Add(-time.Microsecond), false)
			for range 8 { // the new window begins with no tokens taken
				consume(start, true)
			}
			v := consume(at, true)
			assert.True(t, v.Remaining == 0 && v.Reset == end.Sub(at) && v.Next == v.Reset,
				"%s: %+v, want reset in %s", name, v, end.Sub(at))
			v = consume(end.Add(-time.Microsecond), false)
			assert.True(t, v.RetryAfter == time.Microsecond, "%s: %+v", name, v)
			consume(end, true)
		}
	})
}

// TestFixedWindow_ZoneOfTheCharge_OverridesTheRules: a Charge with a Zone uses it instead of the rule's zone, as for
// rules with `timezone: tenant`.
func TestFixedWindow_ZoneOfTheCharge_OverridesTheRules(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		clock.set(time.Date(2026, 10, 5, 23, 0, 0, 0, time.UTC))
		r := compile(t, rule.Spec{Kind: "fixed_window", Rate: "9/day", Zone: zone(t, "Europe/Berlin")})
		for tenant, tc := range map[string]struct {
			zone *time.Location
			want time.Duration
		}{"the-rules": {nil, 23 * time.Hour}, "utc": {time.UTC, time.Hour}, "nepal": {zone(t, "Asia/Kathmandu"), 19*time.Hour + 15*time.Minute}} {
			v := mustConsume(t, l, Request{Tenant: tenant, Charges: []Charge{{Rule: r, Zone: tc.zone}}}).Verdicts[0]
			assert.True(t, v.Reset == tc.want, "%s: resets in %s, want %s", tenant, v.Reset, tc.want)
		}
	})
}

// TestFixedWindow_AnotherCalendar_KeepsTheCount: if the zone of a rule changes, its window begins at another time,
// but tokens taken in the present window stay taken.
func TestFixedWindow_AnotherCalendar_KeepsTheCount(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		in := func(name string) Request {
			return requestOf(Charge{Rule: compile(t, rule.Spec{Kind: "fixed_window", Rate: "9/day", Zone: zone(t, name)})})
		}
		clock.set(time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC))
		for range 5 {
			mustConsume(t, l, in("UTC"))
		}
		for _, name := range []string{"Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati"} {
			assert.EqualValues(t, 4, remaining(t, l, in(name)), "left in %s", name)
		}
		clock.set(time.Date(2026, 10, 5, 15, 0, 0, 0, time.UTC)) // midnight in Tokyo
		assert.EqualValues(t, 9, remaining(t, l, in("Asia/Tokyo")), "left on the next day")
	})
}

// TestFixedWindow_StaleWindow_IsSentAgain: if a call is sent with a window that is not the current window by Redis's
// clock, nothing is decided. The call is sent again, and nothing is charged twice.
func TestFixedWindow_StaleWindow_IsSentAgain(t *testing.T) {
	client := parallelClient(t)
	var clock testClock
	metrics := NewMetrics(nil)
	l := patientLimiter(t, client, settings{redisNow: clock.now, Metrics: metrics})
	r := compile(t, rule.Spec{Kind: "fixed_window", Rate: "9/month"})
	sibling := compile(t, rule.Spec{ID: "sibling", Rate: "9/day"})
	for i, at := range []time.Time{
		time.Date(2090, 5, 5, 0, 0, 0, 0, time.UTC), time.Date(2080, 2, 29, 12, 0, 0, 0, time.UTC), time.Date(2095, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	} {
		clock.set(at)
		req := Request{Tenant: fmt.Sprint("acme-", i), Charges: []Charge{{Rule: r}, {Rule: sibling}}}
		d := mustConsume(t, l, req)
		assert.True(t, d.Allowed && !d.Degraded && d.Verdicts[0].Remaining == 8 && d.Verdicts[1].Remaining == 8,
			"at %s: %+v", at, d)
		got := testutil.ToFloat64(metrics.stale)
		assert.True(t, got == float64(i+1), "at %s: sent again %v times, want %d", at, got, i+1)
		mustConsume(t, l, req) // the process knows Redis's time now
		got = testutil.ToFloat64(metrics.stale)
		assert.Equal(t, float64(i+1), got, "at %s: sent again %v times, want %d", at, got, i+1)
	}
}

// TestFixedWindow_ClockJumpsTwice_PolicyDecides: if Redis's clock jumps between the first and the second call, rules
// with a calendar window are decided by their policy.
func TestFixedWindow_ClockJumpsTwice_PolicyDecides(t *testing.T) {
	t.Parallel()
	now := worldStart + (5000 * rule.Day).Microseconds() // about 13 years ahead of worldStart
	metrics := NewMetrics(nil)
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{Metrics: metrics, redisNow: func() int64 {
		now += (100 * rule.Day).Microseconds() // at every call
		return now
	}})
	r := compile(t, rule.Spec{Kind: "fixed_window", Rate: "3/month"})
	admitted := 0
	for range 6 {
		d := mustConsume(t, l, requestOf(Charge{Rule: r}))
		assert.True(t, d.Degraded, d)
		if d.Allowed {
			admitted++
		}
	}
	n := redisCount(t, l, "quotasvc_limit_backend_failures_total", "stale_window")
	assert.True(t, n == 6 && admitted == 3, "%v failures and %d admitted, want 6 and 3", n, admitted)
	assert.False(t, isAway(l), "redis counts as away")
	// A rule that needs no window is not affected.
	d := mustConsume(t, l, requestOf(Charge{Rule: compile(t, rule.Spec{Kind: "fixed_window", Rate: "3/min"})}))
	assert.False(t, d.Degraded, d)
}

// TestFixedWindow_StaleWindow_ConcernsItsRequestsOnly: if a call has several requests, only the request with the
// stale window stays undecided, with all its rules.
func TestFixedWindow_StaleWindow_ConcernsItsRequestsOnly(t *testing.T) {
	client := parallelClient(t)
	script := limitsScript(t, client)
	fixed := compile(t, rule.Spec{ID: "fixed", Kind: "fixed_window", Rate: "9/month", Shadow: true}) // shadow rules need windows
	bucket := compile(t, rule.Spec{ID: "bucket", Rate: "9/day"})
	batch := []query{
		queryFor(t, "acme", Charge{Rule: bucket}),
		queryFor(t, "acme", Charge{Rule: bucket}, Charge{Rule: fixed}),
		queryFor(t, "acme", Charge{Rule: bucket}),
	}
	for _, o := range []rule.Op{rule.Consume, rule.Peek, rule.Refund} {
		batch[1].op = o
		v := vectors(batch, false, worldStart)[0]
		answers, err := answersOf(v, batch, runOnce(script, v.call(worldStart+(100*rule.Day).Microseconds())))
		require.NoError(t, err)
		stale := answers[1]
		assert.True(t, stale.stale && !stale.allowed && stale.results[1].code == rule.Stale && !answers[0].stale && answers[0].allowed &&
			answers[2].allowed, "op %d: %+v", o, answers)
		// The token bucket is charged by the first and the third request.
		before, after := answers[0].results[0].level.Used, answers[2].results[0].level.Used
		assert.True(t, after == before+bucket.Limit().Params(rule.Moment{})[2], "op %d: the bucket went from %d to %d", o, before, after)
	}
	assert.Zero(t, client.Exists(context.Background(), batch[1].charges[1].key).Val(), "the stale window was written")
}

// TestFixedWindow_ClockSetBackOverItsStart_OpensOnce: the clock is fast, and tokens of the next window are taken. Then
// the clock is set back to before the start of this window, once or many times. The window does not begin anew.
func TestFixedWindow_ClockSetBackOverItsStart_OpensOnce(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for i, tc := range []struct {
			rate, zone, start string
			back              time.Duration
		}{
			{"10/min", "", "2026-10-05T12:34:00Z", 4 * time.Second},
			{"10/min", "", "2026-10-05T12:34:00Z", 11 * time.Second},
			{"10/min", "", "2026-10-05T12:34:00Z", 62 * time.Second},
			{"10/90min", "", "2026-10-05T12:00:00Z", time.Hour},
			{"10/day", "Europe/Berlin", "2027-03-28T22:00:00Z", 20 * time.Hour}, // after a day of 23 hours
			{"10/month", "", "2027-02-01T00:00:00Z", 11 * time.Second},
			{"10/month", "America/New_York", "2026-11-01T04:00:00Z", 20 * rule.Day},
		} {
			spec := rule.Spec{ID: fmt.Sprint("rule-", i), Kind: "fixed_window", Rate: tc.rate}
			if tc.zone != "" {
				spec.Zone = zone(t, tc.zone)
			}
			req := requestOf(Charge{Rule: compile(t, spec)})
			start := testenv.Must(t).Get(time.Parse(time.RFC3339, tc.start))
			ahead := start.Add(min(tc.back/2, 3*time.Second))
			clock.set(start.Add(-tc.back))
			admitted := exhaust(t, l, req) // the window before
			for range 3 {
				clock.set(ahead)
				admitted += exhaust(t, l, req)
				clock.set(ahead.Add(-tc.back))
				admitted += exhaust(t, l, req)
				v := mustPeek(t, l, req).Verdicts[0]
				clock.advance(v.RetryAfter - time.Microsecond)
				assert.False(t, mustPeek(t, l, req).Allowed, "%s back %s: passes before %s", tc.rate, tc.back, v.RetryAfter)
			}
			clock.set(start.Add(10 * time.Second))
			admitted += exhaust(t, l, req)
			assert.EqualValues(t, 20, admitted, "%s, back by %s: admitted in two windows", tc.rate, tc.back)
		}
	})
}
