package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// A scope is part of an operation's fingerprint. If a key was used on one endpoint, another endpoint refuses it as
// reused.
const (
	scopeConsume = "consume"
	scopeDebit   = ""
	scopeForward = "passage " // prefix of Request.Forwarded; stored fingerprints contain it, so it must not change
)

// consumeScope returns the scope of a consume. A gateway's key is valid for one method and URI.
func consumeScope(req *Request) string {
	if req.Forwarded == "" {
		return scopeConsume
	}
	return scopeForward + req.Forwarded
}

// Consume charges the limits that apply and debits the units. If it fails, it does neither, with the exceptions
// below.
//
// The limits are decided first, so that a flood of requests does not reach PostgreSQL. If the debit is refused or is
// a replay, the limits that count successes are refunded. If the debit fails, all limits are refunded. There are two
// exceptions. If the outcome of the debit is unknown, all limits stay charged, because the debit may have been made.
// If a gateway forwards a replay, all limits stay charged: Request.Once has charged them, now or before.
//
// A request without items checks only its feature. It charges nothing, and its key is not stored. Errors: *Blocked,
// *RateLimited, *CostExceedsCapacity, *ReducedCapacity, *TooManyLimits or *errcode.Error. Retrying with the same key
// is always safe.
func (g *Gate) Consume(ctx context.Context, req Request) (Debited, error) {
	out, plan, err := g.consume(ctx, &req)
	g.observe(ctx, &outcome{
		operation: "consume", plan: plan, req: &req, limits: out.Limits, debit: out.Result, replayed: out.replayed(), err: err,
	})
	return out, err
}

// consume is Consume without the metrics. It also returns the tenant's plan.
func (g *Gate) consume(ctx context.Context, req *Request) (out Debited, plan string, err error) {
	blocked, exempt := g.blocked(req)
	if blocked != nil {
		return Debited{}, "", blocked
	}
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return Debited{}, "", err
	}
	if req.Feature != "" {
		if refusal := g.featureRefusal(req, &facts); refusal != nil {
			return Debited{}, facts.plan, refusal
		}
		if len(req.Items) == 0 {
			nothing := &ledger.DebitResult{OperationID: req.Key, Tenant: req.Tenant, Items: []ledger.ItemResult{}, AsOf: g.now().UTC()}
			return Debited{Result: nothing}, facts.plan, nil
		}
	}
	out, err = g.consumeAs(ctx, req, &facts, exempt)
	return out, facts.plan, err
}

// consumeAs consumes with the given facts of the tenant. If the request is exempt from limits, it skips the limits.
func (g *Gate) consumeAs(ctx context.Context, req *Request, facts *tenantFacts, exempt bool) (Debited, error) {
	// 1. The answer that needs no query: the tenant does not exist, or the ledger gave this answer a moment ago.
	d := debitOf(req, facts, consumeScope(req))
	known := g.recall(req, facts, d)

	// 2. The limits. They are decided before any query of PostgreSQL.
	limits, answer, err := g.chargeLimits(ctx, req, facts, &known, exempt)
	if err != nil {
		return Debited{}, err
	}
	out := Debited{Limits: limits.verdicts, LimitsDegraded: limits.degraded}
	if limits.refusal != nil {
		return out, limits.refusal
	}

	// 3. The ledger decides, unless the answer is known.
	if !answer.known {
		answer.result, answer.err = g.decide(ctx, req, facts, d)
	}
	g.giveBack(ctx, req, &limits, facts, answer.result, answer.err)
	out.Limits = limits.verdicts
	out.Result = answer.result
	return out, answer.err
}

// recalled is what memory knows about a debit. At most one of its fields is set.
type recalled struct {
	unknown    error // the tenant does not exist, or the debit is not valid
	remembered remembered
}

// answered is an answer to a debit. If known is set, the answer is from memory. Otherwise the ledger must decide.
type answered struct {
	known  bool
	result *ledger.DebitResult
	err    error
}

