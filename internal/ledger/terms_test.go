package ledger

import (
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// What applies now ends the periods that it is about. The others were opened under the same terms: to end them would give their
// allowance twice.
func TestAChangeNowEndsOnlyPeriodsThatWereOpenedUnderOtherTerms(t *testing.T) {
	t.Parallel()
	berlin, err := period.ParseZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	signUp := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return signUp.AddDate(0, 0, n) }
	monthly := func(anchor period.AnchorKind) allowance {
		return allowance{amount: 10, every: period.Month, anchor: anchor, perSubject: new(int64(3))}
	}
	first := map[string]allowance{
		"calls": monthly(period.Calendar), "jobs": monthly(period.Tenant), "trial": {amount: 5, every: period.Once, anchor: period.Calendar},
	}
	dearer := map[string]allowance{"calls": monthly(period.Calendar), "jobs": first["jobs"], "trial": first["trial"]}
	capped := monthly(period.Calendar)
	capped.perSubject, capped.overageCap = new(int64(4)), new(int64(1))
	dearer["calls"] = capped
	plans := map[string][]planVersion{
		"p": {{version: 1, createdAt: day(-9), allowances: first}, {version: 2, createdAt: day(3), allowances: dearer}},
		"q": {{version: 1, createdAt: day(-9), allowances: first}},
	}
	row := func(at int, plan string, now bool, overrides map[string]int64) tenantTerms {
		return tenantTerms{since: day(at), plan: plan, anchorAt: signUp, zone: time.UTC, now: now, overrides: overrides}
	}
	own := map[string]int64{"calls": 99}
	moved, abroad := row(5, "p", true, nil), row(2, "p", true, nil)
	moved.since, moved.anchorAt, abroad.zone = day(2), day(1), berlin
	keys := []key{{"acme", "calls", ""}, {"acme", "calls", "ann"}, {"acme", "jobs", ""}, {"acme", "trial", ""}, {"acme", "none", ""}}
	for name, c := range map[string]struct {
		changes []tenantTerms
		ends    [5]int // for each key, the day on which its first period ends before its time; 0 = it does not
	}{
		"the same again":                     {[]tenantTerms{row(2, "p", true, nil)}, [5]int{}},
		"another plan with the same amounts": {[]tenantTerms{row(2, "q", true, nil)}, [5]int{2, 2, 2, 2, 0}},
		"another plan later":                 {[]tenantTerms{row(2, "q", false, nil)}, [5]int{0, 0, 0, 2, 0}},
		"there and back":                     {[]tenantTerms{row(1, "q", true, nil), row(2, "p", true, nil)}, [5]int{1, 1, 1, 1, 0}},
		"an override":                        {[]tenantTerms{row(2, "p", true, own)}, [5]int{2, 0, 0, 0, 0}},
		"an override later":                  {[]tenantTerms{row(2, "p", false, own)}, [5]int{}},
		"an override that waited":            {[]tenantTerms{row(1, "p", false, own), row(2, "p", true, own)}, [5]int{2, 0, 0, 0, 0}},
		"an override of what it is":          {[]tenantTerms{row(2, "p", true, map[string]int64{"calls": 10})}, [5]int{}},
		"a newer version that waited":        {[]tenantTerms{row(4, "p", true, nil)}, [5]int{4, 4, 0, 0, 0}},
		"another anchor":                     {[]tenantTerms{moved}, [5]int{0, 0, 2, 0, 0}},
		"another zone":                       {[]tenantTerms{abroad}, [5]int{2, 2, 2, 0, 0}},
	} {
		history := append([]tenantTerms{row(0, "p", false, nil)}, c.changes...)
		for i, k := range keys {
			b := &book{balance: balance{key: k}, timeline: newTimeline(k, history, plans)}
			opened := b.timeline.at(time.Time{})
			p, err := opened.containing(opened.since)
			if err != nil {
				t.Fatal(err)
			}
			var j journal
			b.open(opened, p, opened.since, &j, signUp)
			at, ends := b.timeline.endsPeriod(&b.balance)
			if want := c.ends[i]; ends != (want > 0) || ends && !at.Equal(day(want)) {
				t.Errorf("%s, %v: ends %v at %s, want day %d", name, k, ends, at, want)
			}
		}
	}
}
