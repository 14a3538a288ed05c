package limitheaders

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// noon returns a fixed time for tests, a quarter of a second after noon.
func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 250_000_000, time.UTC) }

func TestLimitHeaders_MostRestrictiveFirst_NoShadows(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	wait := (&Writer{}).Write(h, []gate.LimitVerdict{
		{Rule: "roomy", Allowed: true, Remaining: 90, Limit: 100, Policy: `"roomy";q=100;w=60`, Next: 600 * time.Millisecond},
		{Rule: "shadow", Shadow: true, RetryAfter: time.Hour, Policy: `"shadow";q=1;w=1`},
		{Rule: "tight", Allowed: true, Remaining: 1, Limit: 2, Policy: `"tight";q=2;w=3600`, Next: 30 * time.Minute},
		{Rule: "jobs", Allowed: true, Remaining: 2, Limit: 5, Policy: `"jobs";q=5;qu="concurrent-requests"`, Concurrent: true},
		{Rule: "full", Allowed: true, Remaining: 100, Limit: 100, Policy: `"full";q=100;w=1`},
	})
	assert.Equal(t, `"tight";q=2;w=3600, "jobs";q=5;qu="concurrent-requests", "roomy";q=100;w=60, "full";q=100;w=1`,
		only(t, h, headerPolicy))
	assert.Equal(t, `"tight";r=1;t=1800, "jobs";r=2, "roomy";r=90;t=1, "full";r=100;t=0`, only(t, h, headerState))
	assert.True(t, wait == 30*time.Minute && len(h) == 2, "the longest wait is %s: %v", wait, h)
}

// TestLimitHeaders_Denial_OnlyItsWait: one limit denies the request. Another limit has remaining tokens and refills
// in half an hour. The headers do not make the client wait for this half hour.
func TestLimitHeaders_Denial_OnlyItsWait(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	wait := (&Writer{}).Write(h, []gate.LimitVerdict{
		{Rule: "tight", Allowed: true, Remaining: 1, Limit: 2, Policy: `"tight";q=2;w=3600`, Next: 30 * time.Minute},
		{Rule: "soon", Remaining: 0, Limit: 5, Policy: `"soon";q=5;w=1`, RetryAfter: 100 * time.Millisecond, Next: 100 * time.Millisecond},
		{Rule: "late", Remaining: 3, Limit: 5, Policy: `"late";q=5;w=10`, RetryAfter: 1500 * time.Millisecond, Next: time.Second},
		{Rule: "jobs", Remaining: 0, Limit: 1, Policy: `"jobs";q=1;qu="concurrent-requests"`, Concurrent: true, RetryAfter: time.Second},
		{Rule: "never", Never: true, Remaining: 4, Limit: 4, Policy: `"never";q=4;w=1`},
	})
	assert.Equal(t, `"never";r=4, "late";r=3;t=2, "jobs";r=0;t=1, "soon";r=0;t=1, "tight";r=1`, only(t, h, headerState))
	assert.True(t, wait == 1500*time.Millisecond, "the longest wait is %s", wait)
}

// TestLimitHeaders_Never_NoWait: a limit that can never allow the request has no t. t=0 would mean that the same
// request passes now, and any other t would mean that it passes later.
func TestLimitHeaders_Never_NoWait(t *testing.T) {
	t.Parallel()
	for _, next := range []time.Duration{0, time.Second} { // a full bucket, and a bucket that refills
		h := http.Header{}
		wait := (&Writer{}).Write(h, []gate.LimitVerdict{
			{Rule: "small", Never: true, Remaining: 4, Limit: 4, Policy: `"small";q=4;w=1`, Next: next},
			{Rule: "roomy", Allowed: true, Remaining: 90, Limit: 100, Policy: `"roomy";q=100;w=60`, Next: time.Minute},
		})
		got, want := only(t, h, headerState), `"small";r=4, "roomy";r=90`
		assert.True(t, got == want && wait == 0, "got %s and a wait of %s, want %s", got, wait, want)
	}
}

func TestLimitHeaders_AtMostFive(t *testing.T) {
	t.Parallel()
	var verdicts []gate.LimitVerdict
	for i := range 16 {
		verdicts = append(verdicts, gate.LimitVerdict{Rule: fmt.Sprint("r", i), Allowed: true, Remaining: int64(16 - i), Policy: fmt.Sprintf(`"r%d";q=16;w=1`, i)})
	}
	h := http.Header{}
	(&Writer{}).Write(h, verdicts)
	assert.Equal(t, `"r15";r=1;t=0, "r14";r=2;t=0, "r13";r=3;t=0, "r12";r=4;t=0, "r11";r=5;t=0`, only(t, h, headerState))
	assert.Len(t, parseList(t, only(t, h, headerPolicy)), namedMax, "policies")
}

