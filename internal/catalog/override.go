package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// MaxOverrides bounds the overrides of a tenant: one for each allowance of its plan.
const MaxOverrides = MaxAllowances

// checkOverrides checks overrides in the order of their meters, so that equal overrides give equal faults. The amount
// nil removes an override.
func checkOverrides(c *check.Checker, overrides map[string]*int64) {
	if !c.Require(len(overrides) <= MaxOverrides, "overrides", "must have at most %d members", MaxOverrides) {
		return
	}
	for _, meter := range slices.Sorted(maps.Keys(overrides)) {
		if !c.Require(bound.ID(meter), "overrides."+body.Clip(meter), "is not the name of a meter, which %s", bound.MustBeID) {
			continue
		}
		if amount := overrides[meter]; amount != nil {
			c.Amount("overrides."+meter, *amount, 0)
		}
	}
}

// override identifies the override of a tenant's meter, with the tenant's plan.
type override struct{ tenant, plan, meter string }

// fault returns the fault for an override of a meter that is not in the plan.
func (o *override) fault() body.Fault {
	return body.Fault{Field: "overrides." + o.meter, Message: "names a meter that the plan " + o.plan + " does not have"}
}

// newOverrides returns the overrides of t, in order of meters, without the unchanged overrides. An override is
// unchanged if the stored tenant has the same plan, and the same amount for the meter. Unchanged overrides stay
// valid, even if a newer version of the plan lacks the meter. The argument `before` is the stored tenant, or nil for
// a new tenant.
func newOverrides(before *lockedTenant, t *Tenant) []override {
	var list []override
	for _, meter := range slices.Sorted(maps.Keys(t.Overrides)) {
		if before != nil && before.Plan == t.Plan {
			if amount, had := before.Overrides[meter]; had && amount == t.Overrides[meter] {
				continue
			}
		}
		list = append(list, override{t.ID, t.Plan, meter})
	}
	return list
}

// requireOverridable fails if the newest version of t's plan lacks the meter of a new override. The error names all
// such overrides. If a concurrent change of the plan removes a meter afterwards, its override has no effect.
func (tx *txn) requireOverridable(ctx context.Context, before *lockedTenant, t *Tenant) error {
	faulty, err := tx.notOverridable(ctx, newOverrides(before, t))
	if err != nil || len(faulty) == 0 {
		return err
	}
	return errcode.Invalid(column(faulty, func(o *override) body.Fault { return o.fault() })...)
}

// notOverridable returns the elements of list whose plan does not have the meter, in the same order.
func (tx *txn) notOverridable(ctx context.Context, list []override) ([]override, error) {
	if len(list) == 0 {
		return nil, nil
	}
	rows := tx.query(ctx, "MissingAllowances",
		column(list, func(o *override) string { return o.plan }), column(list, func(o *override) string { return o.meter }))
	places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, wrap("look up overridden meters", err)
	}
	return column(places, func(n *int64) override { return list[*n-1] }), nil
}
