package gate

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// chargeKeyAge is how long a charge is remembered under its key. The retries of clients end earlier.
	chargeKeyAge = 10 * time.Minute

	// chargeKeyWait is the time for which a charge reserves its key while it is being decided. The reservation also
	// ends after this time if the process dies or the outcome is unknown.
	chargeKeyWait = 10 * time.Second

	// chargeSkew is added to the lifetime of a charge's id, because the clocks of instances differ.
	chargeSkew = time.Minute
)

// ChargeRequest is a request to charge limits without a debit. Items, MaxStale, Mode and Metadata of the request are
// not used, except that limits match the meters of Items.
type ChargeRequest struct {
	Request

	// Cost multiplies the tokens that each limit takes for a request: 1..bound.MaxAmount; 0 means 1.
	Cost int64

	// AfterTheFact means that the work is already done. The limits are charged even if too few tokens remain. Each
	// bucket can fall below zero, by at most its debt.
	AfterTheFact bool

	// Rules names the limits to charge. If other limits replace a named limit, those limits are charged instead.
	// Empty: all limits that apply.
	Rules []string
}

// Charged is the answer to Charge. If Charge fails, Limits contains the verdicts so far.
type Charged struct {
	// ID is the argument of ParseCharge for a refund. It is empty if nothing was charged.
	ID string

	Limits         []LimitVerdict
	LimitsDegraded bool // the limits were decided without Redis
	Replayed       bool // the key was used before; Limits has the present state
}

// Charge charges the limits that apply. It does not query PostgreSQL. A second charge with the same key within
// chargeKeyAge charges nothing. While Redis is down, only the process that used a key knows the key. The error is
// *Blocked, *RateLimited, *CostExceedsCapacity, *ReducedCapacity or *TooManyLimits. It is *errcode.Error if the
// tenant does not exist or is suspended, or if the tenant has no limit that Rules names.
func (g *Gate) Charge(ctx context.Context, req ChargeRequest) (Charged, error) {
	var facts tenantFacts
	out, err := withNewest(ctx, g, func() (_ Charged, err error) {
		facts, err = g.tenants.facts(ctx, req.Tenant)
		switch {
		case err != nil:
			return Charged{}, err
		case req.Key == "" || req.DryRun:
			return g.charge(ctx, &req, &facts)
		default:
			return g.chargeOnce(ctx, &req, &facts)
		}
	})
	g.observe(ctx, &outcome{
		operation: "charge", plan: facts.plan, req: &req.Request, limits: out.Limits, replayed: out.Replayed, err: err,
	})
	return out, err
}

func (g *Gate) charge(ctx context.Context, req *ChargeRequest, facts *tenantFacts) (Charged, error) {
	blocked, exempt := g.blocked(&req.Request)
	if blocked != nil {
		return Charged{}, blocked
	}
	// The tenant. If it does not exist or is suspended, limits that count attempts are charged nevertheless.
	var refused error
	how := chargeAll
	switch {
	case facts.unknown:
		refused, how = noTenant(req.Tenant), chargeAttempts
	case facts.suspended:
		refused, how = &errcode.Error{Code: errcode.TenantSuspended, Detail: "the tenant is suspended"}, chargeAttempts
	}
	switch {
	case req.DryRun:
		how = chargeNothing
	case req.AfterTheFact && refused == nil:
		how = chargeLate
	}

	// The rules to charge, unless a block exempts the request from limits.
	rules, err := facts.rules.named(&req.Request, facts.plan, req.Rules)
	switch {
	case err != nil && refused == nil:
		return Charged{}, err
	case exempt || err != nil:
		return Charged{}, refused
	}

	// The decision, and the answer to the caller.
	call := limitsCall{req: &req.Request, facts: facts, rules: rules, times: max(req.Cost, 1), how: how}
	res, err := g.decideRules(ctx, &call, nil)
	if req.AfterTheFact {
		res.afterTheFact(how)
	}
	out := Charged{Limits: res.verdicts, LimitsDegraded: res.degraded}
	switch {
	case err != nil:
		return Charged{}, err
	case res.refusal != nil:
		return out, res.refusal
	case refused != nil:
		g.refundSuccesses(ctx, &res, facts)
		return Charged{}, refused
	}
	if len(res.charged.Charges) > 0 {
		out.ID = g.chargeIDs.Text(res.charged.Receipt(req.Subject))
	}
	return out, nil
}