func TestLimitHeaders_NoneEnforced_NoHeader(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	s := &Writer{Legacy: []Legacy{legacyXDelta}}
	s.Write(h, []gate.LimitVerdict{{Rule: "a", Shadow: true}})
	s.Write(h, nil)
	assert.Empty(t, h, h)
}

func TestLimitHeaders_ModeLocal(t *testing.T) {
	t.Parallel()
	for _, v := range []gate.LimitVerdict{{Rule: "a", Degraded: true}, {Rule: "a", Degraded: true, Shadow: true}} {
		h := http.Header{}
		(&Writer{}).Write(h, []gate.LimitVerdict{{Rule: "b", Allowed: true}, v})
		assert.Equal(t, "local", only(t, h, headerMode))
	}
}

func TestLegacyHeaders_MostRestrictiveLimit(t *testing.T) {
	t.Parallel()
	verdicts := []gate.LimitVerdict{
		{Rule: "roomy", Allowed: true, Remaining: 90, Limit: 100, Next: time.Second, Full: 2 * time.Second},
		{Rule: "tight", Allowed: true, Remaining: 3, Limit: 5, Next: time.Second, Full: 90*time.Second + time.Millisecond},
	}
	for _, c := range []struct {
		sets []Legacy
		want map[string]string
	}{
		{nil, nil},
		{[]Legacy{legacyXDelta}, map[string]string{"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "91"}},
		// The reset is at 12:00:00.250 plus 90.001 s, rounded up.
		{[]Legacy{legacyXEpoch}, map[string]string{"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "1777636891"}},
		{[]Legacy{legacyXEpoch, legacyDraft}, map[string]string{
			"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "1777636891",
			"RateLimit-Limit": "5", "RateLimit-Remaining": "3", "RateLimit-Reset": "91",
		}},
	} {
		s := &Writer{Legacy: c.sets, Now: noon}
		h := http.Header{}
		s.Write(h, verdicts)
		delete(h, headerState)
		delete(h, headerPolicy)
		got := map[string]string{}
		for name := range h {
			got[name] = only(t, h, name)
		}
		assert.True(t, maps.Equal(c.want, got), "%v, want %v", c.want, got)
	}
}

// TestLegacyHeaders_ResetAfter2262_IsItsInstant: the slowest limit fills in 285 years, and a time in nanoseconds ends in
// 2262.
func TestLegacyHeaders_ResetAfter2262_IsItsInstant(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	full := 9_007_199_254_740_991 * time.Microsecond
	(&Writer{Legacy: []Legacy{legacyXEpoch}, Now: noon}).Write(h, []gate.LimitVerdict{{Rule: "slow", Allowed: true, Full: full}})
	assert.Equal(t, strconv.FormatInt(noon().Unix()+9_007_199_255, 10), only(t, h, "X-RateLimit-Reset"))
}

func TestLegacyHeaders_Ambiguous_Refused(t *testing.T) {
	t.Parallel()
	for text, sets := range map[string][]Legacy{
		"must be one of":       {"x-ratelimit"},
		"set the same headers": {legacyXEpoch, legacyXDelta},
		"duplicate":            {legacyDraft, legacyDraft},
	} {
		err := Check(sets)
		assert.True(t, err != nil && strings.Contains(err.Error(), text), "%v: %v", sets, err)
	}
	assert.NoError(t, errors.Join(Check(nil), Check([]Legacy{legacyDraft, legacyXEpoch})))
}

func TestRetryAfter_JitterOnlyForWindows(t *testing.T) {
	t.Parallel()
	window := []gate.LimitVerdict{{Rule: "w", Window: true}}
	for name, c := range map[string]struct {
		verdicts []gate.LimitVerdict
		wait     time.Duration
		spread   time.Duration
	}{
		"bucket":             {[]gate.LimitVerdict{{Rule: "b"}}, 100 * time.Second, 0},
		"no limit":           {nil, 100 * time.Second, 0},
		"window":             {window, 100 * time.Second, 10 * time.Second},
		"window for a day":   {window, 10 * time.Hour, time.Minute},
		"window that passes": {[]gate.LimitVerdict{{Rule: "b"}, {Rule: "w", Window: true, Allowed: true}}, 100 * time.Second, 0},
		"window in shadow":   {[]gate.LimitVerdict{{Rule: "b"}, {Rule: "w", Window: true, Shadow: true}}, 100 * time.Second, 0},
	} {
		for _, part := range []int64{0, 50, 100} {
			s := &Writer{jitter: func(limit time.Duration) time.Duration {
				assert.True(t, limit == c.spread, "%s: up to %s more, want %s", name, limit, c.spread)
				return limit * time.Duration(part) / 100
			}}
			want := seconds(c.wait + c.spread*time.Duration(part)/100)
			assert.Equal(t, fmt.Sprint(want), s.RetryAfter(c.wait, c.verdicts), name)
		}
	}
	assert.EqualValues(t, "1", (&Writer{}).RetryAfter(0, nil), "want at least 1")
	seen := map[time.Duration]bool{}
	for range 200 {
		d := randomUpTo(3)
		seen[d] = true
		require.True(t, d >= 0 && d <= 3, d)
	}
	assert.Len(t, seen, 4, "only %v of 0..3 occur", seen)
}

// only returns the value of a header that is set once under exactly this name.
func only(t testing.TB, h map[string][]string, name string) string {
	t.Helper()
	require.Len(t, h[name], 1, "%s: %q in %v", name, h[name], h)
	return h[name][0]
}

func amount() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, bound.MaxAmount), rapid.Int64Range(0, 3))
}

// drawVerdict draws a verdict of any kind, and also verdicts that the gate never returns.
func drawVerdict(t *rapid.T, i int) gate.LimitVerdict {
	v := gate.LimitVerdict{
		Rule: fmt.Sprint(i, "-") + rapid.StringMatching(`[A-Za-z0-9._:-]{0,20}`).Draw(t, "rule"), Allowed: rapid.Bool().Draw(t, "allowed"),
		Remaining: amount().Draw(t, "r"), Limit: amount().Draw(t, "limit"),
		RetryAfter: time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "retry")), Next: time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "next")),
		Shadow: rapid.IntRange(0, 5).Draw(t, "shadow") == 0, Degraded: rapid.Bool().Draw(t, "degraded"),
	}
	v.Policy = fmt.Sprintf(`"%s";q=%d;w=1`, v.Rule, i)
	switch rapid.SampledFrom([]string{"bucket", "window", "concurrency"}).Draw(t, "kind") {
	case "concurrency":
		v.Concurrent, v.Policy = true, fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, v.Rule, i)
	case "window":
		v.Window = true
	}
	v.Never = !v.Allowed && rapid.Bool().Draw(t, "never")
	return v
}

