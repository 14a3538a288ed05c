package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Scopes are part of an operation's fingerprint. A key that was used on one endpoint is refused as reused on another.
const (
	scopeConsume = "consume"
	scopeDebit   = ""
	scopeForward = "passage " // plus Request.Forwarded. Stored fingerprints contain the text: it must not change
)

// consumeScope returns the scope of a consume. A gateway's key is good for one method and URI.
func consumeScope(req *Request) string {
	if req.Forwarded == "" {
		return scopeConsume
	}
	return scopeForward + req.Forwarded
}

// Consume charges the limits that apply and debits the units, or does neither.
//
// The limits come first, so that a flood of requests does not reach PostgreSQL. They are refunded if the debit is refused,
// fails or is a replay. They stay charged if the outcome of the debit is unknown, because it may have been made, and for a
// gateway's replay, because it is one more request. Errors: *Blocked, *RateLimited, *CostExceedsCapacity, *ReducedCapacity,
// *TooManyLimits or *ledger.Error. Retrying with the same key is always safe.
func (g *Gate) Consume(ctx context.Context, req Request) (Debited, error) {
	out, err := g.consume(ctx, &req)
	g.metrics.decisions.WithLabelValues("consume", outcome(err, out.Result != nil && out.Result.Replayed)).Inc()
	return out, err
}

func (g *Gate) consume(ctx context.Context, req *Request) (Debited, error) {
	blocked, exempt := g.blocked(req)
	if blocked != nil {
		return Debited{}, blocked
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return Debited{}, err
	}
	out, err := g.consumeAs(ctx, req, &facts, exempt)
	g.debited(facts.plan, req.DryRun, out.Result, err)
	return out, err
}

// consumeAs consumes with the tenant's facts. Who is exempt is not asked for limits.
func (g *Gate) consumeAs(ctx context.Context, req *Request, facts *tenantFacts, exempt bool) (Debited, error) {
	var res limitsResult
	var err error
	if !exempt {
		if res, err = g.limits(ctx, req, facts, !req.DryRun, nil); err != nil {
			return Debited{}, err
		}
	}
	if res.refusal != nil {
		return Debited{Limits: res.verdicts, LimitsDegraded: res.degraded}, res.refusal
	}
	result, err := g.decide(ctx, req, facts, consumeScope(req))
	if err != nil && ledger.CodeOf(err) != ledger.CodeOutcomeUnknown || err == nil && result.Replayed && req.Forwarded == "" {
		g.refund(ctx, &res)
	}
	return Debited{Result: result, Limits: res.verdicts, LimitsDegraded: res.degraded}, err
}

// Debit debits units without asking the limits. Errors are *ledger.Error.
func (g *Gate) Debit(ctx context.Context, req Request) (Debited, error) {
	out, err := g.debit(ctx, &req)
	g.metrics.decisions.WithLabelValues("debit", outcome(err, out.Result != nil && out.Result.Replayed)).Inc()
	return out, err
}

func (g *Gate) debit(ctx context.Context, req *Request) (Debited, error) {
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return Debited{}, err
	}
	result, err := g.decide(ctx, req, &facts, scopeDebit)
	g.debited(facts.plan, req.DryRun, result, err)
	return Debited{Result: result}, err
}

// decide passes the debit to the ledger. It returns either a result or an error.
func (g *Gate) decide(ctx context.Context, req *Request, facts *tenantFacts, scope string) (*ledger.DebitResult, error) {
	d := debitOf(req, facts, scope)
	return pg.DoOrDryRun(ctx, g.ledger, d, req.DryRun)
}

// debitOf makes the debit of a request, with facts from the catalogue. The ledger answers a replay before it looks at Suspended,
// so a tenant that was suspended in between still gets its stored answer.
func debitOf(req *Request, facts *tenantFacts, scope string) *ledger.Debit {
	return &ledger.Debit{
		Tenant: req.Tenant, Key: req.Key, Subject: req.Subject, Items: facts.itemsOf(req.Items), Mode: req.Mode, Metadata: req.Metadata,
		Suspended: facts.suspended, Scope: scope,
	}
}

// DebitBatch makes up to ledger.BatchMax independent debits, each with its own key. It returns their outcomes in order.
func (g *Gate) DebitBatch(ctx context.Context, reqs []Request) []DebitOutcome {
	out := make([]DebitOutcome, len(reqs))
	debits := make([]*ledger.Debit, 0, len(reqs))
	places, plans := make([]int, 0, len(reqs)), make([]string, 0, len(reqs))
	for i := range reqs {
		facts, err := g.tenants.facts(ctx, reqs[i].Tenant)
		if err != nil {
			out[i].Err = err
			continue
		}
		if reqs[i].DryRun {
			out[i].Result, out[i].Err = g.decide(ctx, &reqs[i], &facts, scopeDebit)
			continue
		}
		debits = append(debits, debitOf(&reqs[i], &facts, scopeDebit))
		places, plans = append(places, i), append(plans, facts.plan)
	}
	if len(debits) > 0 {
		for j, o := range g.ledger.DebitBatch(ctx, debits) {
			out[places[j]] = DebitOutcome{Result: o.Result, Err: o.Err}
			g.debited(plans[j], false, o.Result, o.Err)
		}
	}
	for i := range out {
		g.metrics.decisions.WithLabelValues("debit", outcome(out[i].Err, out[i].Result != nil && out[i].Result.Replayed)).Inc()
	}
	return out
}

// Grant issues units; dryRun decides and writes nothing. A suspended tenant can be granted units, for example after it has
// paid. Errors are *ledger.Error.
func (g *Gate) Grant(ctx context.Context, grant *ledger.Grant, dryRun bool) (*ledger.GrantResult, error) {
	return pg.DoOrDryRun(ctx, g.ledger, grant, dryRun)
}