// recall returns what memory knows about a debit. It makes no query.
func (g *Gate) recall(req *Request, facts *tenantFacts, d *ledger.Debit) recalled {
	switch {
	case facts.unknown:
		return recalled{unknown: unknownTenant(req, d)}
	case req.DryRun:
		return recalled{}
	default:
		return recalled{remembered: g.refusals.find(d)}
	}
}

// answer returns the answer from memory. It may need a new read of the balance that refused. reads is the read of
// this balance from Redis; it is nil if Redis was not read.
func (r *recalled) answer(ctx context.Context, facts *tenantFacts, reads *redisstore.Reads) (a answered) {
	if r.unknown != nil {
		return answered{known: true, err: r.unknown}
	}
	a.result, a.known, a.err = r.remembered.answer(ctx, facts, reads)
	return a
}

// chargeLimits charges the limits for a debit. It also returns the answer to the debit from memory, if there is one.
// If memory will probably answer the debit, only limits that count attempts are charged. Memory may have to read a
// balance for its answer, so the limits decide first. If memory then has no valid answer, the other limits are
// charged as well.
func (g *Gate) chargeLimits(
	ctx context.Context, req *Request, facts *tenantFacts, known *recalled, exempt bool,
) (limits limitsResult, answer answered, err error) {
	if exempt {
		return limitsResult{}, known.answer(ctx, facts, nil), nil
	}
	guess := chargeAll
	switch {
	case req.DryRun:
		guess = chargeNothing
	case known.unknown != nil || known.remembered.likely(req.Forwarded != ""):
		guess = chargeAttempts
	}
	reads := known.remembered.reads()
	limits, err = g.limits(ctx, req, facts, guess, reads)
	if err != nil || limits.refusal != nil {
		return limits, answered{}, err
	}
	answer = known.answer(ctx, facts, reads)
	if !answer.known && guess == chargeAttempts && len(limits.charged.Charges) == 0 {
		limits, err = g.limits(ctx, req, facts, chargeAll, nil)
	}
	return limits, answer, err
}

// giveBack refunds the limits that must not stay charged. This depends on the outcome of the debit.
func (g *Gate) giveBack(
	ctx context.Context, req *Request, limits *limitsResult, facts *tenantFacts, result *ledger.DebitResult, err error,
) {
	switch code := errcode.Of(err); {
	case code == errcode.OutcomeUnknown, err == nil && (!result.Replayed || req.Forwarded != ""):
	case code == errcode.Unavailable, code == errcode.QueueFull, code == errcode.Internal:
		g.refund(ctx, limits)
	default:
		g.refundSuccesses(ctx, limits, facts)
	}
}

// unknownTenant returns the refusal of a debit of a tenant that does not exist. If the debit itself is not valid, it
// returns that fault, as the ledger does.
func unknownTenant(req *Request, d *ledger.Debit) error {
	validate := d.Validate
	if req.DryRun { // a dry run needs no key
		validate = func() error { return ledger.ValidateItems(req.Items) }
	}
	if err := validate(); err != nil {
		return err
	}
	return noTenant(req.Tenant)
}

// noTenant returns the ledger's error for a tenant that does not exist.
func noTenant(tenant string) *errcode.Error {
	return errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", tenant)
}

// Debit debits units without deciding limits. Errors are *errcode.Error.
func (g *Gate) Debit(ctx context.Context, req Request) (Debited, error) {
	facts, err := g.tenants.facts(ctx, req.Tenant)
	var out Debited
	if err == nil {
		out.Result, err = g.debitAs(ctx, &req, &facts)
	}
	g.observe(ctx, &outcome{
		operation: "debit", plan: facts.plan, req: &req, debit: out.Result, replayed: out.replayed(), err: err,
	})
	return out, err
}

// debitAs debits with the given facts of the tenant.
func (g *Gate) debitAs(ctx context.Context, req *Request, facts *tenantFacts) (*ledger.DebitResult, error) {
	d := debitOf(req, facts, scopeDebit)
	if facts.unknown {
		return nil, unknownTenant(req, d)
	}
	if !req.DryRun {
		if result, known, err := g.refusals.answer(ctx, d, facts); known {
			return result, err
		}
	}
	return g.decide(ctx, req, facts, d)
}

