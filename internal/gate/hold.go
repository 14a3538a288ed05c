package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/gate/newcomer"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Hold reserves units; dryRun decides and writes nothing. It does not ask the limits. A suspended tenant gets no new hold; its
// holds can still be released, or captured up to their amount. Errors are *ledger.Error.
func (g *Gate) Hold(ctx context.Context, h *ledger.Hold, dryRun bool) (*ledger.HoldResult, error) {
	result, err := g.hold(ctx, h, dryRun)
	g.metrics.decisions.WithLabelValues("hold", outcome(err, result != nil && result.Replayed)).Inc()
	return result, err
}

func (g *Gate) hold(ctx context.Context, h *ledger.Hold, dryRun bool) (*ledger.HoldResult, error) {
	facts, err := g.tenants.facts(ctx, h.Tenant)
	if err != nil {
		return nil, err
	}
	h.Suspended = facts.suspended
	h.Items = facts.itemsOf(h.Items)
	if result, done, err := newcomer.Welcome[ledger.HoldResult](ctx, facts.desk, h, dryRun); done {
		return result, err
	}
	result, err := pg.Do(ctx, g.ledger, h, pg.DryRun(dryRun))
	if !dryRun {
		g.refused(ctx, facts.plan, &Request{Tenant: h.Tenant, Subject: h.Subject, Items: h.Items}, err)
	}
	return result, err
}

// ChangeHold captures, releases or extends a hold; dryRun decides and writes nothing. Errors are *ledger.Error.
func (g *Gate) ChangeHold(ctx context.Context, h *ledger.HoldChange, dryRun bool) (*ledger.HoldResult, error) {
	result, err := g.changeHold(ctx, h, dryRun)
	g.metrics.decisions.WithLabelValues(string(h.Action), outcome(err, result != nil && result.Replayed)).Inc()
	return result, err
}

func (g *Gate) changeHold(ctx context.Context, h *ledger.HoldChange, dryRun bool) (*ledger.HoldResult, error) {
	plan := ""
	if len(h.Items) > 0 { // a capture may take more than its hold; the rest is decided like a debit
		facts, err := g.tenants.facts(ctx, h.Tenant)
		if err != nil {
			return nil, err
		}
		plan, h.Items, h.Suspended = facts.plan, facts.itemsOf(h.Items), facts.suspended
	}
	result, err := pg.Do(ctx, g.ledger, h, pg.DryRun(dryRun))
	if !dryRun {
		g.captured(ctx, plan, h, result, err)
	}
	return result, err
}