// TestLimitHeaders_ParseAndMatchVerdicts: for any names and numbers, the structured fields can be parsed by RFC 9651,
// and they name the most restrictive limits. The legacy headers are integers. Retry-After is at least 1 and at least
// every t.
func TestLimitHeaders_ParseAndMatchVerdicts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var verdicts []gate.LimitVerdict
		enforced := map[string]gate.LimitVerdict{}
		denied := false
		for i := range rapid.IntRange(1, 16).Draw(rt, "n") {
			v := drawVerdict(rt, i)
			verdicts = append(verdicts, v)
			if !v.Shadow {
				enforced[v.Rule] = v
				denied = denied || !v.Allowed
			}
		}
		s := &Writer{Legacy: []Legacy{rapid.SampledFrom([]Legacy{legacyXDelta, legacyXEpoch}).Draw(rt, "x"), legacyDraft}, Now: noon}
		h := http.Header{}
		longest := s.Write(h, verdicts)
		retry, ok := body.ParseInteger(s.RetryAfter(longest, verdicts))
		require.True(rt, ok && retry >= 1, "Retry-After %d", retry)
		if len(enforced) == 0 {
			return
		}
		policy, state := parseList(t, only(t, h, headerPolicy)), parseList(t, only(t, h, headerState))
		want := min(len(enforced), namedMax)
		require.True(rt, len(policy) == want && len(state) == want, "%d limits: %v", want, h)
		var shown []string
		for i := range policy {
			v, ok := enforced[policy[i].value]
			require.True(rt, ok && state[i].value == v.Rule && !slices.Contains(shown, v.Rule),
				"%q and %q", policy[i].value, state[i].value)
			shown = append(shown, v.Rule)
			require.True(rt, policy[i].value == v.Rule, "%v, %v", policy[i], v)
			require.Equal(rt, stateOf(v, denied), state[i].parameters)
			wait, ok := state[i].parameters["t"].(int64)
			require.False(rt, ok && wait > retry, "t is %d, Retry-After %d", wait, retry)
		}
		for _, v := range enforced { // no omitted limit is more restrictive
			if last := enforced[shown[len(shown)-1]]; !slices.Contains(shown, v.Rule) && compareRestriction(&v, &last) < 0 {
				rt.Fatalf("%+v is left out, %+v is not", v, last)
			}
		}
		for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
			for _, name := range []string{"Limit", "Remaining", "Reset"} {
				_, ok := body.ParseInteger(only(t, h, prefix+name))
				require.True(rt, ok, "%s%s: %v", prefix, name, h)
			}
		}
	})
}

func stateOf(v gate.LimitVerdict, denied bool) map[string]any {
	out := map[string]any{"r": min(v.Remaining, structuredMax)}
	switch {
	case !v.Allowed && !v.Never:
		out["t"] = seconds(v.RetryAfter)
	case !denied && !v.Concurrent:
		out["t"] = seconds(v.Next)
	}
	return out
}
