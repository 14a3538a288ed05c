package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
)

// PutTenant creates or replaces a tenant and returns it as it is stored, and whether it is new. A change of plan, anchor or
// zone is written to the history of its terms and holds from now on.
func (s *Store) PutTenant(ctx context.Context, t Tenant) (stored Tenant, created bool, err error) {
	if err := t.Validate(); err != nil {
		return Tenant{}, false, err
	}
	t.normalize()
	err = s.write(ctx, "put tenant", writeTimeout, false, func(ctx context.Context, tx *txn) error {
		if err := tx.requirePlan(ctx, t.Plan); err != nil {
			return err
		}
		locked, err := tx.lockTenants(ctx, []Tenant{t})
		if err != nil {
			return err
		}
		before, exists := locked[t.ID]
		created = !exists
		stored, err = tx.putTenant(ctx, before, t)
		return err
	})
	return stored, created, err
}

// PatchTenant changes what p names, as PutTenant does, and returns the tenant as it is stored.
func (s *Store) PatchTenant(ctx context.Context, id string, p TenantPatch) (stored Tenant, err error) {
	if err := p.Validate(); err != nil {
		return Tenant{}, err
	}
	err = s.write(ctx, "patch tenant", writeTimeout, false, func(ctx context.Context, tx *txn) error {
		asked := Tenant{ID: id, Metadata: p.Metadata}
		if asked.Metadata != nil {
			var c checker
			if asked.Metadata = c.metadata("metadata", p.Metadata); len(c.fields) > 0 {
				return c.err()
			}
		}
		locked, err := tx.lockTenants(ctx, []Tenant{asked})
		if err != nil {
			return err
		}
		before, exists := locked[id]
		if !exists {
			return notFound(kindTenant, id)
		}
		t := before.patched(&p)
		if err := t.Validate(); err != nil {
			return err
		}
		t.normalize()
		if err := tx.requirePlan(ctx, t.Plan); err != nil {
			return err
		}
		stored, err = tx.putTenantAt(ctx, before, t, p.Apply == ApplyNow, p.Prorate)
		return err
	})
	return stored, err
}

// Tenant returns the tenant id from PostgreSQL. A Catalog's Tenant answers from memory.
func (s *Store) Tenant(ctx context.Context, id string) (t Tenant, err error) {
	err = s.read(ctx, "read tenant", func(ctx context.Context, tx *txn) error {
		items, err := tx.tenants(ctx, []string{id}, "", 1)
		t, err = one(items, err, notFound(kindTenant, id))
		return err
	})
	return t, err
}

// ListTenants returns a page of all tenants.
func (s *Store) ListTenants(ctx context.Context, p Page) (list List[Tenant], err error) {
	after, err := p.after()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list tenants", func(ctx context.Context, tx *txn) error {
		items, err := tx.tenants(ctx, nil, after, p.Limit+1)
		list = listed(items, p, func(t *Tenant) string { return t.ID })
		return err
	})
	return list, err
}

func (tx *txn) requirePlan(ctx context.Context, plan string) error {
	return tx.require(ctx, "MissingPlans", kindPlan, []reference{{"plan", plan}})
}

// tenants reads the tenants ids (all if nil) after an id.
func (tx *txn) tenants(ctx context.Context, ids []string, after string, limit int) ([]Tenant, error) {
	rows, err := tx.query(ctx, "SelectTenants", ids, after, limit)
	if err != nil {
		return nil, wrap("select tenants", err)
	}
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Tenant, error) { return scanTenant(row) })
	return items, wrap("select tenants", err)
}

// tenantIDs reads the ids of tenants that are not listed.
func (tx *txn) tenantIDs(ctx context.Context, listed []string, limit int) ([]string, error) {
	rows, err := tx.query(ctx, "SelectTenantIDs", listed, limit)
	if err != nil {
		return nil, wrap("select tenant ids", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, wrap("select tenant ids", err)
}

// scanTenant reads a row of SelectTenants, or of LockTenants with more columns.
func scanTenant(row pgx.CollectableRow, more ...any) (Tenant, error) {
	var t Tenant
	err := row.Scan(append([]any{
		&t.ID, &t.Plan, &t.Anchor, &t.Timezone, &t.Status, &t.Metadata, &t.CreatedAt, &t.UpdatedAt,
	}, more...)...)
	if err != nil {
		return t, err
	}
	t.Anchor, t.CreatedAt, t.UpdatedAt = t.Anchor.UTC(), t.CreatedAt.UTC(), t.UpdatedAt.UTC()
	t.Metadata, err = compact(t.Metadata)
	return t, err
}

// lockedTenant is a tenant whose row is locked.
type lockedTenant struct {
	Tenant
	sameMetadata bool // jsonb takes the stored metadata and the wanted for the same
}

// lockTenants locks those of wanted that exist, in order, and returns them by id.
func (tx *txn) lockTenants(ctx context.Context, wanted []Tenant) (map[string]*lockedTenant, error) {
	ids := column(wanted, func(t *Tenant) string { return t.ID })
	metadata := column(wanted, func(t *Tenant) *string {
		if t.Metadata == nil {
			return nil
		}
		text := string(t.Metadata)
		return &text
	})
	rows, err := tx.query(ctx, "LockTenants", ids, metadata)
	if err != nil {
		return nil, wrap("lock tenants", err)
	}
	tenants, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*lockedTenant, error) {
		var l lockedTenant
		var err error
		l.Tenant, err = scanTenant(row, &l.sameMetadata)
		return &l, err
	})
	locked := make(map[string]*lockedTenant, len(tenants))
	for _, l := range tenants {
		locked[l.ID] = l
	}
	return locked, wrap("lock tenants", err)
}

