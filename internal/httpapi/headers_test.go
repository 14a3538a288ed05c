package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestTheMostRestrictiveLimitComesFirstAndShadowsAreNotShown(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	wait := (&Server{}).writeLimits(h, []gate.LimitVerdict{
		{Rule: "roomy", Allowed: true, Remaining: 90, Limit: 100, Quota: 100, WindowSeconds: 60, Reset: 600 * time.Millisecond},
		{Rule: "shadow", Shadow: true, RetryAfter: time.Hour, Quota: 1, WindowSeconds: 1},
		{Rule: "soon", Remaining: 0, Limit: 5, Quota: 5, WindowSeconds: 1, RetryAfter: 100 * time.Millisecond, Reset: 100 * time.Millisecond},
		{Rule: "tight", Allowed: true, Remaining: 1, Limit: 2, Quota: 2, WindowSeconds: 3600, Reset: 30 * time.Minute},
		{Rule: "late", Remaining: 3, Limit: 5, Quota: 5, WindowSeconds: 10, RetryAfter: 1500 * time.Millisecond, Reset: time.Second},
		{Rule: "full", Allowed: true, Remaining: 100, Limit: 100, Quota: 100, WindowSeconds: 1},
	})
	if got, want := only(t, h, headerRateLimitPolicy), `"late";q=5;w=10, "soon";q=5;w=1, "tight";q=2;w=3600, "roomy";q=100;w=60, "full";q=100;w=1`; got != want {
		t.Errorf("policy\n got %s\nwant %s", got, want)
	}
	if got, want := only(t, h, headerRateLimit), `"late";r=3;t=2, "soon";r=0;t=1, "tight";r=1;t=1800, "roomy";r=90;t=1, "full";r=100;t=0`; got != want {
		t.Errorf("state\n got %s\nwant %s", got, want)
	}
	if wait != 30*time.Minute {
		t.Errorf("the longest wait is %s", wait)
	}
	if len(h) != 2 {
		t.Errorf("%v", h)
	}
}

func TestNoEnforcedLimitMeansNoHeader(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	(&Server{}).writeLimits(h, []gate.LimitVerdict{{Rule: "a", Shadow: true}})
	(&Server{}).writeLimits(h, nil)
	if len(h) != 0 {
		t.Errorf("%v", h)
	}
}

func TestLimitHeadersAreStructuredFieldsWhateverTheRulesAreCalled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var verdicts []gate.LimitVerdict
		want := map[string]gate.LimitVerdict{}
		for i := range rapid.IntRange(1, 16).Draw(rt, "n") {
			v := gate.LimitVerdict{
				Rule: fmt.Sprint(i, "-") + rapid.StringMatching(`[ -~]{0,20}`).Draw(rt, "rule"), Allowed: rapid.Bool().Draw(rt, "allowed"),
				Remaining: amount().Draw(rt, "r"), Quota: amount().Draw(rt, "q"), WindowSeconds: rapid.Int64Range(1, 1e9).Draw(rt, "w"),
				RetryAfter: time.Duration(rapid.Int64Range(0, 1e18).Draw(rt, "retry")), Reset: time.Duration(rapid.Int64Range(0, 1e18).Draw(rt, "reset")),
			}
			verdicts = append(verdicts, v)
			want[v.Rule] = v
		}
		h := http.Header{}
		(&Server{}).writeLimits(h, verdicts)
		policy, state := parseList(t, only(t, h, headerRateLimitPolicy)), parseList(t, only(t, h, headerRateLimit))
		if len(policy) != len(verdicts) || len(state) != len(verdicts) {
			rt.Fatalf("%d limits: %v", len(verdicts), h)
		}
		for i := range policy {
			v, ok := want[policy[i].value]
			if !ok || state[i].value != v.Rule {
				rt.Fatalf("%q and %q", policy[i].value, state[i].value)
			}
			if diff := cmp.Diff(map[string]any{"q": min(v.Quota, structuredMax), "w": v.WindowSeconds}, policy[i].parameters); diff != "" {
				rt.Fatal(diff)
			}
			wait := v.Reset
			if !v.Allowed {
				wait = v.RetryAfter
			}
			if diff := cmp.Diff(map[string]any{"r": min(v.Remaining, structuredMax), "t": ceil(wait, time.Second)}, state[i].parameters); diff != "" {
				rt.Fatal(diff)
			}
		}
	})
}

