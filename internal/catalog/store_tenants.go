package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// PutTenant creates or replaces a tenant with its overrides. It returns the stored tenant and whether it is new. A
// change of plan, anchor, zone or overrides waits for the end of the billing period, and the features of the request
// wait with it: see Pending. It fails with CodeChangePending if another change waits. A put of the terms that are in
// force, or of those that wait, changes no terms.
func (s *Store) PutTenant(ctx context.Context, t Tenant) (stored Tenant, created bool, err error) {
	return s.replaceTenant(ctx, t, nil)
}

// ReplaceTenant replaces an existing tenant like PutTenant. It fails with errcode.Conflict unless version is the
// tenant's present version.
func (s *Store) ReplaceTenant(ctx context.Context, t Tenant, version int64) (stored Tenant, err error) {
	stored, _, err = s.replaceTenant(ctx, t, &version)
	return stored, err
}

func (s *Store) replaceTenant(ctx context.Context, t Tenant, version *int64) (stored Tenant, created bool, err error) {
	if err := validate(&t); err != nil {
		return Tenant{}, false, err
	}
	t.normalize()
	err = s.write(ctx, "put tenant", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
		if err := tx.requirePlan(ctx, t.Plan); err != nil {
			return err
		}
		locked, err := tx.lockTenants(ctx, []Tenant{t})
		if err != nil {
			return err
		}
		before, exists := locked[t.ID]
		created = !exists
		if exists {
			err = before.requireVersion(version)
		} else if version != nil {
			err = notFound(kindTenant, t.ID)
		}
		if err != nil {
			return err
		}
		if err := tx.requireOverridable(ctx, before, &t); err != nil {
			return err
		}
		stored, err = tx.putTenant(ctx, before, t)
		return err
	})
	return stored, created, err
}

// PatchTenant changes the fields that p sets. It returns the tenant before and after the change. If a patch with a Key is
// sent again, it returns the stored answer. If a patch with IfVersion but without a Key is sent again after its commit,
// it fails with errcode.Conflict, because the version has changed.
func (s *Store) PatchTenant(ctx context.Context, id string, p TenantPatch) (change TenantChange, err error) {
	if err := validate(&p); err != nil {
		return TenantChange{}, err
	}
	asked := Tenant{ID: id, Metadata: p.Metadata}
	if asked.Metadata != nil {
		var c check.Checker
		if asked.Metadata = c.Metadata(p.Metadata); len(c.Faults) > 0 {
			return TenantChange{}, invalid(c.Faults)
		}
	}
	err = s.write(ctx, "patch tenant", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
		locked, err := tx.lockTenants(ctx, []Tenant{asked})
		if err != nil {
			return err
		}
		before, exists := locked[id]
		if !exists {
			return notFound(kindTenant, id)
		}
		stored, found, err := tx.replay(ctx, id, &p)
		if change = stored; found || err != nil {
			return err
		}
		change, err = tx.patchTenant(ctx, before, &p)
		return err
	})
	return change, err
}

// patchTenant changes the locked tenant as p says. If p is a dry run, it returns pgstore.ErrRollback.
func (tx *txn) patchTenant(ctx context.Context, before *lockedTenant, p *TenantPatch) (change TenantChange, err error) {
	if err := before.requireVersion(p.IfVersion); err != nil {
		return change, err
	}
	t := before.patched(p)
	checked := t
	if p.Metadata == nil {
		checked.Metadata = nil // what is stored may be refused today, and PostgreSQL writes 1e308 with 309 digits
	}
	if err := validate(&checked); err != nil {
		return change, err
	}
	t.normalize()
	if err := tx.requirePlan(ctx, t.Plan); err != nil {
		return change, err
	}
	if err := tx.requireOverridable(ctx, before, &t); err != nil {
		return change, err
	}
	versions, err := tx.versions(ctx, &before.Tenant, &t)
	if err != nil {
		return change, err
	}
	change = p.change()
	change.Before, change.BeforeVersions = before.Tenant, versions.Of(&before.Tenant)
	after, did, err := tx.changeTenant(ctx, before, t, p.timing())
	if err != nil {
		return change, err
	}
	change.After, change.AfterVersions = after, versions.Of(&after)
	if did.now { // also a change that was to wait, if there was nothing to wait for
		change.Apply, change.AfterVersions.InForce = applyNow, versions.newest[after.Plan]
	}
	if p.DryRun {
		return change, pgstore.ErrRollback
	}
	return change, tx.remember(ctx, t.ID, p, &change)
}

