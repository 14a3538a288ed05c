package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// Check reports whether Consume would allow req now, and charges nothing.
//
// Balances come from copies or from PostgreSQL, as balances.Policy decides. A request without items checks only its
// feature: the answer has neither limits nor balances. A refusal is not an error. If the request cannot be decided,
// or names a tenant or meter that does not exist, the error is *ReducedCapacity, *TooManyLimits or *errcode.Error.
func (g *Gate) Check(ctx context.Context, req Request) (Check, error) {
	out, _, err := g.check(ctx, &req, false)
	g.observeCheck(&out, err)
	return out, err
}

// observeCheck counts a check in the metrics.
func (g *Gate) observeCheck(out *Check, err error) {
	label := decisionLabel(err, false)
	if err == nil {
		g.metrics.sources.WithLabelValues(string(out.Source), strconv.FormatBool(out.Degraded)).Inc()
		if !out.Allowed {
			label = string(out.Code)
		}
	}
	g.metrics.decisions.WithLabelValues("check", label).Inc()
}

// check is Check without the metrics. If heldOnly is set, it uses only values that this process holds, and ok is
// false if the check would have to query Redis.
func (g *Gate) check(ctx context.Context, req *Request, heldOnly bool) (out Check, ok bool, err error) {
	// The feature comes first. It is decided from memory.
	if req.Feature != "" {
		if out, err = g.checkFeature(ctx, req); err != nil || !out.Allowed || len(req.Items) == 0 {
			return out, true, err
		}
	}
	if err := ledger.ValidateItems(req.Items); err != nil { // the ledger validates items, but copies may answer
		return Check{}, true, err
	}
	keys := appendKeys(make([]ledger.BalanceKey, 0, fewItems), req)
	copies, held := g.copies.Held(make([]balances.Cached, 0, fewItems), keys, req.MaxStale)
	if heldOnly && !held {
		return Check{}, false, nil
	}

	// If the tenant cannot be looked up, the check continues with the facts of a tenant that does not exist. A
	// degraded answer is better than no answer. A debit fails in this case.
	facts, lookupErr := g.tenants.facts(ctx, req.Tenant)
	exists := !facts.unknown && !facts.isNew
	blocked, exempt := g.blocked(req)
	if blocked != nil {
		return g.blockedCheck(ctx, req, &facts, blocked), true, nil
	}

	// The limits, and the copies of the balances in the same round trip.
	var reads *redisstore.Reads
	if !held && exists { // Reads makes instances publish copies; a tenant that does not exist needs none
		reads = g.copies.Reads(keys, req.MaxStale)
	}
	var limits limitsResult
	switch {
	case exempt:
	case heldOnly:
		if limits, ok = g.peekHeld(ctx, req, &facts); !ok {
			return Check{}, false, nil
		}
	default:
		if limits, err = g.limits(ctx, req, &facts, chargeNothing, reads); err != nil {
			return Check{}, true, err
		}
	}
	if _, closed := errors.AsType[*ReducedCapacity](limits.refusal); closed {
		return Check{}, true, limits.refusal
	}
	if facts.unknown && (req.MaxStale == nil || *req.MaxStale > 0) {
		return Check{}, true, noTenant(req.Tenant)
	}

	// The items, from the copies or from PostgreSQL.
	if facts.isNew {
		out, err = g.checkNew(req)
	} else {
		have := found{copies, true}
		if !held {
			have = g.lookup(ctx, keys, reads, !limits.degraded) // no second query if Redis did not answer the limits
		}
		out, err = g.answerItems(ctx, req, &facts, have)
	}
	if err != nil {
		return Check{}, true, err
	}
	out.Limits = limits.verdicts
	out.LimitsDegraded = limits.degraded
	out.Degraded = out.Degraded || limits.degraded || lookupErr != nil
	out.conclude(limits.refusal, facts.suspended, g.now())
	return out, true, nil
}

// conclude sets the verdict of a check. The first reason in this order decides, as in Consume: the refusal by limits,
// the suspension of the tenant, the first item that is refused.
func (c *Check) conclude(refusal error, suspended bool, now time.Time) {
	c.Item = -1
	refused := c.refusedItem()
	limited, isLimited := errors.AsType[*RateLimited](refusal)
	switch {
	case isLimited:
		c.Code = CodeRateLimited
		c.RetryAfter = limited.RetryAfter
	case refusal != nil:
		c.Code = CodeOf(refusal)
	case suspended:
		c.Code = errcode.TenantSuspended
	case refused >= 0:
		c.Item = refused
		c.sayRefusal(now)
	default:
		c.Allowed = true
	}
}

// refusedItem returns the index of the item that limits the request; -1: no item does. The ledger has found it. Of
// several copies, one that no period fills limits first, and then the one whose period ends last.
func (c *Check) refusedItem() int {
	if denial := ledger.DenialOf(c.refusal); denial != nil {
		return denial.Item
	}
	rank := []errcode.Code{"", errcode.QuotaExceeded, errcode.CreditsExhausted, errcode.MeterNotInPlan}
	at := -1
	for i := range c.Items {
		item := &c.Items[i]
		if item.Code == "" {
			continue
		}
		if at < 0 {
			at = i
			continue
		}
		most := &c.Items[at]
		byCode := cmp.Compare(slices.Index(rank, item.Code), slices.Index(rank, most.Code))
		if cmp.Or(byCode, item.ResetAt.Compare(most.ResetAt)) > 0 {
			at = i
		}
	}
	return at
}

