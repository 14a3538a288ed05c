package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// countedTenants bounds the tenants that a warning counts: few milliseconds of an index. Nobody decides otherwise for 20,000 than for 10,000.
const countedTenants = 10_000

// reduction is a meter of which a new version of a plan gives less.
type reduction struct {
	meter         string
	before, after *Allowance // after is nil: the new version lacks the meter
}

// reductions returns the meters of which after gives less than before, in the order of before. An override replaces the amount of an allowance, and
// nothing else of it; so it does not help where the meter is gone or comes more rarely.
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

// givesLess reports whether a grants less in the long run than b. Months have a twelfth of a year, and a year has 365.25 days. An allowance that
// is granted once gives less than any that comes again.
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

// minutes is the length of each interval; 0 for those that have none.
var minutes = map[period.Interval]uint64{
	period.Hour: 60, period.Day: 1440, period.Week: 10_080, period.Month: 43_830, period.Year: 525_960,
}

// warnings says of which meters and features tenants get less by the change of a plan, and how many tenants. Those with an amount of their own are not
// counted where only the amount fell, nor those with a value of their own of a feature.
func (tx *txn) warnings(ctx context.Context, before, after *Plan) (out []string, err error) {
	warn := func(statement, what, how string, args ...any) {
		var n int
		if err == nil {
			err = wrap("count tenants of plan "+after.ID, tx.queryRow(ctx, statement, append([]any{after.ID, countedTenants + 1}, args...)...).Scan(&n))
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("plan %s: %s %s %s", after.ID, what, how, tenantsText(n)))
		}
	}
	for _, f := range reductions(before, after) {
		warn("CountTenantsOfPlan", f.meter, f.how()+" for", f.meter, f.after != nil && f.after.Every == f.before.Every)
	}
	if before == nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(before.Features)) {
		if how := before.Features[name].ReductionTo(after.Features[name]); how != "" {
			warn("CountTenantsOfPlanWithoutFeature", "feature "+name, how, name)
		}
	}
	return out, err
}

// how says in words what becomes of the meter.
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
