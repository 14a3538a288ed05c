package agreed

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// SQL has the statements of Queue.
//
//go:embed sql/*.sql
var SQL embed.FS

// Terms are the terms of some tenants.
type Terms struct {
	History map[string][]ledger.TenantTerms // by tenant, oldest first
	Plans   map[string][]ledger.PlanVersion // by plan, in order of versions
	// Faults has, by tenant, the reason why this process cannot use the tenant's history, for example a time zone
	// that only a newer version has.
	Faults map[string]error
}

// Queue queues the reads of the terms of balances. The terms arrive when out is sent. sql has the statements of SQL.
func Queue(out *pgx.Batch, sql map[string]string, keys []ledger.BalanceKey) *Terms {
	t := &Terms{
		History: map[string][]ledger.TenantTerms{},
		Plans:   map[string][]ledger.PlanVersion{},
		Faults:  map[string]error{},
	}
	if len(keys) > 0 {
		tenants, meters := ledger.NamesOf(keys)
		out.Queue(sql["TenantTerms"], tenants).Query(t.scanHistory)
		out.Queue(sql["PlanVersions"], tenants, meters).Query(t.scanPlans)
		out.Queue(sql["PlanRenewals"], tenants).Query(t.scanRenewals)
	}
	return t
}

// Conn is a connection or a transaction.
type Conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// InForce returns what those of the tenants have at the instant now that may be without the newest version of their
// plan. All others have the newest version.
func InForce(
	ctx context.Context, conn Conn, sql map[string]string, tenants []string, now time.Time,
) (map[string]*ledger.Agreement, error) {
	rows, _ := conn.Query(ctx, sql["VersionsWait"], tenants, now)
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for versions that wait: %w", err)
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	out := &pgx.Batch{}
	terms := QueueVersions(out, sql, waiting)
	if err := conn.SendBatch(ctx, out).Close(); err != nil {
		return nil, fmt.Errorf("read terms of tenants: %w", err)
	}
	inForce := map[string]*ledger.Agreement{}
	for id, list := range terms.Agreements() {
		for i := range list {
			if !list[i].Since.After(now) {
				inForce[id] = &list[i]
			}
		}
	}
	return inForce, nil
}

// QueueVersions queues the reads that Agreements needs.
func QueueVersions(out *pgx.Batch, sql map[string]string, tenants []string) *Terms {
	keys := make([]ledger.BalanceKey, len(tenants))
	for i, id := range tenants {
		keys[i].Tenant = id
	}
	return Queue(out, sql, keys)
}

// Agreements returns what each tenant has and will have, oldest first.
func (r *Terms) Agreements() map[string][]ledger.Agreement {
	list := make(map[string][]ledger.Agreement, len(r.History))
	for id, history := range r.History {
		list[id] = ledger.Agreements(history, r.Plans)
	}
	return list
}

// scanHistory reads the rows of the statement TenantTerms into r.History. If the terms of a tenant cannot be read, it
// stores the reason in r.Faults.
func (r *Terms) scanHistory(rows pgx.Rows) error {
	var tenant, zone string
	var overrides []byte
	var t ledger.TenantTerms
	_, err := pgx.ForEachRow(rows, []any{
		&tenant, &t.Since, &t.Plan, &t.AnchorAt, &zone, &t.Now, &t.Prorate, &t.Reset, &t.Add, &overrides,
	}, func() error {
		t.Overrides = nil
		loc, err := period.ParseZone(zone)
		if err = errors.Join(err, json.Unmarshal(overrides, &t.Overrides)); err != nil {
			r.Faults[tenant] = fmt.Errorf("terms of tenant %s: %w", tenant, err)
			return nil
		}
		t.Since = t.Since.UTC()
		t.AnchorAt = t.AnchorAt.UTC()
		t.Zone = loc
		r.History[tenant] = append(r.History[tenant], t)
		return nil
	})
	return err
}

// scanPlans reads the rows of the statement PlanVersions into r.Plans.
func (r *Terms) scanPlans(rows pgx.Rows) error {
	var plan, meter string
	var days int
	var a ledger.Allowance
	var v ledger.PlanVersion
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &v.Version, &v.CreatedAt, &v.Apply, &meter,
		&a.Amount, &a.Every, &a.Anchor, &a.RolloverMin, &a.RolloverMax,
		&a.OverageAllowed, &a.OverageCap, &a.OverflowMeter, &a.OverflowPrice.Units, &a.OverflowPrice.Per,
		&a.PerSubject, &days, &a.OveragePreserved, &a.AlertAt,
	}, func() error {
		versions := r.Plans[plan]
		if n := len(versions); n == 0 || versions[n-1].Version != v.Version {
			versions = append(versions, ledger.PlanVersion{
				Version: v.Version, CreatedAt: v.CreatedAt.UTC(), Apply: v.Apply,
				Allowances: map[string]ledger.Allowance{},
			})
			r.Plans[plan] = versions
		}
		a.Lasts = time.Duration(days) * 24 * time.Hour
		if meter != "" {
			versions[len(versions)-1].Allowances[meter] = a
		}
		a = ledger.Allowance{}
		return nil
	})
	return err
}

// scanRenewals reads the rows of the statement PlanRenewals into r.Plans. Versions that were made after scanPlans are
// left out.
func (r *Terms) scanRenewals(rows pgx.Rows) error {
	var plan string
	var version int32
	var a ledger.Renewal
	var meters []string
	_, err := pgx.ForEachRow(rows, []any{&plan, &version, &a.Every, &a.Anchor, &meters}, func() error {
		for i := range r.Plans[plan] {
			v := &r.Plans[plan][i]
			if v.Version != version {
				continue
			}
			if v.Renewals == nil {
				v.Renewals = map[string]ledger.Renewal{}
			}
			for _, meter := range meters {
				v.Renewals[meter] = a
			}
		}
		return nil
	})
	return err
}
