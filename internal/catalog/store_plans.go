package catalog

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// PutPlan stores p as the newest version of its plan, unless the newest version already has the same content. A version
// of the same content is stored as well if it is to apply now and the newest version waits. PutPlan returns the newest
// version and whether the plan is new. The fields p.Version and p.CreatedAt are ignored.
func (s *Store) PutPlan(ctx context.Context, p Plan) (stored Plan, created bool, err error) {
	stored, created, _, err = s.PutPlanWarning(ctx, p)
	return stored, created, err
}

// PutPlanWarning stores p like PutPlan. It also returns warnings: sentences that say how many tenants get less of a
// meter or a feature.
func (s *Store) PutPlanWarning(ctx context.Context, p Plan) (stored Plan, created bool, warnings []string, err error) {
	if err := validate(&p); err != nil {
		return Plan{}, false, nil, err
	}
	p.normalize()
	err = s.write(ctx, "put plan", alone, func(ctx context.Context, tx *txn) error {
		before, err := tx.plans(ctx, []string{p.ID}, "", 1)
		if err != nil {
			return err
		}
		created = len(before) == 0
		older, err := tx.olderPlans(ctx)
		if err != nil {
			return err
		}
		if stored, err = tx.putPlan(ctx, first(before), p); err != nil || len(tx.writing.Announcements()) == 0 {
			return err
		}
		if warnings, err = tx.warnings(ctx, first(before), older[p.ID], &stored); err != nil {
			return err
		}
		return tx.requireRules(ctx, p.ID, func(f *RuleFault) string {
			at := slices.IndexFunc(p.Limits, func(l Limit) bool { return l.Rule == f.Rule })
			if f.Plan != p.ID || at < 0 {
				return "limits"
			}
			return fmt.Sprintf("limits[%d].%s", at, f.Field)
		})
	})
	return stored, created, warnings, err
}

// Plan returns a version of the plan with this id. Version 0 means the newest version.
func (s *Store) Plan(ctx context.Context, id string, version int32) (p Plan, err error) {
	err = s.read(ctx, "read plan", func(ctx context.Context, tx *txn) error {
		if version == 0 {
			items, err := tx.plans(ctx, []string{id}, "", 1)
			p, err = one(items, err, notFound(kindPlan, id))
			return err
		}
		items, err := tx.wholePlans(ctx, "SelectPlanVersion", id, version)
		p, err = one(items, err, errcode.Errorf(errcode.NotFound, "", "the plan %.128q has no version %d", id, version))
		return err
	})
	return p, err
}

// ListPlans returns a page of plans, each in its newest version.
func (s *Store) ListPlans(ctx context.Context, p listing.Query) (list listing.Page[Plan], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list plans", func(ctx context.Context, tx *txn) error {
		items, err := tx.plans(ctx, nil, after, p.Limit+1)
		list = listing.Cut(items, p, func(p *Plan) string { return p.ID })
		return err
	})
	return list, err
}

// plans reads the newest versions of the plans whose ids are in the list ids, or of all plans if the list is nil. It
// omits plans whose ids are not greater than `after`. It returns the first plans in the order of their ids, at most as
// many as `limit` says.
func (tx *txn) plans(ctx context.Context, ids []string, after string, limit int) ([]Plan, error) {
	return tx.wholePlans(ctx, "SelectPlans", ids, after, limit)
}

