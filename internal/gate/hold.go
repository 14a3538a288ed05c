package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Hold reserves units; dryRun only decides. Limits are not asked, as for a debit. A suspended tenant is refused, but what it
// has on hold can still be captured, up to what is held, or released: that ends what was begun before. Errors are *ledger.Error.
func (g *Gate) Hold(ctx context.Context, h *ledger.Hold, dryRun bool) (*ledger.HoldResult, error) {
	result, err := g.hold(ctx, h, dryRun)
	g.metrics.decisions.WithLabelValues("hold", outcome(err, result != nil && result.Replayed)).Inc()
	return result, err
}

func (g *Gate) hold(ctx context.Context, h *ledger.Hold, dryRun bool) (*ledger.HoldResult, error) {
	facts, err := g.terms.of(ctx, h.Tenant)
	if err != nil {
		return nil, err
	}
	h.Suspended = facts.suspended
	h.Items = facts.itemsOf(h.Items)
	return pg.DoOrDryRun(ctx, g.ledger, h, dryRun)
}

// ChangeHold captures, releases or extends a hold; dryRun only decides. Errors are *ledger.Error.
func (g *Gate) ChangeHold(ctx context.Context, h *ledger.HoldChange, dryRun bool) (*ledger.HoldResult, error) {
	result, err := g.changeHold(ctx, h, dryRun)
	g.metrics.decisions.WithLabelValues(string(h.Action), outcome(err, result != nil && result.Replayed)).Inc()
	return result, err
}

func (g *Gate) changeHold(ctx context.Context, h *ledger.HoldChange, dryRun bool) (*ledger.HoldResult, error) {
	if len(h.Items) > 0 { // what a capture takes beyond its hold is decided like a debit, and so is its denial
		facts, err := g.terms.of(ctx, h.Tenant)
		if err != nil {
			return nil, err
		}
		h.Items, h.Suspended = facts.itemsOf(h.Items), facts.suspended
	}
	return pg.DoOrDryRun(ctx, g.ledger, h, dryRun)
}
