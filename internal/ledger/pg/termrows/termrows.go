package termrows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Reader collects the rows of the statements TenantTerms and PlanVersions of ledger/pg.
type Reader struct {
	History map[string][]ledger.TenantTerms // by tenant, oldest first
	Plans   map[string][]ledger.PlanVersion // by plan, in order of versions
	Faults  map[string]error                // by tenant: why its history is of no use to this process, as a time zone that only a newer version knows
}

// NewReader returns a Reader that has read nothing.
func NewReader() *Reader {
	return &Reader{History: map[string][]ledger.TenantTerms{}, Plans: map[string][]ledger.PlanVersion{}, Faults: map[string]error{}}
}

// ScanHistory takes the rows of TenantTerms.
func (r *Reader) ScanHistory(rows pgx.Rows) error {
	var tenant, zone string
	var overrides []byte
	var t ledger.TenantTerms
	_, err := pgx.ForEachRow(rows, []any{&tenant, &t.Since, &t.Plan, &t.AnchorAt, &zone, &t.Now, &t.Prorate, &t.Reset, &overrides}, func() error {
		t.Overrides = nil
		loc, err := period.ParseZone(zone)
		if err = errors.Join(err, json.Unmarshal(overrides, &t.Overrides)); err != nil {
			r.Faults[tenant] = fmt.Errorf("terms of tenant %s: %w", tenant, err)
			return nil
		}
		t.Since, t.AnchorAt, t.Zone = t.Since.UTC(), t.AnchorAt.UTC(), loc
		r.History[tenant] = append(r.History[tenant], t)
		return nil
	})
	return err
}

// ScanPlans takes the rows of PlanVersions.
func (r *Reader) ScanPlans(rows pgx.Rows) error {
	var plan, meter string
	var days int
	var a ledger.Allowance
	var v ledger.PlanVersion
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &v.Version, &v.CreatedAt, &meter, &a.Amount, &a.Every, &a.Anchor, &a.RolloverMin, &a.RolloverMax,
		&a.OverageAllowed, &a.OverageCap, &a.OverflowMeter, &a.OverflowPrice.Units, &a.OverflowPrice.Per, &a.PerSubject, &days, &a.OveragePreserved, &a.AlertAt,
	}, func() error {
		versions := r.Plans[plan]
		if n := len(versions); n == 0 || versions[n-1].Version != v.Version {
			versions = append(versions, ledger.PlanVersion{Version: v.Version, CreatedAt: v.CreatedAt.UTC(), Allowances: map[string]ledger.Allowance{}})
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
