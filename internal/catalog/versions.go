package catalog

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
)

// PlanVersion names a version of a plan.
type PlanVersion struct {
	Plan    string
	Version int32
}

// Versions are the versions of plans that some tenants have. A tenant has the newest version unless that version waits
// for the end of its billing period: see ledger.Agreements.
type Versions struct {
	newest map[string]int32             // by plan
	agreed map[string]*ledger.Agreement // by tenant; only tenants for which a version may wait
}

// TenantVersions are the versions of the plans of one tenant.
type TenantVersions struct {
	InForce int32 `json:"in_force"`         // of the plan in force
	Pending int32 `json:"pending,omitzero"` // the newest of the plan that waits; 0: no change waits
}

// Of returns the versions of a tenant as it is now.
func (v *Versions) Of(t *Tenant) TenantVersions {
	out := TenantVersions{InForce: v.newest[t.Plan]}
	if a := v.agreed[t.ID]; a != nil && a.Plan == t.Plan {
		out.InForce = a.Version.Version
	}
	if t.Pending != nil {
		out.Pending = v.newest[t.Pending.Plan]
	}
	return out
}

// PlanVersions returns the versions of the plans that these tenants have and will have.
func (s *Store) PlanVersions(ctx context.Context, tenants ...*Tenant) (versions *Versions, err error) {
	err = s.read(ctx, "read versions of plans", func(ctx context.Context, tx *txn) error {
		versions, err = tx.versions(ctx, tenants...)
		return err
	})
	return versions, err
}

func (tx *txn) versions(ctx context.Context, tenants ...*Tenant) (*Versions, error) {
	v := &Versions{newest: map[string]int32{}}
	var ids, plans []string
	for _, t := range tenants {
		ids, plans = append(ids, t.ID), append(plans, t.Plan)
		if t.Pending != nil {
			plans = append(plans, t.Pending.Plan)
		}
	}
	slices.Sort(ids)
	slices.Sort(plans)
	var plan string
	var version int32
	rows := tx.query(ctx, "NewestVersions", slices.Compact(plans))
	_, err := pgx.ForEachRow(rows, []any{&plan, &version}, func() error { v.newest[plan] = version; return nil })
	if err != nil {
		return nil, wrap("select versions of plans", err)
	}
	v.agreed, err = agreed.InForce(ctx, tx, tx.store.queries, slices.Compact(ids), tx.store.db.Now())
	return v, err
}

// planOf returns the version of the tenant's plan that is in force now, in a list that is empty if the plan does not
// exist.
func (tx *txn) planOf(ctx context.Context, t *Tenant) ([]Plan, error) {
	versions, err := tx.versions(ctx, t)
	if err != nil {
		return nil, err
	}
	return tx.wholePlans(ctx, "SelectPlanVersion", t.Plan, versions.Of(t).InForce)
}
