package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// countedTenants is the largest number of tenants that a warning counts. The count is an index scan of a few
// milliseconds. The difference between 10,000 and 20,000 tenants changes no decision.
const countedTenants = 10_000

// reduction describes a meter of which the new version of a plan grants less.
type reduction struct {
	meter         string
	before, after *Allowance // after is nil if the new version lacks the meter
}

// reductions returns the meters of which the plan `after` grants less than the plan `before`, in the order of the
// plan `before`. A tenant's override replaces only the amount of an allowance. So the override does not help if the
// plan loses the meter or grants it less often.
func reductions(before, after *Plan) []reduction {
	if before == nil {
		return nil
	}
	now := make(map[string]*Allowance, len(after.Allowances))
	for i := range after.Allowances {
		now[after.Allowances[i].Meter] = &after.Allowances[i]
	}
	var out []reduction
	for i := range before.Allowances {
		old := &before.Allowances[i]
		if a := now[old.Meter]; a == nil || a.givesLess(old) {
			out = append(out, reduction{old.Meter, old, a})
		}
	}
	return out
}

// givesLess reports whether a grants less per year than b. A month counts as a twelfth of a year, and a year has
// 365.25 days. An allowance that is granted once is less than any allowance that repeats.
func (a *Allowance) givesLess(b *Allowance) bool {
	if a.Every == b.Every {
		return a.Amount < b.Amount
	}
	mine, others := minutes[a.Every], minutes[b.Every]
	if mine == 0 || others == 0 {
		return mine == 0 && b.Amount > 0
	}
	hi, lo := bits.Mul64(uint64(a.Amount), others) //nolint:gosec // amounts are 0 or more
	hi2, lo2 := bits.Mul64(uint64(b.Amount), mine) //nolint:gosec // amounts are 0 or more
	return cmp.Or(cmp.Compare(hi, hi2), cmp.Compare(lo, lo2)) < 0
}

// minutes contains the length of each interval in minutes. Intervals without a length, such as once, are absent.
var minutes = map[period.Interval]uint64{
	period.Hour: 60, period.Day: 1440, period.Week: 10_080, period.Month: 43_830, period.Year: 525_960,
}

// warnings returns a sentence for each meter and feature of which the new version of a plan gives tenants less than the
// newest version before, or than an older version that may be in force for some of them. The sentence says how many
// tenants get less: at most so many if older versions may be in force. If only an amount or a feature is reduced, tenants
// that override it are not counted.
func (tx *txn) warnings(ctx context.Context, before *Plan, older []Plan, after *Plan) (out []string, err error) {
	if before == nil {
		return nil, nil
	}
	upTo := ""
	if len(older) > 0 {
		upTo = "up to "
	}
	warn := func(statement, what, how string, args ...any) {
		var n int
		if err == nil {
			err = wrap("count tenants of plan "+after.ID, tx.queryRow(ctx, statement, append([]any{after.ID, countedTenants + 1}, args...)...).Scan(&n))
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("plan %s: %s %s %s%s", after.ID, what, how, upTo, tenantsText(n)))
		}
	}
	lost, features := reductions(before, after), feature.Set{}
	maps.Copy(features, before.Features)
	for i := range older {
		for _, f := range reductions(&older[i], after) {
			at := slices.IndexFunc(lost, func(o reduction) bool { return o.meter == f.meter })
			switch {
			case at < 0:
				lost = append(lost, f)
			case lost[at].before.givesLess(f.before):
				lost[at] = f
			}
		}
		for name, value := range older[i].Features {
			if value.ReductionTo(features[name]) != "" {
				features[name] = value
			}
		}
	}
	for _, f := range lost {
		warn("CountTenantsOfPlan", f.meter, f.how()+" for", f.meter, f.after != nil && f.after.Every == f.before.Every)
	}
	for _, name := range slices.Sorted(maps.Keys(features)) {
		if how := features[name].ReductionTo(after.Features[name]); how != "" {
			warn("CountTenantsOfPlanWithoutFeature", "feature "+name, how, name)
		}
	}
	return out, err
}

// olderPlans returns the older versions of plans that may be in force for some tenants, by plan.
func (tx *txn) olderPlans(ctx context.Context) (map[string][]Plan, error) {
	list, err := tx.wholePlans(ctx, "SelectOlderPlans", tx.store.db.Now())
	older := map[string][]Plan{}
	for i := range list {
		older[list[i].ID] = append(older[list[i].ID], list[i])
	}
	return older, err
}

// how returns the second half of a warning: how the allowance of the meter changes.
func (f *reduction) how() string {
	if f.after == nil {
		return fmt.Sprintf("is taken away (it was %s)", f.before.inWords())
	}
	return fmt.Sprintf("falls from %s to %s", f.before.inWords(), f.after.inWords())
}

func (a *Allowance) inWords() string {
	if a.ofGauge() {
		return fmt.Sprint(a.Amount)
	}
	if a.Every == period.Once {
		return fmt.Sprintf("%d once", a.Amount)
	}
	return fmt.Sprintf("%d a %s", a.Amount, a.Every)
}

func tenantsText(n int) string {
	switch {
	case n > countedTenants:
		return fmt.Sprintf("more than %d tenants", countedTenants)
	case n == 1:
		return "1 tenant"
	default:
		return fmt.Sprintf("%d tenants", n)
	}
}
