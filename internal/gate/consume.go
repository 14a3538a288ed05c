package gate

import (
	"cmp"
	"context"

	"github.com/quotasvc/quotasvc/internal/gate/newcomer"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
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
// The limits come first, so that a flood of requests does not reach PostgreSQL. If the debit is refused or is a replay, those that count
// successes are refunded; if it fails, all are. All stay charged if the outcome of the debit is unknown, because it may have been made, and
// for a gateway's replay, because it is one more request. Errors: *Blocked, *RateLimited, *CostExceedsCapacity, *ReducedCapacity,
// *TooManyLimits or *ledger.Error. Retrying with the same key is always safe.
func (g *Gate) Consume(ctx context.Context, req Request) (Debited, error) {
	out, err := g.consume(ctx, &req)
	g.metrics.decisions.WithLabelValues("consume", outcome(err, out.Result != nil && out.Result.Replayed)).Inc()
	return out, err
}

func (g *Gate) consume(ctx context.Context, req *Request) (Debited, error) {
	blocked, exempt := g.blocked(req)
	if blocked != nil {
		g.debited(ctx, "", req, nil, blocked)
		return Debited{}, blocked
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return Debited{}, err
	}
	out, err := g.consumeAs(ctx, req, &facts, exempt)
	g.debited(ctx, facts.plan, req, out.Result, err)
	g.shadowed(req, out.Limits, err)
	return out, err
}

// consumeAs consumes with the tenant's facts. Who is exempt is not asked for limits.
func (g *Gate) consumeAs(ctx context.Context, req *Request, facts *tenantFacts, exempt bool) (Debited, error) {
	d := debitOf(req, facts, consumeScope(req))
	known, how := recalled{}, chargeAll
	switch {
	case req.DryRun:
		how = chargeNothing
	case facts.unknown:
		how = chargeAttempts
	default:
		if known = g.memory.recall(d, g.now()); known.likelyNoGrant(req) {
			how = chargeAttempts
		}
	}
	var res limitsResult
	var err error
	var reads *redisstore.Reads
	if !exempt {
		if known.balance != nil {
			reads = g.copies.Reads(appendKeys(nil, req), nil)
		}
		if res, err = g.limits(ctx, req, facts, how, reads); err != nil {
			return Debited{}, err
		}
	}
	if res.refusal != nil {
		return Debited{Limits: res.verdicts, LimitsDegraded: res.degraded}, res.refusal
	}
	result, settled, err := g.settle(ctx, req, facts, d, &known, reads)
	if !settled && how == chargeAttempts && len(res.charged.Charges) == 0 && !exempt { // it may be granted after all
		if res, err = g.limits(ctx, req, facts, chargeAll, nil); err != nil || res.refusal != nil {
			return Debited{Limits: res.verdicts, LimitsDegraded: res.degraded}, cmp.Or(err, res.refusal)
		}
	}
	if !settled {
		result, err = g.decide(ctx, req, facts, d)
	}
	g.giveBack(ctx, req, &res, facts, result, err)
	return Debited{Result: result, Limits: res.verdicts, LimitsDegraded: res.degraded}, err
}

// giveBack refunds what the limits took, as far as the outcome of the debit says so.
func (g *Gate) giveBack(ctx context.Context, req *Request, res *limitsResult, facts *tenantFacts, result *ledger.DebitResult, err error) {
	switch code := ledger.CodeOf(err); {
	case code == ledger.CodeOutcomeUnknown, err == nil && (!result.Replayed || req.Forwarded != ""):
	case code == ledger.CodeUnavailable, code == ledger.CodeQueueFull, code == ledger.CodeInternal:
		g.refund(ctx, res)
	default:
		g.refundSuccesses(ctx, res, facts)
	}
}

// settle answers a debit that the ledger need not be asked about. settled is false if the ledger must decide. reads are the copies that were
// read with the limits.
func (g *Gate) settle(ctx context.Context, req *Request, facts *tenantFacts, d *ledger.Debit, known *recalled, reads *redisstore.Reads) (
	result *ledger.DebitResult, settled bool, err error,
) {
	if known.replay != nil {
		return known.replay, true, nil
	}
	if !facts.unknown && known.balance == nil && known.question == nil {
		return nil, false, nil
	}
	err = g.refuse(ctx, req, facts, d, known, reads)
	return nil, err != nil, err
}

// refuse returns why a debit is refused without asking the ledger; nil: the ledger must decide.
func (g *Gate) refuse(ctx context.Context, req *Request, facts *tenantFacts, d *ledger.Debit, known *recalled, reads *redisstore.Reads) error {
	validate := d.Validate
	if req.DryRun { // it needs no key
		validate = func() error { return ledger.ValidateItems(req.Items) }
	}
	if err := validate(); err != nil {
		return err
	}
	if facts.unknown {
		return noTenant(req.Tenant)
	}
	if known.question != nil {
		return g.refusalOfQuestion(ctx, d, facts, known.question)
	}
	return g.refusal(ctx, d, facts, known.balance, reads)
}

// noTenant returns the ledger's error for a tenant that does not exist.
func noTenant(tenant string) error {
	return ledger.Errorf(ledger.CodeTenantNotFound, "tenant", "tenant %q does not exist", tenant)
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
	result, err := g.debitAs(ctx, req, &facts)
	g.debited(ctx, facts.plan, req, result, err)
	return Debited{Result: result}, err
}

// debitAs debits with the tenant's facts.
func (g *Gate) debitAs(ctx context.Context, req *Request, facts *tenantFacts) (*ledger.DebitResult, error) {
	d := debitOf(req, facts, scopeDebit)
	known := recalled{}
	if !req.DryRun {
		known = g.memory.recall(d, g.now())
	}
	if result, settled, err := g.settle(ctx, req, facts, d, &known, nil); settled {
		return result, err
	}
	return g.decide(ctx, req, facts, d)
}

// decide passes the debit to the ledger. It returns either a result or an error.
func (g *Gate) decide(ctx context.Context, req *Request, facts *tenantFacts, d *ledger.Debit) (*ledger.DebitResult, error) {
	if result, done, err := newcomer.Welcome[ledger.DebitResult](ctx, facts.desk, d, req.DryRun); done {
		return result, err
	}
	if req.DryRun {
		return pg.Do(ctx, g.ledger, d, pg.DryRunAt(req.At))
	}
	result, err := pg.Do(ctx, g.ledger, d)
	g.memory.note(d, result, err, g.now())
	return result, err
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
	names := make([]string, len(reqs))
	for i := range reqs {
		names[i] = reqs[i].Tenant
	}
	g.tenants.catalog.ReadAhead(ctx, names)
	for i := range reqs {
		facts, err := g.tenants.facts(ctx, reqs[i].Tenant)
		if err != nil {
			out[i].Err = err
			continue
		}
		if reqs[i].DryRun {
			out[i].Result, out[i].Err = g.debitAs(ctx, &reqs[i], &facts)
			continue
		}
		d := debitOf(&reqs[i], &facts, scopeDebit)
		if _, _, out[i].Err = newcomer.Welcome[ledger.DebitResult](ctx, facts.desk, d, false); out[i].Err != nil {
			continue
		}
		debits = append(debits, d)
		places, plans = append(places, i), append(plans, facts.plan)
	}
	if len(debits) > 0 {
		for j, o := range g.ledger.DebitBatch(ctx, debits) {
			out[places[j]] = DebitOutcome{Result: o.Result, Err: o.Err}
			g.debited(ctx, plans[j], &reqs[places[j]], o.Result, o.Err)
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
	return pg.Do(ctx, g.ledger, grant, pg.DryRun(dryRun))
}