// wholePlans reads the versions of plans that a statement selects, with their allowances.
func (tx *txn) wholePlans(ctx context.Context, statement string, args ...any) ([]Plan, error) {
	plans, err := tx.collectPlans(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return plans, tx.addAllowances(ctx, plans)
}

// collectPlans reads the versions of plans that a statement selects, without their allowances.
func (tx *txn) collectPlans(ctx context.Context, statement string, args ...any) ([]Plan, error) {
	plans, err := pgx.CollectRows(tx.query(ctx, statement, args...), func(row pgx.CollectableRow) (Plan, error) {
		var (
			p                Plan
			limits, features []byte
		)
		if err := row.Scan(&p.ID, &p.Version, &limits, &features, &p.Apply, &p.CreatedAt); err != nil {
			return p, err
		}
		if err := json.Unmarshal(features, &p.Features); err != nil {
			return p, fmt.Errorf("features of plan %s version %d: %w", p.ID, p.Version, err)
		}
		p.CreatedAt = p.CreatedAt.UTC()
		if err := json.Unmarshal(limits, &p.Limits); err != nil {
			return p, fmt.Errorf("limits of plan %s version %d: %w", p.ID, p.Version, err)
		}
		p.normalize()
		return p, nil
	})
	return plans, wrap("select plans", err)
}

func (tx *txn) addAllowances(ctx context.Context, plans []Plan) error {
	if len(plans) == 0 {
		return nil
	}
	ids, versions, byID := make([]string, len(plans)), make([]int32, len(plans)), make(map[string]*Plan, len(plans))
	for i := range plans {
		ids[i], versions[i], byID[plans[i].ID] = plans[i].ID, plans[i].Version, &plans[i]
	}
	rows := tx.query(ctx, "SelectAllowances", ids, versions)
	var (
		plan string
		r    allowanceRow
	)
	_, err := pgx.ForEachRow(rows, []any{
		&plan, &r.meter, &r.amount, &r.every, &r.anchor, &r.rolloverMin, &r.rolloverMax, &r.overagePolicy, &r.overageCap,
		&r.overflowMeter, &r.overflowPrice, &r.ratioMeter, &r.ratioUnits, &r.ratioPer, &r.perSubject, &r.expiresInDays, &r.overageAtEnd, &r.alertAt, &r.gauge,
	}, func() error {
		p := byID[plan]
		p.Allowances = append(p.Allowances, r.allowance())
		return nil
	})
	return wrap("select allowances", err)
}

// putPlan stores p, which is normalized, as the next version. The argument `before` is the newest version, read under
// the catalogue's lock. It is nil if the plan is new.
func (tx *txn) putPlan(ctx context.Context, before *Plan, p Plan) (Plan, error) {
	if before != nil && p.same(before) && (p.Apply == before.Apply || p.Apply == "" || before.Version == 1) {
		return *before, nil
	}
	for i := range p.Limits {
		if err := tx.store.checkLimit(fmt.Sprintf("limits[%d].", i), &p.Limits[i]); err != nil {
			return Plan{}, err
		}
	}
	if err := tx.requireMeters(ctx, p.meters()); err != nil {
		return Plan{}, err
	}
	named, err := tx.meters(ctx, column(p.meters(), func(r *reference) string { return r.id }), "", unlimited)
	if err != nil {
		return Plan{}, err
	}
	if faults := append(p.unpaid(), p.misfits(byID(named, func(m *Meter) string { return m.ID }))...); len(faults) > 0 {
		return Plan{}, invalid(faults)
	}
	if _, err := tx.dropOrphans(ctx, column(p.Limits, func(l *Limit) string { return l.Rule })); err != nil {
		return Plan{}, err
	}
	p.Version = 1
	var apply *string
	if before == nil {
		p.Apply = ""
	} else {
		p.Version, apply = before.Version+1, new(cmp.Or(p.Apply, applyNextPeriod))
	}
	limits, err := json.Marshal(p.Limits)
	if err != nil {
		return Plan{}, wrap("encode limits", err)
	}
	features, err := json.Marshal(orNone(p.Features))
	if err != nil {
		return Plan{}, wrap("encode features", err)
	}
	now, err := tx.now(ctx)
	if err != nil {
		return Plan{}, err
	}
	if err := tx.queryRow(ctx, "NextPlanVersion", p.ID, now).Scan(&p.CreatedAt); err != nil {
		return Plan{}, wrap("store plan "+p.ID, err)
	}
	if _, err := tx.exec(ctx, "InsertPlan", p.ID, p.Version, limits, p.CreatedAt, features, apply); err != nil {
		return Plan{}, wrap("store plan "+p.ID, err)
	}
	p.CreatedAt = p.CreatedAt.UTC()
	if err := tx.insertAllowances(ctx, &p); err != nil {
		return Plan{}, wrap("store allowances of plan "+p.ID, err)
	}
	if err := tx.extendChain(ctx, &agreement{plan: p.ID, rows: "VersionsAfter", written: p.CreatedAt}); err != nil {
		return Plan{}, err
	}
	tx.changed(ctx, kindPlan, p.ID, change{action: "put", before: orNil(before), after: &p})
	if before == nil {
		return p, nil
	}
	rules, err := pgx.CollectRows(tx.query(ctx, "RulesOfPlan", p.ID), pgx.RowTo[string])
	if err != nil {
		return Plan{}, wrap("select limits of plan "+p.ID, err)
	}
	gone := slices.DeleteFunc(rules, func(rule string) bool { return limitIn([]Plan{p}, rule) != nil })
	if len(gone) == 0 {
		return p, nil
	}
	return p, tx.deleteOrphans(ctx, gone)
}

func (tx *txn) insertAllowances(ctx context.Context, p *Plan) error {
	rows := make([]allowanceRow, len(p.Allowances))
	ordinals := make([]int32, len(p.Allowances))
	for i := range p.Allowances {
		rows[i], ordinals[i] = rowOf(&p.Allowances[i]), int32(i)
	}
	_, err := tx.exec(ctx, "InsertAllowances", p.ID, p.Version,
		column(rows, func(r *allowanceRow) string { return r.meter }), ordinals,
		column(rows, func(r *allowanceRow) int64 { return r.amount }),
		column(rows, func(r *allowanceRow) string { return r.every }),
		column(rows, func(r *allowanceRow) string { return r.anchor }),
		column(rows, func(r *allowanceRow) *int64 { return r.rolloverMin }),
		column(rows, func(r *allowanceRow) *int64 { return r.rolloverMax }),
		column(rows, func(r *allowanceRow) *string { return r.overagePolicy }),
		column(rows, func(r *allowanceRow) *int64 { return r.overageCap }),
		column(rows, func(r *allowanceRow) *string { return r.overflowMeter }),
		column(rows, func(r *allowanceRow) *int64 { return r.overflowPrice }),
		column(rows, func(r *allowanceRow) *int64 { return r.perSubject }),
		column(rows, func(r *allowanceRow) *int64 { return r.expiresInDays }),
		column(rows, func(r *allowanceRow) *string { return r.overageAtEnd }),
		column(rows, func(r *allowanceRow) *string { return r.ratioMeter }),
		column(rows, func(r *allowanceRow) *int64 { return r.ratioUnits }),
		column(rows, func(r *allowanceRow) *int64 { return r.ratioPer }),
		column(rows, func(r *allowanceRow) bool { return r.gauge }),
		column(rows, func(r *allowanceRow) *string { return r.alertAt }))
	return err
}

// requireMeters fails if a meter in refs does not exist. The error names all these references.
func (tx *txn) requireMeters(ctx context.Context, refs []reference) error {
	return tx.require(ctx, "MissingMeters", kindMeter, refs)
}

// require fails if an object in refs does not exist. The error names all these references.
func (tx *txn) require(ctx context.Context, statement, kind string, refs []reference) error {
	missing, err := tx.missing(ctx, statement, refs)
	if err != nil || len(missing) == 0 {
		return err
	}
	e := &errcode.Error{Code: errcode.NotFound}
	for _, ref := range missing {
		e.Fields = append(e.Fields, missingReference(ref.field, kind, ref.id).Fields...)
	}
	return e
}

// missing returns the references in refs whose objects do not exist. The statement selects the ids of missing objects.
func (tx *txn) missing(ctx context.Context, statement string, refs []reference) ([]reference, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	rows := tx.query(ctx, statement, column(refs, func(r *reference) string { return r.id }))
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, wrap("look up references", err)
	}
	missing := make(map[string]bool, len(ids))
	for _, id := range ids {
		missing[id] = true
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r reference) bool { return !missing[r.id] }), nil
}

