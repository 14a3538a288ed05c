package pg

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// termsReader collects the rows of TenantTerms and PlanVersions.
type termsReader struct {
	history map[string][]ledger.TenantTerms
	plans   map[string][]ledger.PlanVersion
}

func newTermsReader() *termsReader {
	return &termsReader{history: map[string][]ledger.TenantTerms{}, plans: map[string][]ledger.PlanVersion{}}
}

func (r *termsReader) scanHistory(rows pgx.Rows) error {
	var tenant, zone string
	var overrides []byte
	var t ledger.TenantTerms
	_, err := pgx.ForEachRow(rows, []any{&tenant, &t.Since, &t.Plan, &t.AnchorAt, &zone, &t.Now, &t.Prorate, &t.Reset, &overrides}, func() error {
		t.Overrides = nil
		if err := json.Unmarshal(overrides, &t.Overrides); err != nil {
			return fmt.Errorf("overrides of tenant %s: %w", tenant, err)
		}
		loc, err := period.ParseZone(zone)
		if err != nil {
			return fmt.Errorf("time zone of tenant %s: %w", tenant, err)
		}
		t.Since, t.AnchorAt, t.Zone = t.Since.UTC(), t.AnchorAt.UTC(), loc
		r.history[tenant] = append(r.history[tenant], t)
		return nil
	})
	return err
}

func (r *termsReader) scanPlans(rows pgx.Rows) error {
	var plan, meter string
	var days int
	var a ledger.Allowance
	var v ledger.PlanVersion
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &v.Version, &v.CreatedAt, &meter, &a.Amount, &a.Every, &a.Anchor, &a.RolloverMin, &a.RolloverMax,
		&a.OverageAllowed, &a.OverageCap, &a.OverflowMeter, &a.OverflowPrice.Units, &a.OverflowPrice.Per, &a.PerSubject, &days, &a.OveragePreserved, &a.AlertAt,
	}, func() error {
		versions := r.plans[plan]
		if n := len(versions); n == 0 || versions[n-1].Version != v.Version {
			versions = append(versions, ledger.PlanVersion{Version: v.Version, CreatedAt: v.CreatedAt.UTC(), Allowances: map[string]ledger.Allowance{}})
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