// afterTheFact changes res to the result of a charge after the fact. No bucket can deny such a charge.
func (res *limitsResult) afterTheFact(how charging) {
	if _, closed := res.refusal.(*ReducedCapacity); !closed { //nolint:errorlint // decideRules returns it unwrapped
		res.refusal = nil
	}
	for i := range res.verdicts {
		v := &res.verdicts[i]
		v.pass()
		v.Late = how == chargeLate
	}
}

// pass changes v to the verdict on a request that passed.
func (v *LimitVerdict) pass() { v.Allowed, v.Never, v.RetryAfter, v.Banned = true, false, 0, 0 }

// chargeOnce charges under a key. Before the charge it stores a fingerprint of the request with "?" under the key.
// Afterwards it stores the fingerprint with "=" and the id of the charge.
func (g *Gate) chargeOnce(ctx context.Context, req *ChargeRequest, facts *tenantFacts) (Charged, error) {
	name, fingerprint := onceKey(req.Tenant, rule.Dimension("key", req.Key)), req.fingerprint()
	held, first := g.once.Claim(ctx, name, fingerprint+"?", chargeKeyWait)
	if !first {
		return g.chargeAgain(ctx, req, facts, held, fingerprint)
	}
	out, err := g.charge(ctx, req, facts)
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.refundBudget)
	defer cancel()
	switch {
	case err == nil:
		g.once.Put(background, name, fingerprint+"="+out.ID, chargeKeyAge)
	case CodeOf(err) != errcode.Unavailable: // if unavailable, tokens may have been charged: the key stays reserved
		g.once.Drop(background, name)
	}
	return out, err
}

// chargeAgain answers a charge whose key was used before. It charges nothing, and returns the present state of the
// limits.
func (g *Gate) chargeAgain(ctx context.Context, req *ChargeRequest, facts *tenantFacts, held, fingerprint string) (Charged, error) {
	state, same := strings.CutPrefix(held, fingerprint)
	id, done := strings.CutPrefix(state, "=")
	switch {
	case !same:
		return Charged{}, &errcode.Error{Code: errcode.IdempotencyKeyReused, Detail: "the key was used for another charge"}
	case !done:
		return Charged{}, unavailable("a charge with this key is being decided, or its outcome is unknown; retry with the same key", nil)
	}
	shown := *req
	shown.DryRun = true
	out, err := g.charge(ctx, &shown, facts)
	if _, limited := err.(*RateLimited); err != nil && !limited { //nolint:errorlint // charge returns it unwrapped
		return Charged{}, err
	}
	for i := range out.Limits { // the first charge passed these limits
		out.Limits[i].pass()
	}
	out.ID, out.Replayed = id, true
	return out, nil
}

// fingerprint returns 16 characters that differ if the requests differ.
func (req *ChargeRequest) fingerprint() string {
	parts := []string{req.Subject, req.Route, req.IP.String(), req.Method, string(binary.AppendVarint(nil, req.Cost))}
	if req.AfterTheFact {
		parts = append(parts, "after the fact")
	}
	return rule.Dimension(append(parts, req.Rules...)...)
}

// named returns the rules that decide req, as apply does. If names is not empty, it returns only the named rules, or
// the rules that replace them. If the tenant has no limit with one of these names, or the limit is of kind
// concurrency, the error is an *errcode.Error.
func (s *ruleSet) named(req *Request, plan string, names []string) ([]*planRule, error) {
	rules := s.apply(make([]*planRule, 0, fewRules), req, plan)
	if len(names) == 0 {
		return rules, nil
	}
	for _, name := range names {
		if p := s.rule(name); p == nil || p.compiled.Kind == rule.KindConcurrency {
			return nil, &errcode.Error{Code: errcode.NotFound, Detail: "the tenant has no limit " + name + " that requests charge; a limit that was just created is known within moments"}
		}
	}
	return slices.DeleteFunc(rules, func(p *planRule) bool {
		for at := p.link; at != nil; at = s.up(at) {
			if slices.Contains(names, at.id) {
				return false
			}
		}
		return true
	}), nil
}