// MakeTenant creates a tenant on a plan, with defaults, unless it exists. It fails with errcode.NotFound if the plan
// does not exist.
func (s *Store) MakeTenant(ctx context.Context, id, plan string) error {
	t := Tenant{ID: id, Plan: plan}
	if err := validate(&t); err != nil {
		return err
	}
	t.normalize()
	return s.write(ctx, "make tenant", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
		if err := tx.requirePlan(ctx, plan); err != nil {
			return err
		}
		_, err := tx.insertTenant(ctx, t)
		if errors.Is(err, pgstore.ErrRace) {
			return nil // it exists
		}
		return err
	})
}

// Tenant reads the tenant with this id from PostgreSQL. Catalog.Tenant returns a tenant from memory.
func (s *Store) Tenant(ctx context.Context, id string) (t Tenant, err error) {
	err = s.read(ctx, "read tenant", func(ctx context.Context, tx *txn) error {
		items, err := tx.tenants(ctx, []string{id}, "", "", 1)
		t, err = one(items, err, notFound(kindTenant, id))
		return err
	})
	return t, err
}

// ListTenants returns a page of the tenants whose ids begin with p.Prefix.
func (s *Store) ListTenants(ctx context.Context, p listing.Query) (list listing.Page[Tenant], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list tenants", func(ctx context.Context, tx *txn) error {
		var ids []string // nil: all
		if p.Tenant != "" {
			ids = []string{p.Tenant}
			if !strings.HasPrefix(p.Tenant, p.Prefix) {
				return nil
			}
		}
		items, err := tx.tenants(ctx, ids, after, p.Prefix, p.Limit+1)
		list = listing.Cut(items, p, func(t *Tenant) string { return t.ID })
		return err
	})
	return list, err
}

// TenantsNamed returns the tenants in ids that exist, in the order of their ids.
func (s *Store) TenantsNamed(ctx context.Context, ids []string) (tenants []Tenant, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.read(ctx, "read tenants", func(ctx context.Context, tx *txn) error {
		tenants, err = tx.tenants(ctx, ids, "", "", len(ids))
		return err
	})
	return tenants, err
}

// TenantPlan is a tenant's plan and time zone. Version is the version of the plan that is in force; 0: the newest.
type TenantPlan struct {
	ID, Plan, Timezone string
	Version            int32 `db:"-"`
}

// TenantPlans returns the plans of the tenants in ids that exist, from PostgreSQL. It is for reads of many tenants
// that are rarely used. It does not cache them, because they would displace other tenants from memory.
func (s *Store) TenantPlans(ctx context.Context, ids []string) (plans []TenantPlan, err error) {
	err = s.read(ctx, "read plans of tenants", func(ctx context.Context, tx *txn) (err error) {
		now := s.db.Now()
		plans, err = pgx.CollectRows(tx.query(ctx, "SelectTenantPlans", ids, now), pgx.RowToStructByPos[TenantPlan])
		if err != nil {
			return wrap("select plans of tenants", err)
		}
		inForce, err := agreed.InForce(ctx, tx, s.queries, ids, now)
		for i := range plans {
			if a := inForce[plans[i].ID]; a != nil && a.Plan == plans[i].Plan {
				plans[i].Version = a.Version.Version
			}
		}
		return err
	})
	return plans, err
}

func (tx *txn) requirePlan(ctx context.Context, plan string) error {
	return tx.require(ctx, "MissingPlans", kindPlan, []reference{{"plan", plan}})
}

// tenants reads the tenants whose ids are in the list ids and greater than `after`, in the order of their ids. If the
// list is nil, it reads all tenants whose ids are greater than `after` and begin with prefix, but at most as many as
// `limit` says.
func (tx *txn) tenants(ctx context.Context, ids []string, after, prefix string, limit int) ([]Tenant, error) {
	statement, args := "SelectTenants", []any{after, limit, prefix}
	if ids != nil {
		statement, args = "NamedTenants", []any{ids, after}
	}
	rows := tx.query(ctx, statement, args...)
	now := tx.store.db.Now()
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Tenant, error) {
		var p pendingRow
		t, err := scanTenant(row, p.into()...)
		t.Pending = p.pending(t.Features)
		t.advance(now)
		return t, err
	})
	return items, wrap("select tenants", err)
}

// tenantIDs reads at most limit ids of tenants that are not in listed.
func (tx *txn) tenantIDs(ctx context.Context, listed []string, limit int) ([]string, error) {
	ids, err := pgx.CollectRows(tx.query(ctx, "SelectTenantIDs", listed, limit), pgx.RowTo[string])
	return ids, wrap("select tenant ids", err)
}

