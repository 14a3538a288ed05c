package catalog

import (
	"context"
	"slices"
	"time"

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
	newest map[string]int32              // by plan
	agreed map[string][]ledger.Agreement // by tenant; only tenants for which a version may wait
	now    time.Time
}

// Newest returns the newest version of a plan.
func (v *Versions) Newest(plan string) int32 { return v.newest[plan] }

// InForce returns the version of the plan of t that is in force now.
func (v *Versions) InForce(t *Tenant) int32 {
	if a := v.at(t); a != nil && a.Plan == t.Plan {
		return a.Version.Version
	}
	return v.newest[t.Plan]
}

// Before returns the version that was in force before the newest terms of the tenant, whose terms t were in force then.
func (v *Versions) Before(t *Tenant) int32 {
	version := v.newest[t.Plan]
	now := v.at(t)
	if now == nil {
		return version
	}
	for _, a := range v.agreed[t.ID] {
		if a.Since.Before(now.AgreedAt) {
			version = a.Version.Version
		}
	}
	return version
}

// at returns what the tenant has now, or nil if it has the newest version.
func (v *Versions) at(t *Tenant) *ledger.Agreement { return ledger.AgreedAt(v.agreed[t.ID], v.now) }

// PlanVersions returns the versions of the plans that these tenants have and will have.
func (s *Store) PlanVersions(ctx context.Context, tenants ...*Tenant) (versions *Versions, err error) {
	err = s.read(ctx, "read versions of plans", func(ctx context.Context, tx *txn) error {
		versions, err = tx.versions(ctx, tenants...)
		return err
	})
	return versions, err
}

func (tx *txn) versions(ctx context.Context, tenants ...*Tenant) (*Versions, error) {
	v := &Versions{newest: map[string]int32{}, now: tx.store.db.Now()}
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
	v.agreed, err = agreed.Waiting(ctx, tx, tx.store.queries, slices.Compact(ids), v.now)
	return v, err
}

// planOf returns the version of the tenant's plan that is in force now, in a list that is empty if the plan does not
// exist.
func (tx *txn) planOf(ctx context.Context, t *Tenant) ([]Plan, error) {
	versions, err := tx.versions(ctx, t)
	if err != nil {
		return nil, err
	}
	return tx.wholePlans(ctx, "SelectPlanVersion", t.Plan, versions.InForce(t))
}
