package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// passage is ask for a request that stands at a gateway.
func passage(key, what string) Request {
	req := ask(key, "calls", 3)
	req.Passage = what
	return req
}

// Units are paid for once, but a client that repeats its key does not pass faster than its limits allow.
func TestConsume_AGatewaysReplayCostsTokensAndNoUnits(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(twoADay)
	for i, want := range []ledger.Code{"", "", CodeRateLimited} {
		got, err := in.Consume(t.Context(), passage("same", "GET /a"))
		in.expect(want, fmt.Sprint("passage ", i), err)
		if err == nil && got.Result.Replayed != (i > 0) {
			t.Errorf("passage %d: replayed = %v", i, got.Result.Replayed)
		}
	}
	if tokens, units := in.tokens(), in.remaining("calls"); tokens != 0 || units != 7 {
		t.Errorf("%d tokens and %d units are left, want 0 and 7", tokens, units)
	}
}

func TestConsume_AKeyIsGoodForOnePassage(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	_, err := in.Consume(t.Context(), passage("key", "GET /a"))
	in.expect("", "the first passage", err)
	for _, other := range []string{"GET /b", "POST /a", "GET /a?x=1", ""} {
		_, err := in.Consume(t.Context(), passage("key", other))
		in.expect(ledger.CodeIdempotencyKeyReused, "passage "+other, err)
	}
	if units := in.remaining("calls"); units != 7 {
		t.Errorf("%d units are left, want 7", units)
	}
}

// Who checks and who consumes is refused in the same words.
func TestCheck_ItsRefusalIsTheErrorOfConsume(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "search", Per: []string{"tenant"}, Match: catalog.Match{Route: "search"}, Kind: "token_bucket", Rate: "1/day"})
	in.topUp("topup", "credits", 5)
	route := func(req Request, route string) Request { req.Route = route; return req }
	if _, err := in.Consume(t.Context(), route(ask("first", "calls", 1), "search")); err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]Request{
		"allowed":           ask("k", "calls", 1),
		"quota exceeded":    ask("k", "calls", 10),
		"credits exhausted": ask("k", "credits", 6),
		"not in plan":       ask("k", "other", 1),
		"rate limited":      route(ask("k", "calls", 1), "search"),
	} {
		checked, err := in.Check(t.Context(), fresh(req))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, want := in.Consume(t.Context(), func() Request { req.DryRun = true; return req }())
		got := checked.Refusal()
		if (got == nil) != (want == nil) || want != nil && CodeOf(got) != CodeOf(want) {
			t.Errorf("%s: check refuses with %v, consume with %v", name, got, want)
			continue
		}
		var asked, used *ledger.Error
		if errors.As(got, &asked) && errors.As(want, &used) {
			if diff := cmp.Diff(used.Denial, asked.Denial); diff != "" {
				t.Errorf("%s: consume - / check +\n%s", name, diff)
			}
		}
		var askedSlower, usedSlower *RateLimited
		if errors.As(got, &askedSlower) && errors.As(want, &usedSlower) {
			ignore := cmpopts.IgnoreTypes(askedSlower.RetryAfter)
			if diff := cmp.Diff(usedSlower, askedSlower, ignore); diff != "" || askedSlower.RetryAfter <= 0 {
				t.Errorf("%s, after %s: consume - / check +\n%s", name, askedSlower.RetryAfter, diff)
			}
		}
	}
}

func TestCheck_ARefusalForGoodNamesOnlyTheRulesThatNeverLetItPass(t *testing.T) {
	t.Parallel()
	checked := Check{Code: CodeCostExceedsCapacity, Limits: []LimitVerdict{
		{Rule: "never", Never: true}, {Rule: "later"}, {Rule: "passed", Allowed: true}, {Rule: "shadow", Never: true, Shadow: true},
	}}
	want := &CostExceedsCapacity{Violated: []string{"never"}, Verdicts: checked.Limits}
	if diff := cmp.Diff(error(want), checked.Refusal()); diff != "" {
		t.Errorf("want - / got +\n%s", diff)
	}
}

func TestCheck_TheRefusalOfABlockSaysWhoIsBlocked(t *testing.T) {
	t.Parallel()
	blocked := &Blocked{Kind: "ip", Value: "203.0.113.0/24", Reason: "abuse"}
	checked := Check{Code: CodeForbidden, Blocked: blocked}
	if got := checked.Refusal(); CodeOf(got) != CodeForbidden || !errors.Is(got, blocked) {
		t.Errorf("%v", got)
	}
}