// scanTenant scans a row of SelectTenants, NamedTenants or LockTenants. The columns after the tenant's columns are
// scanned into the pointers in more.
func scanTenant(row pgx.CollectableRow, more ...any) (Tenant, error) {
	var t Tenant
	err := row.Scan(append([]any{
		&t.ID, &t.Plan, &t.Anchor, &t.Timezone, &t.Status, &t.Metadata, &t.Overrides, &t.Features, &t.Version, &t.CreatedAt, &t.UpdatedAt,
	}, more...)...)
	if err != nil {
		return t, err
	}
	t.Anchor, t.CreatedAt, t.UpdatedAt = t.Anchor.UTC(), t.CreatedAt.UTC(), t.UpdatedAt.UTC()
	if len(t.Overrides) == 0 {
		t.Overrides = nil
	}
	if len(t.Features) == 0 {
		t.Features = nil
	}
	t.Metadata, err = compact(t.Metadata)
	return t, err
}

// lockedTenant is a tenant whose row is locked.
type lockedTenant struct {
	Tenant
	sameMetadata bool       // the stored and the new metadata are equal as jsonb
	pendingAt    *time.Time // nil: no change waits
}

// lockTenants locks the rows of the tenants in wanted, in order of ids. It returns the tenants that exist, by id, as they
// are in force now.
func (tx *txn) lockTenants(ctx context.Context, wanted []Tenant) (map[string]*lockedTenant, error) {
	ids := column(wanted, func(t *Tenant) string { return t.ID })
	metadata := column(wanted, func(t *Tenant) *string {
		if t.Metadata == nil {
			return nil
		}
		return new(string(t.Metadata))
	})
	locked := make(map[string]*lockedTenant, len(ids))
	if tx.store.db.Target() != namedsql.Citus {
		return locked, wrap("lock tenants", tx.lockInto(ctx, locked, ids, metadata))
	}
	// On Citus one statement cannot lock rows of several nodes.
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
	for _, i := range order {
		if err := tx.lockInto(ctx, locked, ids[i:i+1], metadata[i:i+1]); err != nil {
			return nil, wrap("lock tenants", err)
		}
	}
	return locked, nil
}

// lockInto locks the rows of the tenants in ids, and adds the tenants that exist to the map locked.
func (tx *txn) lockInto(ctx context.Context, locked map[string]*lockedTenant, ids []string, metadata []*string) error {
	rows := tx.query(ctx, "LockTenants", ids, metadata)
	tenants, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*lockedTenant, error) {
		var l lockedTenant
		var err error
		l.Tenant, err = scanTenant(row, &l.sameMetadata, &l.pendingAt)
		return &l, err
	})
	if err != nil {
		return err
	}
	var waiting []string
	for _, l := range tenants {
		if locked[l.ID] = l; l.pendingAt != nil {
			waiting = append(waiting, l.ID)
		}
	}
	return tx.readPending(ctx, locked, waiting)
}

// putTenant stores t, which is normalized. The argument `before` is the stored tenant, whose row is locked. It is nil
// if the tenant is new. The caller has checked that the plan of t exists and has the overridden meters.
func (tx *txn) putTenant(ctx context.Context, before *lockedTenant, t Tenant) (Tenant, error) {
	if before == nil {
		return tx.insertTenant(ctx, t)
	}
	t.complete(before)
	stored, _, err := tx.changeTenant(ctx, before, t, putTiming(&before.Tenant, &t))
	return stored, err
}

// complete sets the fields of t that a request does not name to those of the stored tenant.
func (t *Tenant) complete(before *lockedTenant) {
	t.Version, t.CreatedAt, t.UpdatedAt, t.Pending = before.Version, before.CreatedAt, before.UpdatedAt, before.Pending
	if t.Anchor.IsZero() {
		t.Anchor = before.CreatedAt
	}
	if before.sameMetadata {
		t.Metadata = before.Metadata
	}
}