// column returns one value of each row, as an array for unnest.
func column[R, V any](rows []R, value func(*R) V) []V {
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
	}
	return values
}

// allowanceRow is a row of plan_allowances. Absent fields of the allowance are null.
type allowanceRow struct {
	meter                    string
	amount                   int64
	every, anchor            string
	rolloverMin, rolloverMax *int64
	overagePolicy            *string
	overageCap               *int64
	overageAtEnd             *string
	overflowMeter            *string
	overflowPrice            *int64
	ratioMeter               *string // ratioMeter, ratioUnits and ratioPer are for a price that is no whole number
	ratioUnits, ratioPer     *int64
	perSubject               *int64
	expiresInDays            *int64
	alertAt                  *string // a JSON array, because unnest cannot take arrays of different lengths
	gauge                    bool    // the meter is a gauge: every and anchor have no meaning
}

func rowOf(a *Allowance) allowanceRow {
	r := allowanceRow{
		meter: a.Meter, amount: a.Amount, every: string(a.Every), anchor: string(a.Anchor), perSubject: a.PerSubject,
		expiresInDays: a.ExpiresInDays,
	}
	if a.ofGauge() {
		r.every, r.anchor, r.gauge = string(period.Once), string(period.Calendar), true
	}
	if a.Rollover != nil {
		r.rolloverMin, r.rolloverMax = &a.Rollover.Min, &a.Rollover.Max
	}
	if a.Overage != nil {
		r.overagePolicy, r.overageCap = &a.Overage.Policy, a.Overage.Cap
		r.overageAtEnd = null.IfZero(a.Overage.AtPeriodEnd)
	}
	if a.AlertAt != nil {
		text, _ := json.Marshal(a.AlertAt) // it cannot fail for integers
		r.alertAt = new(string(text))
	}
	switch o := a.Overflow; {
	case o == nil:
	case o.Price.IsWhole():
		r.overflowMeter, r.overflowPrice = &o.Meter, &o.Price.Units
	default:
		r.ratioMeter, r.ratioUnits, r.ratioPer = &o.Meter, &o.Price.Units, &o.Price.Per
	}
	return r
}

