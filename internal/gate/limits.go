package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// defaultRefundBudget is the longest time of a refund of tokens. The caller waits for the refund, so that the
	// tokens are in the bucket when the caller retries.
	defaultRefundBudget = 200 * time.Millisecond

	// reducedRetryAfter is the Retry-After of a closed rule while Redis is down. The circuit breaker tries Redis
	// again after 5 s.
	reducedRetryAfter = 5 * time.Second
)

// limitsResult is the result of deciding the limits of one request.
type limitsResult struct {
	verdicts []LimitVerdict
	refusal  error             // *RateLimited, *CostExceedsCapacity or *ReducedCapacity; nil: all limits pass
	degraded bool              // the limits were decided without Redis
	charged  ratelimit.Request // the charges that a refund can give back; empty after a peek
}

// charging selects the rules that a decision charges.
type charging int

const (
	chargeNothing  charging = iota
	chargeAttempts          // all rules if one rule counts attempts, else none; for a request that will not be granted
	chargeAll
	chargeLate // all rules, for work that is already done
)

// limits decides every rule that applies to req. If reads is not nil, the round trip to Redis includes these reads.
// It returns an error if the limiter cannot decide, or if more than MaxCharges rules apply. If a closed rule applies
// while Redis is down, the result is a refusal, not an error.
func (g *Gate) limits(
	ctx context.Context, req *Request, facts *tenantFacts, how charging, reads *redisstore.Reads,
) (limitsResult, error) {
	rules := facts.rules.apply(make([]*planRule, 0, fewRules), req, facts.plan)
	return g.decideRules(ctx, &limitsCall{req: req, facts: facts, rules: rules, times: 1, how: how}, reads)
}

// limitsCall contains the rules to decide for a request, and the number that multiplies its cost.
type limitsCall struct {
	req   *Request
	facts *tenantFacts
	rules []*planRule
	times int64 // multiplies the cost of the request
	how   charging
}

// charges reports whether the decision takes tokens if the request passes.
func (c *limitsCall) charges() bool {
	return c.how >= chargeAll ||
		c.how == chargeAttempts && slices.ContainsFunc(c.rules, func(p *planRule) bool { return p.attempts })
}

// decideRules decides the rules of c. If reads is not nil, the round trip to Redis includes these reads. reads is not
// a field of c, because c would then be allocated on the heap.
func (g *Gate) decideRules(ctx context.Context, c *limitsCall, reads *redisstore.Reads) (limitsResult, error) {
	switch {
	case len(c.rules) == 0:
		return limitsResult{}, nil
	case len(c.rules) > ratelimit.MaxCharges:
		return limitsResult{}, &TooManyLimits{Rules: namesOf(c.rules)}
	}
	ask := g.limiterRequest(ctx, c)
	ask.With = reads
	decide := g.limiter.Peek
	switch {
	case c.how == chargeLate:
		decide = g.limiter.ConsumeLate
	case c.charges():
		decide = g.limiter.Consume
	}
	decision, err := decide(ctx, ask)
	switch {
	case errors.Is(err, ratelimit.ErrUnavailable):
		refusal := &ReducedCapacity{Violated: closedRules(c.rules), RetryAfter: reducedRetryAfter}
		return limitsResult{degraded: true, refusal: refusal}, nil
	case err != nil:
		return limitsResult{}, limiterError(err)
	}
	return g.limitsResult(c, &ask, &decision), nil
}

// peekHeld decides the limits of a check from the buckets that this process holds. ok is false if Redis must be
// queried, or if the limits cannot be decided.
func (g *Gate) peekHeld(ctx context.Context, req *Request, facts *tenantFacts) (res limitsResult, ok bool) {
	rules := facts.rules.apply(make([]*planRule, 0, fewRules), req, facts.plan)
	if len(rules) == 0 || len(rules) > ratelimit.MaxCharges {
		return limitsResult{}, len(rules) == 0
	}
	c := limitsCall{req: req, facts: facts, rules: rules, times: 1, how: chargeNothing}
	ask := g.limiterRequest(ctx, &c)
	decision, ok := g.limiter.PeekHeld(ask)
	if !ok {
		return limitsResult{}, false
	}
	return g.limitsResult(&c, &ask, &decision), true
}

// limiterRequest returns the limiter's request for c. It replaces rules in c.rules for which an override is in force.
func (g *Gate) limiterRequest(ctx context.Context, c *limitsCall) ratelimit.Request {
	g.override(ctx, c.rules, c.facts, c.req.Subject)
	ask := ratelimit.Request{
		Tenant: c.req.Tenant, Charges: make([]ratelimit.Charge, len(c.rules)), Once: c.req.Once,
		Fresh: c.req.MaxStale != nil && *c.req.MaxStale <= 0,
	}
	for i, p := range c.rules {
		unit := p.cost(c.req)
		ask.Charges[i] = ratelimit.Charge{
			Rule: &p.compiled, Dimension: p.dimension(c.req), Cost: p.times(unit, c.times), Unit: unit,
		}
		if p.zoneOfTenant {
			ask.Charges[i].Zone = c.facts.zone
		}
	}
	return ask
}

