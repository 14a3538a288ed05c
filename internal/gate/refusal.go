package gate

import "github.com/quotasvc/quotasvc/internal/ledger"

// Refusal returns the error that Consume would return for the same reason, nil if the check allows the request. It lets a
// caller that only checks answer like one that consumes.
func (c *Check) Refusal() error {
	switch c.Code { //nolint:exhaustive // the ledger's codes follow below
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

// violated returns the enforced rules that denied and for which is returns true.
func (c *Check) violated(is func(*LimitVerdict) bool) []string {
	var rules []string
	for i := range c.Limits {
		if v := &c.Limits[i]; !v.Allowed && !v.Shadow && is(v) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