func TestTheTightestItemIsTheOneThatRepeatingTheRequestExhaustsFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	item := func(required, remaining, limit int64, reset time.Time) ledger.ItemResult {
		return ledger.ItemResult{Requested: required, Position: ledger.Position{Remaining: remaining, Limit: limit, ResetAt: reset}}
	}
	for name, c := range map[string]struct {
		items                  []ledger.ItemResult
		limit, remaining, left string
	}{
		"same demand":     {[]ledger.ItemResult{item(1, 9, 10, now.Add(time.Hour)), item(1, 4, 1000, now.Add(90*time.Second))}, "1000", "4", "90"},
		"other units":     {[]ledger.ItemResult{item(1000, 5000, 9000, now.Add(time.Hour)), item(1, 100, 100, now)}, "9000", "5000", "3600"},
		"no end":          {[]ledger.ItemResult{item(1, 0, 5, time.Time{}), item(1, 1, 5, now)}, "5", "0", ""},
		"rounded up":      {[]ledger.ItemResult{item(1, 1, 5, now.Add(1500*time.Millisecond))}, "5", "1", "2"},
		"ended just now":  {[]ledger.ItemResult{item(1, 1, 5, now)}, "5", "1", "1"},
		"largest amounts": {[]ledger.ItemResult{item(ledger.MaxAmount, ledger.MaxAmount-1, 7, now), item(ledger.MaxAmount-1, ledger.MaxAmount-1, 8, now)}, "7", "9007199254740990", "1"},
	} {
		h := http.Header{}
		var tight tightest
		tight.offerDebit(&ledger.DebitResult{AsOf: now, Items: c.items})
		tight.write(h)
		want := http.Header{headerQuotaLimit: {c.limit}, headerQuotaRemaining: {c.remaining}, headerQuotaReset: {c.left}}
		if c.left == "" {
			delete(want, headerQuotaReset)
		}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	h := http.Header{}
	if new(tightest).write(h); len(h) != 0 {
		t.Errorf("%v", h)
	}
}

func TestRetryAfterIsAtLeastOneAndNeverEarlierThanALimitsT(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s := &Server{problems: problemKinds()}
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"period's end":        {&ledger.Error{Code: ledger.CodeQuotaExceeded, AsOf: now, Denial: &ledger.Denial{ResetAt: now.Add(time.Hour)}}, time.Hour},
		"known event first":   {&ledger.Error{Code: ledger.CodeQuotaExceeded, AsOf: now, Denial: &ledger.Denial{ResetAt: now.Add(time.Hour), WouldSucceedAt: now.Add(time.Minute)}}, time.Minute},
		"ledger's own":        {&ledger.Error{Code: ledger.CodeQueueFull, RetryAfter: 3 * time.Second}, 3 * time.Second},
		"ending right now":    {&ledger.Error{Code: ledger.CodeQuotaExceeded, AsOf: now, Denial: &ledger.Denial{ResetAt: now}}, time.Second},
		"nothing known":       {&ledger.Error{Code: ledger.CodeUnavailable}, time.Second},
		"waiting is in vain":  {&ledger.Error{Code: ledger.CodeCreditsExhausted, RetryAfter: time.Hour}, 0},
		"limits":              {&gate.RateLimited{Violated: []string{"a"}, RetryAfter: time.Millisecond}, time.Millisecond},
		"limits that are off": {&gate.ReducedCapacity{Violated: []string{"a"}, RetryAfter: 5 * time.Second}, 5 * time.Second},
		"never":               {&gate.CostExceedsCapacity{Violated: []string{"a"}}, 0},
		"internal":            {&ledger.Error{Code: ledger.CodeInternal, RetryAfter: time.Hour}, 0},
	} {
		if got := s.problemOf(fmt.Errorf("wrapped: %w", c.err)); got.retryAfter != c.want {
			t.Errorf("%s: %s, want %s", name, got.retryAfter, c.want)
		}
	}
}

// only is the one value of a header that is set under exactly this spelling.
func only(t testing.TB, h map[string][]string, name string) string {
	t.Helper()
	if len(h[name]) != 1 {
		t.Fatalf("%s: %q in %v", name, h[name], h)
	}
	return h[name][0]
}