// changeTenant stores t, which is normalized, in place of the tenant `before`, whose row is locked. The caller has
// checked that the plan of t exists and has the overridden meters. It returns the tenant that is in force now, with the
// change that waits.
func (tx *txn) changeTenant(ctx context.Context, before *lockedTenant, t Tenant, when timing) (Tenant, effect, error) {
	t.complete(before)
	did, err := tx.effectOf(ctx, &before.Tenant, &t, &when)
	if err != nil {
		return Tenant{}, did, err
	}
	switch {
	case did.stays:
		t = t.withTerms(&before.Tenant)
	case did.now:
		when.apply = applyNow
	}
	if t.Pending = before.Pending.follow(&t); !did.later.IsZero() {
		t.Pending = when.pendingOn(&t, did.later)
	}
	if !did.now && t.Pending.same(before.Pending) && t.same(&before.Tenant) {
		return before.Tenant, did, nil
	}
	if err := tx.storeTenant(ctx, &t); err != nil {
		return Tenant{}, did, err
	}
	if err := tx.storeTerms(ctx, before, &t, &when, did); err != nil {
		return Tenant{}, did, err
	}
	tx.emit(&before.Tenant, &t, &when)
	tx.changed(ctx, kindTenant, t.ID, change{
		action: when.action(), tenant: t.ID, before: audited(&before.Tenant), after: audited(&t), reason: when.reason,
	})
	return t, did, nil
}

// storeTerms writes the new terms of t, and its pending change if that differs from the one of before.
func (tx *txn) storeTerms(ctx context.Context, before *lockedTenant, t *Tenant, when *timing, did effect) error {
	replaced := !t.Pending.same(before.Pending)
	if when.dry || !did.now && !replaced {
		return nil
	}
	var from time.Time
	if did.now {
		var err error
		if from, err = tx.insertTerms(ctx, t, when); err != nil {
			return err
		}
	}
	if err := tx.replacePending(ctx, t.ID, before.Pending, t.Pending); err != nil {
		return err
	}
	return tx.extendChain(ctx, agreementOf(t, from, replaced))
}

// storeTenant writes the row of t, which is locked.
func (tx *txn) storeTenant(ctx context.Context, t *Tenant) error {
	err := tx.queryRow(ctx, "UpdateTenant", t.ID, t.Plan, t.Anchor, t.Timezone, t.Status, t.Metadata, orEmpty(t.Overrides), orNone(t.Features),
		tx.store.db.Clock().Ahead().Microseconds(), t.pendingAt()).Scan(&t.Metadata, &t.Version, &t.UpdatedAt)
	if err != nil {
		return wrap("store tenant "+t.ID, err)
	}
	t.UpdatedAt = t.UpdatedAt.UTC()
	t.Metadata, err = compact(t.Metadata)
	return err
}

// emit adds the events for the change of a tenant.
func (tx *txn) emit(before, after *Tenant, when *timing) {
	add := func(kind events.Type, data events.Change) {
		tx.events = append(tx.events, events.Event{Type: kind, At: after.UpdatedAt, Tenant: after.ID, Data: data})
	}
	data := events.Change{Plan: after.Plan, Reason: when.reason}
	if before.Status != after.Status && after.Status == StatusSuspended {
		add(events.TenantSuspended, data)
	}
	if before.Plan != after.Plan {
		data.PreviousPlan, data.Apply = before.Plan, applyNow
		add(events.PlanChanged, data)
	}
	if before.Pending == nil && after.Pending != nil && after.Pending.Plan != after.Plan {
		add(events.PlanChangeScheduled, after.Pending.event(after.Plan))
	}
}

func (tx *txn) insertTenant(ctx context.Context, t Tenant) (Tenant, error) {
	now, err := tx.now(ctx)
	if err != nil {
		return Tenant{}, err
	}
	err = tx.queryRow(ctx, "InsertTenant", t.ID, t.Plan, period.OrNil(t.Anchor), t.Timezone, t.Status, t.Metadata, orEmpty(t.Overrides), now, orNone(t.Features)).
		Scan(&t.Anchor, &t.Metadata, &t.Version, &t.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Tenant{}, pgstore.ErrRace
	}
	if err != nil {
		return Tenant{}, wrap("store tenant "+t.ID, err)
	}
	t.Anchor, t.CreatedAt, t.UpdatedAt = t.Anchor.UTC(), t.CreatedAt.UTC(), t.CreatedAt.UTC()
	if t.Metadata, err = compact(t.Metadata); err != nil {
		return t, err
	}
	tx.changed(ctx, kindTenant, t.ID, change{action: "put", tenant: t.ID, after: audited(&t)})
	return t, tx.extendChain(ctx, agreementOf(&t, t.CreatedAt, false))
}

// orNone returns s, or an empty set if s is nil. As JSON, nil would be null.
func orNone(s feature.Set) feature.Set {
	if s == nil {
		return feature.Set{}
	}
	return s
}

// compact removes the blanks that jsonb adds to JSON text.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	if err := raw.Compact(); err != nil {
		return nil, fmt.Errorf("stored metadata: %w", err)
	}
	return raw, nil
}
