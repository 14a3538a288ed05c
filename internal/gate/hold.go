package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Hold reserves units. With dryRun it decides and writes nothing. Limits are not decided. A suspended tenant gets no
// new hold. Its holds can still be released, or captured up to their amount. Errors are *errcode.Error.
func (g *Gate) Hold(ctx context.Context, h *ledger.Hold, dryRun bool) (*ledger.HoldResult, error) {
	facts, err := g.tenants.facts(ctx, h.Tenant)
	var result *ledger.HoldResult
	if err == nil {
		result, err = g.hold(ctx, h, &facts, dryRun)
	}
	g.observe(ctx, &outcome{
		operation: "hold", plan: facts.plan,
		req:      &Request{Tenant: h.Tenant, Subject: h.Subject, Items: h.Items, DryRun: dryRun},
		replayed: result != nil && result.Replayed, err: err,
	})
	return result, err
}

func (g *Gate) hold(
	ctx context.Context, h *ledger.Hold, facts *tenantFacts, dryRun bool,
) (*ledger.HoldResult, error) {
	h.Suspended = facts.suspended
	h.Items = facts.itemsOf(h.Items)
	if facts.isNew {
		if answer, err := g.firstUse(ctx, h, dryRun); err != nil || dryRun {
			result, _ := answer.(*ledger.HoldResult)
			return result, err
		}
	}
	return pg.Do(ctx, g.ledger, h, pg.DryRun(dryRun))
}

// ChangeHold captures, releases or extends a hold. With dryRun it decides and writes nothing. Errors are
// *errcode.Error.
func (g *Gate) ChangeHold(ctx context.Context, h *ledger.HoldChange, dryRun bool) (*ledger.HoldResult, error) {
	var facts tenantFacts
	var result *ledger.HoldResult
	var err error
	if len(h.Items) > 0 { // a capture may take more than its hold: the additional units are decided like a debit
		facts, err = g.tenants.facts(ctx, h.Tenant)
		h.Items = facts.itemsOf(h.Items)
		h.Suspended = facts.suspended
	}
	if err == nil {
		result, err = pg.Do(ctx, g.ledger, h, pg.DryRun(dryRun))
	}
	seen := outcome{
		operation: string(h.Action), plan: facts.plan, req: &Request{Tenant: h.Tenant, Items: h.Items, DryRun: dryRun},
		replayed: result != nil && result.Replayed, err: err,
	}
	if h.Action == ledger.ActionCapture { // other changes take no units
		seen.capture = result
	}
	g.observe(ctx, &seen)
	return result, err
}
