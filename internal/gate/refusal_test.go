package gate

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A check is refused with the same error as a consume.
func TestRefusal_EqualsTheErrorOfConsume(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(catalog.Limit{Rule: "search", Per: []string{"tenant"}, Match: catalog.Match{Route: "search"}, Kind: "token_bucket", Rate: "1/day"})
	in.topUp("topup", "credits", 5)
	route := func(req Request, route string) Request { req.Route = route; return req }
	in.consumes("", "first", route(request("first", "calls", 1), "search"))
	for name, req := range map[string]Request{
		"allowed":           request("k", "calls", 1),
		"quota exceeded":    request("k", "calls", 10),
		"credits exhausted": request("k", "credits", 6),
		"not in plan":       request("k", "other", 1),
		"rate limited":      route(request("k", "calls", 1), "search"),
	} {
		checked, err := in.Check(t.Context(), fromPostgres(req))
		if !assert.NoError(t, err, "%s: %v", name, err) {
			continue
		}
		_, want := in.Consume(t.Context(), dryRun(req))
		got := checked.Refusal()
		same := (got == nil) == (want == nil) && (want == nil || CodeOf(got) == CodeOf(want))
		if !assert.True(t, same, "%s: check refuses with %v, consume with %v", name, got, want) {
			continue
		}
		assert.Equal(t, undated(want), undated(got), name)
		var askedSlower, usedSlower *RateLimited
		if errors.As(got, &askedSlower) && errors.As(want, &usedSlower) {
			assert.Positive(t, askedSlower.RetryAfter, name)
			for _, e := range []*RateLimited{askedSlower, usedSlower} {
				e.RetryAfter = 0
				for i := range e.Verdicts {
					v := &e.Verdicts[i]
					v.RetryAfter, v.Next, v.Full = 0, 0, 0
					v.Delay, v.Banned = 0, 0
				}
			}
			assert.Equal(t, usedSlower, askedSlower, name)
		}
	}
}

func TestRefusal_Never_NamesOnlyThoseRules(t *testing.T) {
	t.Parallel()
	checked := Check{Code: CodeCostExceedsCapacity, Limits: []LimitVerdict{
		{Rule: "never", Never: true}, {Rule: "later"}, {Rule: "passed", Allowed: true}, {Rule: "shadow", Never: true, Shadow: true},
	}}
	want := &CostExceedsCapacity{Violated: []string{"never"}, Verdicts: checked.Limits}
	assert.Equal(t, error(want), checked.Refusal())
}

func TestRefusal_Blocked_NamesTheBlock(t *testing.T) {
	t.Parallel()
	blocked := &Blocked{Kind: "ip", Value: "203.0.113.0/24", Reason: "abuse"}
	checked := Check{Code: CodeForbidden, Blocked: blocked}
	got := checked.Refusal()
	assert.True(t, CodeOf(got) == CodeForbidden && errors.Is(got, blocked), got)
}

// undated returns the denial in err without its time. It returns nil if err contains no denial.
func undated(err error) *ledger.Denial {
	d := ledger.DenialOf(err)
	if d == nil {
		return nil
	}
	out := *d
	out.AsOf = time.Time{}
	return &out
}