func (r *allowanceRow) allowance() Allowance {
	a := Allowance{
		Meter: r.meter, Amount: r.amount, Every: period.Interval(r.every), Anchor: period.AnchorKind(r.anchor), PerSubject: r.perSubject,
		ExpiresInDays: r.expiresInDays,
	}
	if r.gauge {
		a.Every, a.Anchor = "", ""
	}
	if r.rolloverMax != nil {
		a.Rollover = &Rollover{Max: *r.rolloverMax}
		if r.rolloverMin != nil {
			a.Rollover.Min = *r.rolloverMin
		}
	}
	if r.overagePolicy != nil {
		a.Overage = &Overage{Policy: *r.overagePolicy, Cap: r.overageCap}
		if r.overageAtEnd != nil {
			a.Overage.AtPeriodEnd = *r.overageAtEnd
		}
	}
	if r.alertAt != nil {
		_ = json.Unmarshal([]byte(*r.alertAt), &a.AlertAt) // written by to_json from integers
	}
	switch {
	case r.overflowMeter != nil && r.overflowPrice != nil:
		a.Overflow = &Overflow{Meter: *r.overflowMeter, Price: price.Whole(*r.overflowPrice)}
	case r.ratioMeter != nil && r.ratioUnits != nil && r.ratioPer != nil:
		a.Overflow = &Overflow{Meter: *r.ratioMeter, Price: price.Ratio{Units: *r.ratioUnits, Per: *r.ratioPer}}
	}
	return a
}
