package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/quotasvc/quotasvc/internal/period"
)

// keyRetention is how long an Idempotency-Key is remembered at the least (API contract).
const keyRetention = 31 * 24 * time.Hour

// termsCommitMargin covers a catalogue change that was stamped before an entry and committed after it. Catalogue
// transactions are bounded to seconds.
const termsCommitMargin = time.Minute

var epoch = time.Unix(0, 0).UTC()

// fromDB turns the stored "no instant yet" into the zero time.
func fromDB(t time.Time) time.Time {
	if t.Equal(epoch) {
		return time.Time{}
	}
	return t.UTC()
}

// keyMonths lists the partitions in which a key used at most keyRetention ago can lie, with a day of margin for the
// distance between the service's clock and PostgreSQL's.
func keyMonths(now time.Time) []pgtype.Date {
	const margin = 24 * time.Hour
	from, to := now.Add(-keyRetention-margin).UTC(), now.Add(margin).UTC()
	var months []pgtype.Date
	for m := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC); !m.After(to); m = m.AddDate(0, 1, 0) {
		months = append(months, pgtype.Date{Time: m, Valid: true})
	}
	return months
}

// keyColumns are parallel arrays for unnest.
type keyColumns struct{ tenants, meters, subjects []string }

func columnsOf(keys []key) keyColumns {
	c := keyColumns{make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))}
	for i, k := range keys {
		c.tenants[i], c.meters[i], c.subjects[i] = k.Tenant, k.Meter, k.Subject
	}
	return c
}

func scanBalances(into map[key]*book) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var b balance
		_, err := pgx.ForEachRow(rows, []any{
			&b.Tenant, &b.Meter, &b.Subject, &b.seq, &b.plan, &b.planVersion, &b.allowance, &b.renews, &b.start, &b.end,
			&b.opening, &b.granted, &b.refunded, &b.used, &b.expired, &b.adjusted, &b.held, &b.overage,
			&b.owed, &b.settled, &b.forgivenSeq, &b.headID, &b.headSource, &b.headRemaining, &b.nextEvent, &b.updatedAt,
		}, func() error {
			row := b
			row.start, row.end = fromDB(row.start), fromDB(row.end)
			row.nextEvent, row.updatedAt = fromDB(row.nextEvent), fromDB(row.updatedAt)
			into[row.key] = &book{balance: row, writtenAt: row.updatedAt}
			return nil
		})
		return err
	}
}

func scanLines(into map[opKey][]line) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var l line
		_, err := pgx.ForEachRow(rows, lineTargets(&l), func() error {
			row := l
			row.createdAt = row.createdAt.UTC()
			k := opKey{row.Tenant, row.operationID}
			into[k] = append(into[k], row)
			l = line{}
			return nil
		})
		return err
	}
}

func scanGrants(into map[key][]*grant) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var g GrantRecord
		_, err := pgx.ForEachRow(rows, grantTargets(&g), func() error {
			row := g
			row.EffectiveAt, row.ExpiresAt, row.CreatedAt = g.EffectiveAt.UTC(), g.ExpiresAt.UTC(), g.CreatedAt.UTC()
			k := key{row.Tenant, row.Meter, row.Subject}
			into[k] = append(into[k], &grant{GrantRecord: row})
			return nil
		})
		return err
	}
}

// lineTargets are the scan targets of the entry columns, in the order every statement lists them.
func lineTargets(l *line) []any {
	return []any{
		&l.Tenant, &l.operationID, &l.line, &l.seq, &l.kind, &l.Meter, &l.Subject, &l.periodStart, &l.grantID, &l.source,
		&l.amount, &l.remainingAfter, &l.item, &l.requested, &l.fingerprint, &l.createdAt, &l.effectiveAt, &l.opSubject,
		&l.detail, &l.metadata,
	}
}

// grantTargets are the scan targets of the grant columns.
func grantTargets(g *GrantRecord) []any {
	return []any{
		&g.Tenant, &g.Meter, &g.Subject, &g.ID, &g.Source, &g.Amount, &g.Remaining, &g.Held, &g.Priority, &g.EffectiveAt,
		&g.ExpiresAt, &g.CostBasis, &g.Reason, &g.Status, &g.OperationID, &g.CreatedAt,
	}
}

