package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Scopes tell the endpoints apart in an operation's fingerprint: a key used with one of them is not a retry on the other.
const (
	scopeConsume = "consume"
	scopeDebit   = ""
)

// Consume charges the limits that apply and debits the units, or does neither.
//
// The limits are charged first, so that a flood is stopped before PostgreSQL sees it. What was charged is given back when
// the debit is refused, fails or turns out to be a replay; only when its outcome is unknown the tokens stay charged, as the
// debit may stand, and for a replay at a gateway, which is traffic like any other. Errors: *Blocked, *RateLimited,
// *CostExceedsCapacity, *ReducedCapacity, *TooManyLimits, or *ledger.Error. Retrying with the same
// key is always safe.
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
	facts, err := g.terms.of(ctx, req.Tenant)
	if err != nil {
		return Debited{}, err
	}
	var said limited
	if !exempt {
		if said, err = g.limits(ctx, req, &facts, !req.DryRun, nil); err != nil {
			return Debited{}, err
		}
	}
	if said.refusal != nil {
		return Debited{Limits: said.verdicts, LimitsDegraded: said.degraded}, said.refusal
	}
	result, err := g.decide(ctx, req, &facts, scopeOfConsume(req))
	if err != nil && ledger.CodeOf(err) != ledger.CodeOutcomeUnknown || err == nil && result.Replayed && req.Passage == "" {
		g.giveBack(ctx, &said)
	}
	return Debited{Result: result, Limits: said.verdicts, LimitsDegraded: said.degraded}, err
}

// Debit debits units without asking the limits. Errors are *ledger.Error.
func (g *Gate) Debit(ctx context.Context, req Request) (Debited, error) {
	out, err := g.debit(ctx, &req)
	g.metrics.decisions.WithLabelValues("debit", outcome(err, out.Result != nil && out.Result.Replayed)).Inc()
	return out, err
}

func (g *Gate) debit(ctx context.Context, req *Request) (Debited, error) {
	facts, err := g.terms.of(ctx, req.Tenant)
	if err != nil {
		return Debited{}, err
	}
	result, err := g.decide(ctx, req, &facts, scopeDebit)
	return Debited{Result: result}, err
}

// decide lets the ledger decide. result is nil if and only if err is not.
func (g *Gate) decide(ctx context.Context, req *Request, facts *facts, scope string) (*ledger.DebitResult, error) {
	d := debitOf(req, facts, scope)
	return pg.DoOrDryRun(ctx, g.ledger, d, req.DryRun)
}

// debitOf adds to a request what the catalogue knows. The ledger answers a replay before it looks at Suspended, so a
// tenant that was suspended since gets the answer it was given.
func debitOf(req *Request, facts *facts, scope string) *ledger.Debit {
	return &ledger.Debit{
		Tenant: req.Tenant, Key: req.Key, Subject: req.Subject, Items: facts.itemsOf(req.Items), Mode: req.Mode, Metadata: req.Metadata,
		Suspended: facts.suspended, Scope: scope,
	}
}

// DebitBatch makes independent debits, each with its own key, and answers each in order. At most ledger.BatchMax.
func (g *Gate) DebitBatch(ctx context.Context, reqs []Request) []DebitOutcome {
	out := make([]DebitOutcome, len(reqs))
	debits := make([]*ledger.Debit, 0, len(reqs))
	places := make([]int, 0, len(reqs))
	for i := range reqs {
		facts, err := g.terms.of(ctx, reqs[i].Tenant)
		if err != nil {
			out[i].Err = err
			continue
		}
		if reqs[i].DryRun {
			out[i].Result, out[i].Err = g.decide(ctx, &reqs[i], &facts, scopeDebit)
			continue
		}
		debits = append(debits, debitOf(&reqs[i], &facts, scopeDebit))
		places = append(places, i)
	}
	if len(debits) > 0 {
		for j, o := range g.ledger.DebitBatch(ctx, debits) {
			out[places[j]] = DebitOutcome{Result: o.Result, Err: o.Err}
		}
	}
	for i := range out {
		g.metrics.decisions.WithLabelValues("debit", outcome(out[i].Err, out[i].Result != nil && out[i].Result.Replayed)).Inc()
	}
	return out
}

// Grant issues units; dryRun only decides. Suspended tenants can be granted units: it is how some of them come back. Errors
// are *ledger.Error.
func (g *Gate) Grant(ctx context.Context, grant *ledger.Grant, dryRun bool) (*ledger.GrantResult, error) {
	return pg.DoOrDryRun(ctx, g.ledger, grant, dryRun)
}