// sayRefusal sets what refuses c.Item.
func (c *Check) sayRefusal(now time.Time) {
	item := &c.Items[c.Item]
	c.Code = item.Code
	if item.Limiting != (ledger.Limiting{}) {
		c.Limiting = &item.Limiting
	}
	at := item.ResetAt
	if denial := ledger.DenialOf(c.refusal); denial != nil {
		c.Code, c.Limiting, at = c.refusal.Code, &denial.Limiting, denial.RetryAt()
	}
	if c.Code == errcode.QuotaExceeded {
		c.RetryAfter = max(at.Sub(now), time.Second)
	}
}

// showIncomplete reports whether some copies are incomplete, but all copies exist and are still valid. Such copies
// can be shown with a refusal by a limit, because they decide nothing. Complete answers would need a read of
// PostgreSQL for each refusal.
func (g *Gate) showIncomplete(copies []balances.Cached) bool {
	incomplete, now := false, g.now()
	for i := range copies {
		c := copies[i].Copy
		if c == nil || !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil) {
			return false
		}
		incomplete = incomplete || c.Beyond
	}
	return incomplete
}

// CheckBalances returns the balances of a consume that a rate limit refused. It does not decide the limits again,
// because the request would then be counted twice and might wait twice. If the limits were decided without Redis, it
// does not query Redis, and waits for PostgreSQL at most balances.ReadPatience.
func (g *Gate) CheckBalances(ctx context.Context, req Request, refused *Debited) (Check, error) {
	if err := ledger.ValidateItems(req.Items); err != nil {
		return Check{}, err
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return Check{}, err
	}
	if facts.unknown {
		return Check{}, noTenant(req.Tenant)
	}
	if facts.isNew {
		return g.checkNew(&req)
	}
	keys := appendKeys(make([]ledger.BalanceKey, 0, fewItems), &req)
	if copies := g.copies.Lookup(make([]balances.Cached, 0, fewItems), keys, nil); g.showIncomplete(copies) {
		return fromCopies(req.Items, copies, SourceLocal, false), nil
	}
	if refused.LimitsDegraded {
		ctx, cancel := context.WithTimeout(ctx, balances.ReadPatience)
		defer cancel()
		return g.answerItems(ctx, &req, &facts, g.lookup(ctx, keys, nil, false))
	}
	if copies, held := g.copies.Held(make([]balances.Cached, 0, fewItems), keys, req.MaxStale); held {
		return g.answerItems(ctx, &req, &facts, found{copies, true})
	}
	return g.answerItems(ctx, &req, &facts, g.lookup(ctx, keys, g.copies.Reads(keys, req.MaxStale), true))
}

// Refusal returns the error that Consume would return for the same reason. It returns nil if the check allows the
// request. So a caller that only checks can give the same answer as a caller that consumes.
func (c *Check) Refusal() error {
	switch c.Code { //nolint:exhaustive // the ledger's codes follow below
	case "":
		return nil
	case CodeForbidden:
		return c.Blocked
	case CodeRateLimited:
		violated := c.violated(func(v *LimitVerdict) bool { return !v.Never })
		return &RateLimited{Violated: violated, RetryAfter: c.RetryAfter, Verdicts: c.Limits}
	case CodeCostExceedsCapacity:
		violated := c.violated(func(v *LimitVerdict) bool { return v.Never })
		return &CostExceedsCapacity{Violated: violated, Verdicts: c.Limits}
	}
	if c.refusal != nil && c.refusal.Code == c.Code {
		return c.refusal
	}
	refusal := &errcode.Error{Code: c.Code, RetryAfter: c.RetryAfter}
	if c.Limiting != nil {
		refusal.Data = c.denialFromCopies()
	}
	return refusal
}

// denialFromCopies returns the denial of a check that copies answered.
func (c *Check) denialFromCopies() *ledger.Denial {
	item := &c.Items[c.Item]
	tightest := item.Position().Within(item.Cap)
	d := &ledger.Denial{
		Limiting: *c.Limiting, Required: item.Required, Available: item.MaxAllowedNow,
		Remaining: tightest.Remaining, Limit: tightest.Limit,
	}
	for i := range c.Items {
		it := &c.Items[i]
		if it.Limiting == (ledger.Limiting{}) {
			continue
		}
		lack := ledger.Lack{Meter: it.Meter, Required: it.Required, Available: it.MaxAllowedNow}
		if it.Code == errcode.QuotaExceeded {
			lack.ResetAt = it.ResetAt
		}
		d.Lacking = append(d.Lacking, lack)
	}
	if c.Code == errcode.QuotaExceeded {
		d.ResetAt, d.WouldSucceedAt = item.ResetAt, item.WouldSucceedAt
	}
	return d
}

// violated returns the enforced rules that denied the request and whose verdicts the given function accepts.
func (c *Check) violated(is func(*LimitVerdict) bool) []string {
	var rules []string
	for i := range c.Limits {
		if v := &c.Limits[i]; !v.Allowed && !v.Shadow && is(v) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