// putTenant stores t, normalized, where before, nil if there is none, is locked. Its plan exists.
func (tx *txn) putTenant(ctx context.Context, before *lockedTenant, t Tenant) (Tenant, error) {
	return tx.putTenantAt(ctx, before, t, false, false)
}

// putTenantAt is putTenant with terms that apply at the next periods, or now.
func (tx *txn) putTenantAt(ctx context.Context, before *lockedTenant, t Tenant, now, prorate bool) (Tenant, error) {
	if before == nil {
		return tx.insertTenant(ctx, t)
	}
	t.CreatedAt, t.UpdatedAt = before.CreatedAt, before.UpdatedAt
	if t.Anchor.IsZero() {
		t.Anchor = before.CreatedAt
	}
	if before.sameMetadata {
		t.Metadata = before.Metadata
	}
	if t.same(&before.Tenant) {
		return before.Tenant, nil
	}
	err := tx.queryRow(ctx, "UpdateTenant", t.ID, t.Plan, t.Anchor, t.Timezone, t.Status, t.Metadata).Scan(&t.Metadata, &t.UpdatedAt)
	if err != nil {
		return Tenant{}, wrap("store tenant "+t.ID, err)
	}
	t.UpdatedAt = t.UpdatedAt.UTC()
	if t.Metadata, err = compact(t.Metadata); err != nil {
		return Tenant{}, err
	}
	if !t.sameTerms(&before.Tenant) {
		if err := tx.insertTerms(ctx, &t, now, prorate); err != nil {
			return Tenant{}, wrap("store terms of tenant "+t.ID, err)
		}
	}
	tx.changed(kindTenant, t.ID)
	return t, nil
}

// insertTerms writes the terms of t. Those that apply now end open periods: the balances are locked first, so that the terms
// are later than anything decided under the old ones, and made due.
func (tx *txn) insertTerms(ctx context.Context, t *Tenant, now, prorate bool) error {
	if now {
		if _, err := tx.exec(ctx, "LockBalances", t.ID); err != nil {
			return err
		}
	}
	var at time.Time
	if err := tx.queryRow(ctx, "InsertTerms", t.ID, t.Plan, t.Anchor, t.Timezone, now, prorate).Scan(&at); err != nil {
		return err
	}
	if !now {
		return nil
	}
	_, err := tx.exec(ctx, "MakeDue", t.ID, at)
	return err
}

// errRace says that another transaction made the row in the meantime.
var errRace = errors.New("made by another transaction in the meantime")

func (tx *txn) insertTenant(ctx context.Context, t Tenant) (Tenant, error) {
	var anchor *time.Time
	if !t.Anchor.IsZero() {
		anchor = &t.Anchor
	}
	err := tx.queryRow(ctx, "InsertTenant", t.ID, t.Plan, anchor, t.Timezone, t.Status, t.Metadata).
		Scan(&t.Anchor, &t.Metadata, &t.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Tenant{}, errRace
	}
	if err != nil {
		return Tenant{}, wrap("store tenant "+t.ID, err)
	}
	t.Anchor, t.CreatedAt, t.UpdatedAt = t.Anchor.UTC(), t.CreatedAt.UTC(), t.CreatedAt.UTC()
	t.Metadata, err = compact(t.Metadata)
	tx.changed(kindTenant, t.ID)
	return t, err
}

// compact takes out the blanks that jsonb puts in.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	v := jsontext.Value(raw)
	if err := v.Compact(); err != nil {
		return nil, fmt.Errorf("stored metadata: %w", err)
	}
	return json.RawMessage(v), nil
}