// times returns the cost multiplied by n, but at most burst + debt + 1. A bucket can never pay that much.
func (r *limitRule) times(cost, n int64) int64 {
	most := max(r.compiled.Burst+1, min(r.compiled.Burst+r.compiled.Debt+1, ledger.MaxAmount))
	if n > most/cost {
		return most
	}
	return cost * n
}

// ChargeSettled is the answer to SettleCharge.
type ChargeSettled struct {
	Settled bool // false: it was settled or refunded before, or the buckets have refilled since
	Limits  []LimitVerdict
}

// Charge identifies a charge for its settlement. A charge can be settled once.
type Charge struct {
	receipt ratelimit.Receipt
	issued  time.Time
	name    string // key of the charge among the remembered settlements
}

// Tenant returns the tenant that was charged.
func (c *Charge) Tenant() string { return c.receipt.Tenant }

// SettleCharge changes the limits to what they would be if cost, 0..bound.MaxAmount, had been the Cost of the charge.
// A cost of 0 is a refund. What was taken too much comes back, except for what has come back by itself. What is missing
// is taken even if too few tokens remain. Each bucket can fall below zero, by at most its debt. A second settlement
// changes nothing. Errors are *errcode.Error. After an error the settlement may have been made; if it was, a repeated
// call changes nothing.
func (g *Gate) SettleCharge(ctx context.Context, c *Charge, cost int64) (ChargeSettled, error) {
	facts, err := g.tenants.facts(ctx, c.receipt.Tenant)
	if err != nil {
		return ChargeSettled{}, err
	}
	age, life := time.Since(c.issued), time.Duration(0)
	rules := make(map[string]*planRule)
	req := c.receipt.Request(func(id string) (*rule.Rule, *time.Location) {
		p := facts.rules.rule(id)
		if p != nil {
			p = g.overridden(ctx, p, &facts, c.receipt.Subject)
		}
		if p == nil || age > p.refills {
			return nil, nil
		}
		life = max(life, p.refills)
		rules[id] = p
		if p.zoneOfTenant {
			return &p.compiled, facts.zone
		}
		return &p.compiled, nil
	})
	if len(req.Charges) == 0 {
		return ChargeSettled{}, nil
	}
	costs := make([]int64, len(req.Charges))
	for i, charged := range req.Charges {
		switch {
		case cost == 0:
		case charged.Unit == 0:
			return ChargeSettled{}, errcode.Errorf(errcode.InvalidArgument, "charge_id",
				"is from an earlier version of the service, which can only be refunded")
		default:
			costs[i] = min(cost, bound.MaxAmount/charged.Unit) * charged.Unit
		}
	}
	if _, first := g.once.Claim(ctx, c.name, "", life-age+chargeSkew); !first {
		return ChargeSettled{}, nil
	}
	after, err := g.limiter.Settle(ctx, req, costs)
	out := ChargeSettled{Settled: true}
	for i := range after {
		if v := &after[i]; !v.Unknown {
			out.Limits = append(out.Limits, verdictOf(v, rules[v.Rule.ID], false))
		}
	}
	if err != nil {
		return out, unavailable("the tokens may not have been given back or charged; they come back with time", err)
	}
	return out, nil
}

// ParseCharge returns the charge that an id identifies. If no instance with the same IDKey has issued the id, the
// error is an *errcode.Error with errcode.ChargeNotFound.
func (g *Gate) ParseCharge(id string) (*Charge, error) {
	receipt, issued, name, err := g.chargeIDs.Parse(id)
	if err != nil {
		return nil, &errcode.Error{Code: errcode.ChargeNotFound, Detail: "no such charge"}
	}
	return &Charge{receipt: receipt, issued: issued, name: onceKey(receipt.Tenant, name)}, nil
}

// onceKey returns the Redis key of a name that a tenant uses once. It is in the slot of the tenant's buckets.
func onceKey(tenant, name string) string { return "rl:{" + bound.Tag(tenant) + "}once:" + name }