func scanHoldLines(into map[key][]*holdLine) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k key
		var h holdLine
		_, err := pgx.ForEachRow(rows, []any{
			&k.Tenant, &k.Meter, &k.Subject, &h.holdID, &h.line, &h.item, &h.grantID, &h.source, &h.price, &h.amount, &h.captured,
			&h.returned, &h.expiresAt,
		}, func() error {
			row := h
			row.expiresAt = row.expiresAt.UTC()
			into[k] = append(into[k], &row)
			return nil
		})
		return err
	}
}

func scanHolds(into map[holdKey]*holdRow) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var h holdRow
		var items []byte
		_, err := pgx.ForEachRow(rows, []any{&h.tenant, &h.id, &h.subject, &h.status, &items, &h.createdAt, &h.expiresAt}, func() error {
			row := h
			row.createdAt, row.expiresAt, row.items = h.createdAt.UTC(), h.expiresAt.UTC(), nil
			if err := json.Unmarshal(items, &row.items); err != nil {
				return fmt.Errorf("items of hold %s/%s: %w", row.tenant, row.id, err)
			}
			into[row.holdKey] = &row
			return nil
		})
		return err
	}
}

func scanRefunds(into map[refundKey]*refundSum) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k refundKey
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&k.tenant, &k.id, &k.line, &n}, func() error {
			into[k] = &refundSum{amount: n}
			return nil
		})
		return err
	}
}

// scanHomes reads (tenant, id, meter, subject) rows.
func scanHomes(add func(tenant, id string, k key)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k key
		var id string
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &id, &k.Meter, &k.Subject}, func() error {
			add(k.Tenant, id, k)
			return nil
		})
		return err
	}
}

// termsReader collects the rows of TenantTerms and PlanVersions.
type termsReader struct {
	history map[string][]tenantTerms
	plans   map[string][]planVersion
}

func newTermsReader() *termsReader {
	return &termsReader{history: map[string][]tenantTerms{}, plans: map[string][]planVersion{}}
}

func (r *termsReader) scanHistory(rows pgx.Rows) error {
	var tenant, zone string
	var overrides []byte
	var t tenantTerms
	_, err := pgx.ForEachRow(rows, []any{&tenant, &t.since, &t.plan, &t.anchorAt, &zone, &t.now, &t.prorate, &overrides}, func() error {
		t.overrides = nil
		if err := json.Unmarshal(overrides, &t.overrides); err != nil {
			return fmt.Errorf("overrides of tenant %s: %w", tenant, err)
		}
		loc, err := period.ParseZone(zone)
		if err != nil {
			return fmt.Errorf("time zone of tenant %s: %w", tenant, err)
		}
		t.since, t.anchorAt, t.zone = t.since.UTC(), t.anchorAt.UTC(), loc
		r.history[tenant] = append(r.history[tenant], t)
		return nil
	})
	return err
}

func (r *termsReader) scanPlans(rows pgx.Rows) error {
	var plan, meter string
	var days int
	var a allowance
	var v planVersion
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &v.version, &v.createdAt, &meter, &a.amount, &a.every, &a.anchor, &a.rolloverMin, &a.rolloverMax,
		&a.overageAllowed, &a.overageCap, &a.overflowMeter, &a.overflowPrice, &a.perSubject, &days, &a.overagePreserved,
	}, func() error {
		versions := r.plans[plan]
		if n := len(versions); n == 0 || versions[n-1].version != v.version {
			versions = append(versions, planVersion{version: v.version, createdAt: v.createdAt.UTC(), allowances: map[string]allowance{}})
			r.plans[plan] = versions
		}
		a.lasts = time.Duration(days) * 24 * time.Hour
		if meter != "" {
			versions[len(versions)-1].allowances[meter] = a
		}
		a = allowance{}
		return nil
	})
	return err
}

func (r *termsReader) timeline(k key) timeline {
	return newTimeline(k, r.history[k.Tenant], r.plans)
}

// sendBatch runs queued statements in one round trip.
func sendBatch(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("pipelined batch: %w", err)
	}
	return nil
}

// errRolledBack says that PostgreSQL answered COMMIT with ROLLBACK.
var errRolledBack = errors.New("ledger: transaction was rolled back at commit")
