package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// tenantTimeout bounds the comparison of one tenant's refunds and holds, which reads the tenant's entries once more.
const tenantTimeout = 10 * time.Minute

// compareTenants compares refunds and holds of tenants with the journal. touched contains the tenants with entries of
// refunds or holds. The other tenants are compared if the tables have refunds or holds of them.
func (p *pass) compareTenants(ctx context.Context, tenants []string, touched, archived map[string]bool) error {
	rows, err := p.auditor.pool.Query(ctx, p.auditor.sql["WithRefundsOrHolds"], tenants)
	if err != nil {
		return err
	}
	with, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if !touched[tenant] && !slices.Contains(with, tenant) {
			continue
		}
		before := p.report.mark()
		err := p.auditor.inSnapshot(ctx, tenantTimeout, func(ctx context.Context, tx pgx.Tx) error {
			return p.compareTenant(ctx, tx, tenant, archived[tenant])
		})
		if err != nil && (ctx.Err() != nil || !unreadable(err)) {
			return fmt.Errorf("refunds and holds of tenant %s: %w", tenant, err)
		}
		if err != nil {
			p.report.reset(before)
			p.report.unread(Key{Tenant: tenant})
		}
	}
	return nil
}

// compareGauges compares the gauges of a tenant, or of all tenants, with their entries.
func (a *Auditor) compareGauges(ctx context.Context, tenant string, report *Report) error {
	err := a.inSnapshot(ctx, orphansTimeout, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, a.sql["VerifyGauges"], tenant)
		if err != nil {
			return err
		}
		var k Key
		var what, want, got string
		_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &what, &want, &got}, func() error {
			report.add(k, what, want, got)
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("verify gauges: %w", err)
	}
	return nil
}

func (p *pass) compareTenant(ctx context.Context, tx pgx.Tx, tenant string, archived bool) error {
	k := Key{Tenant: tenant, Meter: "*"}
	r, sql := p.report, p.auditor.sql
	b := &pgx.Batch{}
	b.Queue("SET LOCAL enable_hashjoin = on") // the statements join all rows of a tenant
	var operation, month, want, got, wantUnits, gotUnits string
	var line int32
	b.Queue(sql["VerifyRefunds"], tenant, archived).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&operation, &month, &line, &want, &got, &wantUnits, &gotUnits}, func() error {
			what := "refunded of operation " + operation
			if line > 0 {
				what += fmt.Sprint(" of ", month, " line ", line)
			}
			if want != got {
				r.add(k, what, want, got)
			}
			if wantUnits != gotUnits {
				r.add(k, "units "+what, wantUnits, gotUnits)
			}
			return nil
		})
		return err
	})
	var hold, grant string
	var item int32
	var n [6]string
	b.Queue(sql["VerifyHoldLines"], tenant, archived).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&k.Meter, &k.Subject, &hold, &item, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]}, func() error {
			for i, part := range []string{"reserved", "captured", "returned"} {
				if n[i] != n[i+3] {
					r.add(k, fmt.Sprintf("%s by hold %s item %d", part, hold, item), n[i], n[i+3])
				}
			}
			return nil
		})
		return err
	})
	b.Queue(sql["VerifyHoldGrants"], tenant, archived).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&k.Meter, &k.Subject, &hold, &item, &grant, &want, &got}, func() error {
			r.add(k, fmt.Sprintf("reserved by hold %s item %d of grant %s", hold, item, grant), want, got)
			return nil
		})
		return err
	})
	b.Queue(sql["VerifyPayments"], tenant, archived).Query(func(rows pgx.Rows) error {
		var what string
		_, err := pgx.ForEachRow(rows, []any{&k.Meter, &k.Subject, &hold, &item, &what, &want, &got}, func() error {
			r.add(k, fmt.Sprintf("%s of hold %s line %d", what, hold, item), want, got)
			return nil
		})
		return err
	})
	b.Queue(sql["VerifyHolds"], tenant, archived).Query(func(rows pgx.Rows) error {
		var what string
		_, err := pgx.ForEachRow(rows, []any{&hold, &what, &want, &got}, func() error {
			r.add(Key{Tenant: tenant, Meter: "*"}, what+" of hold "+hold, want, got)
			return nil
		})
		return err
	})
	return tx.SendBatch(ctx, b).Close()
}
