package console

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/client"
)

const (
	periodsNext = 12
	entriesHere = 12 // on the tenant's page; the journal's page has all entries
	holdsHere   = 50
	termsHere   = 50

	// atOnce is the maximum number of concurrent API calls for one page. The database pool for reports has three
	// connections.
	atOnce = 3
)

// part is a section of a page: the answer to one call of the API, or the error that the page shows instead.
type part[T any] struct {
	value T
	err   *failure
}

// take returns the answer or the error of an API call as a part.
func take[T any](v *T, err error) part[*T] {
	if err != nil {
		return part[*T]{err: explain(err)}
	}
	return part[*T]{value: v}
}

// tenantView is the data of a tenant's page.
type tenantView struct {
	*client.Tenant

	zone    *time.Location
	units   map[string]string // units by meter
	by      string            // the interval of the chart: hour, day or month
	meter   string            // the meter whose chart, periods and subjects are shown; empty: none
	from    time.Time         // start of the chart
	to      time.Time
	now     time.Time
	balance part[*client.BalanceList]
	usage   part[*client.UsageList]
	users   part[*client.UsageList] // by subject
	periods part[*client.PeriodList]
	holds   part[*client.HoldList]
	entries part[*client.EntryList]
	terms   part[*client.TermsList]
	reached part[*client.EventList]  // the thresholds that were reached
	refused part[*client.DenialList] // the latest refusals
	granted granted

	gaugeMeters []string // the meters of kind gauge, in alphabetical order
}

// unit returns the name of a meter's unit.
func (v *tenantView) unit(meter string) string { return unitOf(v.units, meter) }

// unitOf returns the name of a meter's unit, or "units" if it is not known.
func unitOf(units map[string]string, meter string) string { return cmp.Or(units[meter], "units") }

// readMeters returns the units of all meters, and the meters of kind gauge in alphabetical order.
func (c *call) readMeters() (units map[string]string, gauges []string) {
	units = map[string]string{}
	for m, err := range c.AllMeters(c.ctx, client.ListMetersQuery{Limit: 500}) {
		if err != nil {
			break // the page then uses the word "units"
		}
		units[m.Meter] = m.Unit
		if m.Kind == client.MeterKindGauge {
			gauges = append(gauges, m.Meter)
		}
	}
	return units, gauges
}

// readTenant reads the tenant in the path, and the units of all meters.
func (c *call) readTenant() (*tenantView, error) {
	t, err := c.GetTenant(c.ctx, c.r.PathValue("tenant"))
	if err != nil {
		return nil, err
	}
	v := &tenantView{Tenant: t, zone: zoneOf(t.Timezone), now: c.console.now()}
	v.units, v.gaugeMeters = c.readMeters()
	return v, nil
}

// ofTenant returns a function that reads the tenant in the path, and shows a page with the function `show`.
func ofTenant(show func(*call, *tenantView) error) func(*call) error {
	return func(c *call) error {
		v, err := c.readTenant()
		if err != nil {
			return err
		}
		return show(c, v)
	}
}

// readBalances reads the tenant's balances, and chooses the meter that the page shows.
func (v *tenantView) readBalances(c *call) {
	v.balance = take(c.ListBalances(c.ctx, v.Tenant.Tenant, client.ListBalancesQuery{}))
	v.meter = c.r.URL.Query().Get("meter")
	if v.balance.err != nil {
		return
	}
	items := v.balance.value.Items
	if !slices.ContainsFunc(items, func(b client.Balance) bool { return b.Meter == v.meter }) {
		v.meter = ""
		if len(items) > 0 {
			v.meter = items[0].Meter
		}
	}
	if len(items) > 0 {
		v.now = items[0].AsOf // the ledger's time, which a test clock may have moved
	}
	v.chooseSteps(c.r.URL.Query().Get("by"))
}

// termsRead is the maximum number of terms that a page reads. The API lists the oldest terms first.
const termsRead = 2000

// readTerms reads the tenant's terms, and sorts them from the newest to the oldest.
func (v *tenantView) readTerms(c *call) {
	list := &client.TermsList{}
	for t, err := range c.AllTerms(c.ctx, v.Tenant.Tenant, client.ListTermsQuery{Limit: 500}) {
		if err != nil {
			v.terms.err = explain(err)
			return
		}
		if list.Items = append(list.Items, t); len(list.Items) == termsRead {
			break
		}
	}
	slices.Reverse(list.Items)
	v.terms.value = list
}