// limitsResult converts a decision of the limiter into a limitsResult.
func (g *Gate) limitsResult(c *limitsCall, ask *ratelimit.Request, decision *ratelimit.Decision) limitsResult {
	charges := c.charges()
	res := limitsResult{degraded: decision.Degraded, verdicts: make([]LimitVerdict, 0, len(decision.Verdicts))}
	for i := range decision.Verdicts {
		if v := &decision.Verdicts[i]; !v.Unknown { // an unknown verdict does not come from a bucket
			res.verdicts = append(res.verdicts, verdictOf(v, c.rules[i], decision.Degraded))
			if charges {
				g.noteNames(c.rules[i], ask.Charges[i].Dimension, c.req)
			}
		}
	}
	if charges {
		res.charged = decision.Charged(*ask)
	}
	if !decision.Allowed {
		res.refusal = refusalOf(res.verdicts)
	}
	return res
}

func limiterError(err error) error {
	if field, ok := errors.AsType[*rule.FieldError](err); ok {
		return errcode.Errorf(errcode.InvalidArgument, field.Field, "%s", field.Reason)
	}
	return unavailable("the limits could not be decided; this attempt did nothing", err)
}

func namesOf(rules []*planRule) []string {
	names := make([]string, len(rules))
	for i, p := range rules {
		names[i] = p.compiled.ID
	}
	return names
}

// closedRules returns the ids of the enforced rules with on_backend_error closed. They refuse requests while Redis is
// down.
func closedRules(rules []*planRule) []string {
	var names []string
	for _, p := range rules {
		if p.compiled.OnBackendError == rule.BackendClosed && !p.compiled.Shadow {
			names = append(names, p.compiled.ID)
		}
	}
	return names
}

func verdictOf(v *ratelimit.Verdict, p *planRule, degraded bool) LimitVerdict {
	return LimitVerdict{
		Rule: v.Rule.ID, Kind: v.Rule.Kind.String(), Replaces: p.replaces, Allowed: v.Allowed, Remaining: v.Remaining, Limit: v.Limit,
		Policy: p.policy, Window: v.Rule.Kind.Windowed(), RetryAfter: v.RetryAfter, Banned: v.Banned, Next: v.Next,
		Full: v.Reset, Delay: v.Delay, Charged: v.Charged, Shadow: v.Shadow, Never: v.Never, Degraded: degraded,
	}
}

// refusalOf returns the error for the verdicts of a denied request. If the cost exceeds the capacity of some rules,
// the error names only these rules, because waiting for the other rules does not help.
func refusalOf(verdicts []LimitVerdict) error {
	var never, denied []string
	var wait time.Duration
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.Allowed || v.Shadow:
		case v.Never:
			never = append(never, v.Rule)
		default:
			denied = append(denied, v.Rule)
			wait = max(wait, v.RetryAfter)
		}
	}
	if len(never) > 0 {
		return &CostExceedsCapacity{Violated: never, Verdicts: verdicts}
	}
	return &RateLimited{Violated: denied, RetryAfter: max(wait, time.Millisecond), Verdicts: verdicts}
}

// refundSuccesses gives back the tokens that a request took from rules that count successes. The request was refused,
// or was a replay.
func (g *Gate) refundSuccesses(ctx context.Context, res *limitsResult, facts *tenantFacts) {
	res.charged = res.charged.Only(func(r *rule.Rule) bool {
		p := facts.rules.rule(r.ID)
		return p == nil || !p.attempts
	})
	g.refund(ctx, res)
}

// refund gives back the charged tokens and corrects the verdicts, even if the caller's context has ended.
func (g *Gate) refund(ctx context.Context, res *limitsResult) {
	if len(res.charged.Charges) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.refundBudget)
	defer cancel()
	after, err := g.limiter.Refund(ctx, res.charged)
	for i := range after {
		if !after[i].Unknown {
			res.refunded(&after[i])
		}
	}
	if err != nil {
		g.metrics.refunds.WithLabelValues("lost").Inc()
		g.log.WarnContext(ctx, "charged limits were not refunded; they refill by themselves", "error", err)
		return
	}
	g.metrics.refunds.WithLabelValues("done").Inc()
}

// refunded updates the verdict of a rule after its refund, so that the caller does not wait for tokens that were
// given back.
func (res *limitsResult) refunded(after *ratelimit.Verdict) {
	for i := range res.verdicts {
		if v := &res.verdicts[i]; v.Rule == after.Rule.ID {
			v.Remaining = after.Remaining
			v.Next = after.Next
			v.Full = after.Reset
			v.Delay = 0
		}
	}
}
