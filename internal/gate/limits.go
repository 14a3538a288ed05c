package gate

import (
	"context"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// refundBudget bounds giving tokens back. The caller waits for it: whoever was refused finds its tokens there when it
	// asks again.
	refundBudget = 200 * time.Millisecond

	// reducedRetryAfter is when a caller may come back that met a closed rule while Redis is away: the breaker tries Redis
	// again after 5 s.
	reducedRetryAfter = 5 * time.Second
)

// limited is what the limits said about a request.
type limited struct {
	verdicts []LimitVerdict
	refusal  error // *RateLimited, *CostExceedsCapacity, *ReducedCapacity, or nil
	degraded bool
	charged  ratelimit.Request // what to give back if the work is not done; empty after a peek
	reads    []string          // what the keys held that were read with the decision; nil if they were not
}

// limits asks the limits that apply, and reads keys of the tenant's with the same question. A limiter that cannot answer at all is an error, and so are too many limits; closed rules
// are a refusal.
func (g *Gate) limits(ctx context.Context, req *Request, facts *facts, charge bool, reads []string) (limited, error) {
	var space [listSpace]*member
	rules := facts.rules.apply(space[:0], req, facts.plan)
	switch {
	case len(rules) == 0:
		return limited{}, nil
	case len(rules) > ratelimit.MaxCharges:
		return limited{}, &TooManyLimits{Rules: namesOf(rules)}
	}
	ask := ratelimit.Request{Tenant: req.Tenant, Charges: make([]ratelimit.Charge, len(rules)), Reads: reads}
	for i, m := range rules {
		ask.Charges[i] = ratelimit.Charge{Rule: &m.compiled, Dimension: m.dimension(req), Cost: m.cost(req)}
		if m.zoneOfTenant {
			ask.Charges[i].Zone = facts.zone
		}
	}
	decide := g.limiter.Peek
	if charge {
		decide = g.limiter.Consume
	}
	decision, err := decide(ctx, ask)
	switch {
	case errors.Is(err, ratelimit.ErrUnavailable):
		return limited{degraded: true, refusal: &ReducedCapacity{Violated: closed(rules), RetryAfter: reducedRetryAfter}}, nil
	case err != nil:
		return limited{}, limiterError(err)
	}
	out := limited{degraded: decision.Degraded, reads: decision.Reads, verdicts: make([]LimitVerdict, 0, len(decision.Verdicts))}
	for i := range decision.Verdicts {
		if v := &decision.Verdicts[i]; !v.Unknown { // there is no bucket behind such a verdict, so nothing to report
			out.verdicts = append(out.verdicts, verdictOf(v, rules[i], decision.Degraded))
		}
	}
	if charge {
		out.charged = decision.Charged(ask)
	}
	if !decision.Allowed {
		out.refusal = refusalOf(out.verdicts)
	}
	return out, nil
}

func limiterError(err error) error {
	if field, ok := errors.AsType[*rule.FieldError](err); ok {
		return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: field.Field, Detail: field.Reason}
	}
	return unavailable("the limits could not be decided; nothing was done", err)
}

func namesOf(rules []*member) []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.compiled.ID
	}
	return names
}

func closed(rules []*member) []string {
	var names []string
	for _, r := range rules {
		if r.compiled.OnBackendError == rule.BackendClosed && !r.compiled.Shadow {
			names = append(names, r.compiled.ID)
		}
	}
	return names
}

func verdictOf(v *ratelimit.Verdict, m *member, degraded bool) LimitVerdict {
	quota, window := v.Rule.Rate.PerSeconds()
	return LimitVerdict{
		Rule: v.Rule.ID, Kind: v.Rule.Kind.String(), Replaces: m.replaces, Allowed: v.Allowed, Remaining: v.Remaining, Limit: v.Limit,
		Quota: quota, WindowSeconds: window, Window: v.Rule.Kind.Windowed(),
		RetryAfter: v.RetryAfter, Reset: v.Next, Delay: v.Delay, Shadow: v.Shadow, Never: v.Never, Degraded: degraded,
	}
}

// refusalOf turns the verdicts of a denied request into an error. A rule that can never let it pass comes first: waiting for
// the others would be in vain.
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

// giveBack returns what was charged, and makes the verdicts say so. The caller may have gone; what was charged for it must come
// back all the same.
func (g *Gate) giveBack(ctx context.Context, said *limited) {
	if len(said.charged.Charges) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundBudget)
	defer cancel()
	after, err := g.limiter.Refund(ctx, said.charged)
	for i := range after {
		if !after[i].Unknown {
			said.returned(&after[i])
		}
	}
	if err != nil {
		g.metrics.refunds.WithLabelValues("lost").Inc()
		g.log.WarnContext(ctx, "charged limits not given back; they refill by themselves", "error", err)
		return
	}
	g.metrics.refunds.WithLabelValues("done").Inc()
}

// returned corrects the verdict on a rule whose tokens have come back: who is told that none are left, and when there is one,
// stays away until then.
func (l *limited) returned(after *ratelimit.Verdict) {
	for i := range l.verdicts {
		if v := &l.verdicts[i]; v.Rule == after.Rule.ID {
			v.Remaining, v.Reset, v.Delay = after.Remaining, after.Next, 0
		}
	}
}
