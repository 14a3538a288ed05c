package pg

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// termsRows collects the rows of the statements TenantTerms and PlanVersions.
type termsRows struct {
	history map[string][]ledger.TenantTerms // by tenant, oldest first
	plans   map[string][]ledger.PlanVersion // by plan, in order of versions
	// faults has, by tenant, the reason why this process cannot use the tenant's history, for example a time zone
	// that only a newer version has.
	faults map[string]error
}

func newTermsRows() *termsRows {
	return &termsRows{
		history: map[string][]ledger.TenantTerms{},
		plans:   map[string][]ledger.PlanVersion{},
		faults:  map[string]error{},
	}
}

// scanHistory reads the rows of the statement TenantTerms into r.history. If the terms of a tenant cannot be read, it
// stores the reason in r.faults.
func (r *termsRows) scanHistory(rows pgx.Rows) error {
	var tenant, zone string
	var overrides []byte
	var t ledger.TenantTerms
	_, err := pgx.ForEachRow(rows, []any{
		&tenant, &t.Since, &t.Plan, &t.AnchorAt, &zone, &t.Now, &t.Prorate, &t.Reset, &overrides,
	}, func() error {
		t.Overrides = nil
		loc, err := period.ParseZone(zone)
		if err = errors.Join(err, json.Unmarshal(overrides, &t.Overrides)); err != nil {
			r.faults[tenant] = fmt.Errorf("terms of tenant %s: %w", tenant, err)
			return nil
		}
		t.Since = t.Since.UTC()
		t.AnchorAt = t.AnchorAt.UTC()
		t.Zone = loc
		r.history[tenant] = append(r.history[tenant], t)
		return nil
	})
	return err
}

// scanPlans reads the rows of the statement PlanVersions into r.plans.
func (r *termsRows) scanPlans(rows pgx.Rows) error {
	var plan, meter string
	var days int
	var a ledger.Allowance
	var v ledger.PlanVersion
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &v.Version, &v.CreatedAt, &meter, &a.Amount, &a.Every, &a.Anchor, &a.RolloverMin, &a.RolloverMax,
		&a.OverageAllowed, &a.OverageCap, &a.OverflowMeter, &a.OverflowPrice.Units, &a.OverflowPrice.Per,
		&a.PerSubject, &days, &a.OveragePreserved, &a.AlertAt,
	}, func() error {
		versions := r.plans[plan]
		if n := len(versions); n == 0 || versions[n-1].Version != v.Version {
			versions = append(versions, ledger.PlanVersion{
				Version: v.Version, CreatedAt: v.CreatedAt.UTC(), Allowances: map[string]ledger.Allowance{},
			})
			r.plans[plan] = versions
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
