package ledger

import (
	"context"
	"errors"
)

// Debit uses units, once per (tenant, key). A retry gets the stored answer with Replayed set.
// Errors are *Error; see Code for what each promises.
func (l *Ledger) Debit(ctx context.Context, d *Debit) (*DebitResult, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	return submitOne[DebitResult](ctx, l, d.call())
}

// DryRunDebit answers what the debit would be answered now and records nothing. Its key is not looked up.
func (l *Ledger) DryRunDebit(ctx context.Context, d *Debit) (*DebitResult, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[DebitResult](ctx, l, d.call())
}

// Grant issues units, once per (tenant, key).
func (l *Ledger) Grant(ctx context.Context, g *Grant) (*GrantResult, error) {
	if err := g.validate(); err != nil {
		return nil, err
	}
	return submitOne[GrantResult](ctx, l, g.call())
}

// DryRunGrant answers what the grant would be answered now and records nothing.
func (l *Ledger) DryRunGrant(ctx context.Context, g *Grant) (*GrantResult, error) {
	if err := g.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[GrantResult](ctx, l, g.call())
}

// Hold reserves units, once per (tenant, key).
func (l *Ledger) Hold(ctx context.Context, h *Hold) (*HoldResult, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	return submitOne[HoldResult](ctx, l, h.call())
}

// DryRunHold answers what the hold would be answered now and records nothing.
func (l *Ledger) DryRunHold(ctx context.Context, h *Hold) (*HoldResult, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[HoldResult](ctx, l, h.call())
}

// ChangeHold captures, releases or extends a hold, once per (tenant, key).
func (l *Ledger) ChangeHold(ctx context.Context, h *HoldChange) (*HoldResult, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	return submitOne[HoldResult](ctx, l, h.call())
}

// DryRunChangeHold answers what the change would be answered now and records nothing.
func (l *Ledger) DryRunChangeHold(ctx context.Context, h *HoldChange) (*HoldResult, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[HoldResult](ctx, l, h.call())
}

// Refund gives units back, once per (tenant, key), to the grants they were drawn from, the last drawn first.
func (l *Ledger) Refund(ctx context.Context, r *Refund) (*RefundResult, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	return submitOne[RefundResult](ctx, l, r.call())
}

// DryRunRefund answers what the refund would be answered now and records nothing.
func (l *Ledger) DryRunRefund(ctx context.Context, r *Refund) (*RefundResult, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[RefundResult](ctx, l, r.call())
}

// Adjust corrects a balance, once per (tenant, key).
func (l *Ledger) Adjust(ctx context.Context, a *Adjust) (*Change, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	return submitOne[Change](ctx, l, a.call())
}

// DryRunAdjust answers what the adjustment would be answered now and records nothing.
func (l *Ledger) DryRunAdjust(ctx context.Context, a *Adjust) (*Change, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[Change](ctx, l, a.call())
}

// Void takes back what is left of a grant, once per (tenant, key).
func (l *Ledger) Void(ctx context.Context, v *Void) (*Change, error) {
	if err := v.validate(); err != nil {
		return nil, err
	}
	return submitOne[Change](ctx, l, v.call())
}

// DryRunVoid answers what the void would be answered now and records nothing.
func (l *Ledger) DryRunVoid(ctx context.Context, v *Void) (*Change, error) {
	if err := v.validate(); err != nil {
		return nil, err
	}
	return dryRunOne[Change](ctx, l, v.call())
}

// submitOne sends one request through its tenant's lane and returns its answer.
func submitOne[R any](ctx context.Context, l *Ledger, c *call) (*R, error) {
	if err := l.submit(ctx, l.laneOf(c.id.tenant), []*call{c}); err != nil {
		return nil, l.countError(c.kind, err)
	}
	l.count(c)
	return answer[R](c)
}

// dryRunOne decides one request on a view of its balances and records nothing. Its key is not looked up.
func dryRunOne[R any](ctx context.Context, l *Ledger, c *call) (*R, error) {
	extra := []key(nil)
	for range extraKeyRounds {
		m, err := l.viewFor(ctx, []*call{c}, extra)
		if err != nil {
			return nil, err
		}
		err = m.decide(c)
		if more, ok := errors.AsType[*errNeedKeys](err); ok {
			extra = append(extra, more.keys...)
			continue
		}
		if err != nil {
			return nil, uncomputable(err)
		}
		return answer[R](c)
	}
	return nil, uncomputable(nil)
}

// extraKeyRounds bounds how often a decision may ask for more balances: subject caps once, overflow meters once.
const extraKeyRounds = 4

func answer[R any](c *call) (*R, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.result.(*R), nil
}
