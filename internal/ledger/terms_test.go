package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// A change that applies at once ends only the periods whose terms it changes. If it ended another period, the
// allowance of that period would be granted twice.
func TestTimeline_ChangeNow_EndsOnlyPeriodsOfOtherTerms(t *testing.T) {
	t.Parallel()
	berlin, err := period.ParseZone("Europe/Berlin")
	require.NoError(t, err)
	signUp := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return signUp.AddDate(0, 0, n) }
	monthly := func(anchor period.AnchorKind) Allowance {
		return Allowance{Amount: 10, Every: period.Month, Anchor: anchor, PerSubject: new(int64(3))}
	}
	first := map[string]Allowance{
		"calls": monthly(period.Calendar), "jobs": monthly(period.Tenant), "trial": {Amount: 5, Every: period.Once, Anchor: period.Calendar},
	}
	dearer := map[string]Allowance{"calls": monthly(period.Calendar), "jobs": first["jobs"], "trial": first["trial"]}
	capped := monthly(period.Calendar)
	capped.PerSubject, capped.OverageCap = new(int64(4)), new(int64(1))
	dearer["calls"] = capped
	plans := map[string][]PlanVersion{
		"p": {{Version: 1, CreatedAt: day(-9), Allowances: first}, {Version: 2, CreatedAt: day(3), Allowances: dearer}},
		"q": {{Version: 1, CreatedAt: day(-9), Allowances: first}},
	}
	row := func(at int, plan string, now bool, overrides map[string]int64) TenantTerms {
		return TenantTerms{Since: day(at), Plan: plan, AnchorAt: signUp, Zone: time.UTC, Now: now, Overrides: overrides}
	}
	own := map[string]int64{"calls": 99}
	moved, abroad := row(5, "p", true, nil), row(2, "p", true, nil)
	moved.Since, moved.AnchorAt, abroad.Zone = day(2), day(1), berlin
	keys := []BalanceKey{{"acme", "calls", ""}, {"acme", "calls", "ann"}, {"acme", "jobs", ""}, {"acme", "trial", ""}, {"acme", "none", ""}}
	for name, c := range map[string]struct {
		changes []TenantTerms
		ends    [5]int // for each key, the day on which terms end its first period early, or 0
	}{
		"the same again":                     {[]TenantTerms{row(2, "p", true, nil)}, [5]int{}},
		"another plan with the same amounts": {[]TenantTerms{row(2, "q", true, nil)}, [5]int{2, 2, 2, 2, 0}},
		"another plan later":                 {[]TenantTerms{row(2, "q", false, nil)}, [5]int{0, 0, 0, 2, 0}},
		"there and back":                     {[]TenantTerms{row(1, "q", true, nil), row(2, "p", true, nil)}, [5]int{1, 1, 1, 1, 0}},
		"an override":                        {[]TenantTerms{row(2, "p", true, own)}, [5]int{2, 0, 0, 0, 0}},
		"an override later":                  {[]TenantTerms{row(2, "p", false, own)}, [5]int{}},
		"an override that waited":            {[]TenantTerms{row(1, "p", false, own), row(2, "p", true, own)}, [5]int{2, 0, 0, 0, 0}},
		"an override of what it is":          {[]TenantTerms{row(2, "p", true, map[string]int64{"calls": 10})}, [5]int{}},
		"a newer version that waited":        {[]TenantTerms{row(4, "p", true, nil)}, [5]int{4, 4, 0, 0, 0}},
		"another anchor":                     {[]TenantTerms{moved}, [5]int{0, 0, 2, 0, 0}},
		"another zone":                       {[]TenantTerms{abroad}, [5]int{2, 2, 2, 0, 0}},
	} {
		history := append([]TenantTerms{row(0, "p", false, nil)}, c.changes...)
		for i, k := range keys {
			b := &Book{BalanceRow: BalanceRow{BalanceKey: k}, Timeline: NewTimeline(k, history, plans)}
			opened := b.Timeline.At(time.Time{})
			p, err := opened.Containing(opened.since)
			require.NoError(t, err)
			var j []Entry
			b.open(&opening{terms: opened, period: p}, opened.since, &j, signUp)
			at, ends := b.Timeline.endsPeriod(&b.BalanceRow)
			if want := c.ends[i]; ends != (want > 0) || ends && !at.Equal(day(want)) {
				t.Errorf("%s, %v: ends %v at %s, want day %d", name, k, ends, at, want)
			}
		}
	}
}
