package gate

import "github.com/quotasvc/quotasvc/internal/ledger"

// scopePassage begins the scope of a request that stands for one at a gateway; what is let through follows it.
const scopePassage = "passage "

// scopeOfConsume tells requests apart that use one key.
func scopeOfConsume(req *Request) string {
	if req.Passage == "" {
		return scopeConsume
	}
	return scopePassage + req.Passage
}

// Refusal is the error that Consume would have returned for the same reason, with what the check knows; nil if the check
// allowed it. For those who ask first and have to answer like those who use.
func (c *Check) Refusal() error {
	switch c.Code { //nolint:exhaustive // the others are the ledger's, below
	case "":
		return nil
	case CodeForbidden:
		return c.Blocked
	case CodeRateLimited:
		return &RateLimited{Violated: c.violated(func(v *LimitVerdict) bool { return !v.Never }), RetryAfter: c.RetryAfter, Verdicts: c.Limits}
	case CodeCostExceedsCapacity:
		return &CostExceedsCapacity{Violated: c.violated(func(v *LimitVerdict) bool { return v.Never }), Verdicts: c.Limits}
	}
	refusal := &ledger.Error{Code: c.Code, AsOf: c.AsOf, RetryAfter: c.RetryAfter}
	if c.Limiting != nil {
		item := &c.Items[c.Item]
		refusal.Denial = &ledger.Denial{
			Limiting: *c.Limiting, Required: item.Required, Available: item.MaxAllowedNow, Remaining: item.Remaining, Limit: item.Limit, ResetAt: item.ResetAt,
			WouldSucceedAt: item.WouldSucceedAt,
		}
	}
	return refusal
}

// violated lists the rules that denied and are of the kind asked for.
func (c *Check) violated(is func(*LimitVerdict) bool) []string {
	var rules []string
	for i := range c.Limits {
		if v := &c.Limits[i]; !v.Allowed && !v.Shadow && is(v) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