// showTenant shows the page of a tenant.
func showTenant(c *call, v *tenantView) error {
	v.readBalances(c)
	id := v.Tenant.Tenant
	var g errgroup.Group
	g.SetLimit(atOnce)
	ask := func(question func()) { g.Go(func() error { question(); return nil }) }
	ask(func() {
		v.entries = take(c.ListEntries(c.ctx, id, client.ListEntriesQuery{Meter: v.meter, Order: "desc", Limit: entriesHere}))
	})
	if v.meter != "" {
		ask(func() {
			v.usage = take(c.ListUsage(c.ctx, id, client.ListUsageQuery{Meter: v.meter, From: v.from, To: v.to, By: v.by, Timezone: v.Timezone}))
		})
		ask(func() {
			v.users = take(c.ListUsage(c.ctx, id, client.ListUsageQuery{Meter: v.meter, From: v.from, To: v.to, By: "month", GroupBy: "subject", Timezone: v.Timezone}))
		})
		ask(func() {
			v.periods = take(c.ListPeriods(c.ctx, id, client.ListPeriodsQuery{Meter: v.meter, Next: periodsNext}))
		})
	}
	ask(func() {
		v.holds = take(c.ListHolds(c.ctx, id, client.ListHoldsQuery{Status: string(client.HoldStatusActive), Limit: holdsHere}))
	})
	ask(func() { v.readReached(c) })
	ask(func() { v.refused = take(c.ListDenials(c.ctx, id, client.ListDenialsQuery{Limit: refusalsHere})) })
	ask(func() { v.readGranted(c) })
	ask(func() { v.readTerms(c) })
	if err := g.Wait(); err != nil {
		return err
	}
	v.readCaps(c) // readCaps needs the subjects, which are known only now
	return c.render(http.StatusOK, tenantPage(c, v))
}

// showBalances sends the section of a tenant's page with the balances. An open page requests this section again and
// again.
func showBalances(c *call, v *tenantView) error {
	v.readBalances(c)
	return c.render(http.StatusOK, meters(c, v))
}

// stripe is one coloured segment of a bar. from and width are percentages of the bar's width.
type stripe struct {
	class       string
	from, width string
}

// stripes returns the segments of a balance's bar: used, held and remaining units, and overage.
func stripes(b *client.Balance) []stripe {
	whole := float64(b.Used) + float64(b.Held) + float64(b.Remaining) + float64(b.Overage)
	if whole <= 0 {
		return nil
	}
	var out []stripe
	at := 0.0
	for _, s := range []struct {
		class  string
		amount int64
	}{{"used", b.Used}, {"held", b.Held}, {"left", b.Remaining}, {"over", b.Overage}} {
		if s.amount <= 0 {
			continue
		}
		width := float64(s.amount) / whole * 100
		out = append(out, stripe{s.class, percent(at), percent(width)})
		at += width
	}
	return out
}

// grantStripes returns the segments of a bar that shows a balance's grants in burn order. Only grants with remaining
// units have a segment.
func grantStripes(b *client.Balance) []stripe {
	var whole, at float64
	for i := range b.Grants {
		whole += float64(b.Grants[i].Remaining)
	}
	if whole <= 0 {
		return nil
	}
	var out []stripe
	for i := range b.Grants {
		if width := float64(b.Grants[i].Remaining) / whole * 100; width > 0 {
			out = append(out, stripe{"grant g" + string(rune('0'+i%6)), percent(at), percent(width)})
			at += width
		}
	}
	return out
}

// percent returns a percentage as a CSS length.
func percent(p float64) string { return formatFloat(math.Round(p*100)/100) + "%" }

// usedPercent returns the used share of a balance in percent, rounded down.
func usedPercent(b *client.Balance) int {
	whole := b.Used + b.Held + b.Remaining
	if whole <= 0 {
		return 0
	}
	return int(math.Floor(float64(b.Used) / float64(whole) * 100))
}

// share returns the used share of a balance in percent as text. It is rounded down, so 100 means that no unit
// remains.
func share(b *client.Balance) string {
	if b.Used+b.Held+b.Remaining <= 0 {
		return ""
	}
	return num(int64(usedPercent(b))) + " %"
}

// cardsMax is the maximum number of meters that the page shows as cards. If a tenant has more meters, the page shows
// a table.
const cardsMax = 12

// subjects returns the first results of everySubject, at most subjectsHere.
func (v *tenantView) subjects() []client.Usage {
	list := v.everySubject()
	return list[:min(len(list), subjectsHere)]
}

// everySubject returns the use of each subject in the time of the chart, the largest use first.
func (v *tenantView) everySubject() []client.Usage {
	if v.users.value == nil {
		return nil
	}
	sums := map[string]client.Usage{}
	for _, u := range v.users.value.Items {
		who := u.Group["subject"]
		sum := sums[who]
		sum.Used, sum.Overflow, sum.Refunded = sum.Used+u.Used, sum.Overflow+u.Overflow, sum.Refunded+u.Refunded
		sum.Operations += u.Operations
		sum.Group = map[string]string{"subject": who}
		sums[who] = sum
	}
	list := make([]client.Usage, 0, len(sums))
	for _, sum := range sums {
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b client.Usage) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Group["subject"], b.Group["subject"]))
	})
	return list
}

// subjectsHere is the maximum number of subjects on the page.
const subjectsHere = 20