// decide passes the debit to the ledger. It returns the ledger's result or error.
func (g *Gate) decide(
	ctx context.Context, req *Request, facts *tenantFacts, d *ledger.Debit,
) (*ledger.DebitResult, error) {
	if facts.isNew {
		if answer, err := g.firstUse(ctx, d, req.DryRun); err != nil || req.DryRun {
			result, _ := answer.(*ledger.DebitResult)
			return result, err
		}
	}
	if req.DryRun {
		return pg.Do(ctx, g.ledger, d, pg.DryRunAt(req.At))
	}
	result, err := pg.Do(ctx, g.ledger, d)
	g.refusals.note(d, result, err)
	return result, err
}

// firstUse creates a tenant for its first debit or hold. The ledger decides this operation afterwards. A dry run
// creates no tenant: then firstUse returns the answer of the dry run. It fails if the operation is refused.
func (g *Gate) firstUse(ctx context.Context, use ledger.Operation, dryRun bool) (answer any, err error) {
	if dryRun {
		return g.provisioner.DryRun(use)
	}
	return nil, g.provisioner.EnsureTenant(ctx, use)
}

// debitOf returns the debit of a request, with facts from the catalogue. The ledger answers a replay before it looks
// at Suspended. So a tenant that was suspended after its debit still gets the stored answer.
func debitOf(req *Request, facts *tenantFacts, scope string) *ledger.Debit {
	return &ledger.Debit{
		Tenant: req.Tenant, Key: req.Key, Subject: req.Subject, Items: facts.itemsOf(req.Items), Mode: req.Mode,
		Metadata: req.Metadata, Suspended: facts.suspended, Scope: scope,
	}
}

// DebitBatch makes up to ledger.BatchMax independent debits, each with a key. It returns their outcomes in order.
func (g *Gate) DebitBatch(ctx context.Context, reqs []Request) []DebitOutcome {
	out := make([]DebitOutcome, len(reqs))
	plans := make([]string, len(reqs))
	debits := make([]*ledger.Debit, 0, len(reqs))
	positions := make([]int, 0, len(reqs)) // positions in reqs of the elements of debits
	names := make([]string, len(reqs))
	for i := range reqs {
		names[i] = reqs[i].Tenant
	}
	g.tenants.catalog.ReadAhead(ctx, names)
	for i := range reqs {
		facts, err := g.tenants.facts(ctx, reqs[i].Tenant)
		plans[i] = facts.plan
		d := debitOf(&reqs[i], &facts, scopeDebit)
		switch {
		case err != nil:
		case reqs[i].DryRun:
			out[i].Result, err = g.debitAs(ctx, &reqs[i], &facts)
		case facts.isNew:
			err = g.provisioner.EnsureTenant(ctx, d)
		}
		out[i].Err = err
		if err == nil && !reqs[i].DryRun {
			debits = append(debits, d)
			positions = append(positions, i)
		}
	}
	if len(debits) > 0 {
		for j, o := range g.ledger.DebitBatch(ctx, debits) {
			out[positions[j]] = DebitOutcome{Result: o.Result, Err: o.Err}
		}
	}
	for i := range out {
		result := out[i].Result
		g.observe(ctx, &outcome{
			operation: "debit", plan: plans[i], req: &reqs[i], debit: result, replayed: result != nil && result.Replayed,
			err: out[i].Err,
		})
	}
	return out
}

// Grant grants units. With dryRun it decides and writes nothing. A suspended tenant can be granted units, for example
// after it has paid. Errors are *errcode.Error.
func (g *Gate) Grant(ctx context.Context, grant *ledger.Grant, dryRun bool) (*ledger.GrantResult, error) {
	return pg.Do(ctx, g.ledger, grant, pg.DryRun(dryRun))
}
