package portal

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access/link"
)

const (
	chartDays = 31 // the days of a month

	// atOnce is the maximum number of concurrent API calls for one page. The database pool for reports has three
	// connections.
	atOnce = 3
)

// overview is the data of the portal's first page.
type overview struct {
	*client.Tenant

	zone     *time.Location
	units    map[string]string // units by meter
	meter    string            // the meter whose chart is shown; empty: none
	from, to time.Time         // time range of the chart
	balances []client.Balance
	failed   struct{ balances, usage, limits bool }
	usage    []client.Usage
	limits   []limitRow
}

// path returns the path of a page that belongs to the link.
func (v *visit) path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return link.Prefix + url.PathEscape(v.r.PathValue("link")) + "/" + strings.Join(segments, "/")
}

// of returns the path of the first page. At this path, the page shows the chart of the meter.
func (v *visit) of(meter string) string { return v.path() + "?meter=" + url.QueryEscape(meter) }

// read reads the tenant and the units of the meters.
func (v *visit) read() (*overview, error) {
	t, err := v.GetTenant(v.r.Context(), v.link.Tenant)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(t.Timezone)
	if err != nil {
		zone = time.UTC
	}
	o := &overview{Tenant: t, zone: zone, units: map[string]string{}, to: v.portal.now().In(zone)}
	for m, err := range v.AllMeters(v.r.Context(), client.ListMetersQuery{Limit: 500}) {
		if err != nil {
			break // the page then shows amounts without a unit
		}
		o.units[m.Meter] = m.Unit
	}
	return o, nil
}

// readBalances reads the tenant's balances, and chooses the meter of the chart.
func (o *overview) readBalances(v *visit) {
	list, err := v.ListBalances(v.r.Context(), v.link.Tenant, client.ListBalancesQuery{})
	if err != nil {
		o.failed.balances = true
		return
	}
	o.balances = list.Items
	wanted := v.r.URL.Query().Get("meter")
	if at := slices.IndexFunc(o.balances, func(b client.Balance) bool { return b.Meter == wanted }); at >= 0 {
		o.meter = wanted
	} else if len(o.balances) > 0 {
		o.meter = o.balances[0].Meter
	}
	if len(o.balances) > 0 {
		o.to = o.balances[0].AsOf.In(o.zone) // the ledger's time
	}
	o.from = time.Date(o.to.Year(), o.to.Month(), o.to.Day()-chartDays+1, 0, 0, 0, 0, o.zone)
}

// showOverview shows the first page, with the tenant's units and use.
func showOverview(v *visit, o *overview) error {
	o.readBalances(v)
	var g errgroup.Group
	g.SetLimit(atOnce)
	if o.meter != "" {
		g.Go(func() error {
			list, err := v.ListUsage(v.r.Context(), v.link.Tenant, client.ListUsageQuery{Meter: o.meter, From: o.from, To: o.to, By: "day", Timezone: o.Timezone})
			if o.failed.usage = err != nil; err == nil {
				o.usage = list.Items
			}
			return nil
		})
	}
	g.Go(func() error { o.readLimits(v); return nil })
	if err := g.Wait(); err != nil {
		return err
	}
	return v.render(http.StatusOK, overviewPage(v, o))
}

// showMeters sends the section with the bars of the balances. An open page requests this section again and again.
func showMeters(v *visit, o *overview) error {
	o.readBalances(v)
	return v.render(http.StatusOK, meters(v, o))
}

// unit returns the name of a meter's unit.
func (o *overview) unit(meter string) string { return o.units[meter] }

// stripe is one coloured segment of a bar. from and width are percentages of the bar's width.
type stripe struct{ class, from, width string }

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
		if s.amount > 0 {
			width := float64(s.amount) / whole * 100
			out = append(out, stripe{s.class, percent(at), percent(width)})
			at += width
		}
	}
	return out
}

// percent returns a percentage as a CSS length.
func percent(p float64) string {
	return strconv.FormatFloat(math.Round(p*100)/100, 'f', -1, 64) + "%"
}

// share returns the used share of a balance in percent as text. It is rounded down, so 100 means that no unit
// remains. It returns the empty string if the balance has no units.
func (v *visit) share(b *client.Balance) string {
	whole := b.Used + b.Held + b.Remaining
	if whole <= 0 {
		return ""
	}
	return v.say("share", "share", strconv.Itoa(int(math.Floor(float64(b.Used)/float64(whole)*100))))
}

// barText describes a balance's bar in words, for people who cannot see it.
func (v *visit) barText(o *overview, b *client.Balance) string {
	key := "bar"
	if b.Overage > 0 {
		key = "bar.over"
	}
	n := v.lang.number
	return v.say(key, "meter", b.Meter, "unit", o.unit(b.Meter), "used", n(b.Used), "held", n(b.Held), "left", n(b.Remaining), "over", n(b.Overage))
}

// resetText returns a text that says when the next period begins.
func (v *visit) resetText(o *overview, b *client.Balance) string {
	if b.Period.End == nil {
		return v.say("reset.none")
	}
	wait := b.Period.End.Sub(b.AsOf)
	until := v.lang.count("reset.days", int64(math.Round(wait.Hours()/24)))
	if wait < 24*time.Hour {
		until = v.lang.count("reset.hours", max(1, int64(wait.Hours())))
	}
	return v.say("reset", "at", v.lang.moment(b.Period.End.In(o.zone))) + " (" + until + ")"
}

// source is a line of the page: the number of remaining units that have the same source and the same end.
type source struct {
	name string
	left int64
	ends *time.Time
}

// sources returns the remaining units of a balance by their source and end, in burn order. Grants with the same
// source and end are one line, because the pages do not show grants one by one.
func sources(b *client.Balance) []source {
	var out []source
	for i := range b.Grants {
		g := &b.Grants[i]
		if g.Remaining <= 0 {
			continue
		}
		same := func(s source) bool {
			return s.name == string(g.Source) && (s.ends == nil) == (g.ExpiresAt == nil) && (s.ends == nil || s.ends.Equal(*g.ExpiresAt))
		}
		if at := slices.IndexFunc(out, same); at >= 0 {
			out[at].left += g.Remaining
			continue
		}
		out = append(out, source{string(g.Source), g.Remaining, g.ExpiresAt})
	}
	return out
}

// sourceText returns a text that says from which kind of grant the units come.
func (v *visit) sourceText(name string) string {
	switch client.Source(name) {
	case client.SourceAllowance, client.SourceTopup, client.SourcePromo, client.SourceRollover, client.SourceAdjustment, client.SourceRefund:
		return v.say("source." + name)
	default:
		return v.say("source.other")
	}
}

// day is the use of one day.
type day struct {
	at         time.Time
	used, over int64
}

// days returns the use of each day of the chart, including days without use.
func (o *overview) days() []day {
	found := map[int64]client.Usage{}
	for _, u := range o.usage {
		found[u.Start.Unix()] = u
	}
	var out []day
	for at := o.from; at.Before(o.to); at = time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, o.zone) {
		u := found[at.Unix()]
		out = append(out, day{at, u.Used, u.Overage})
	}
	return out
}

// The size of the chart's drawing area (its SVG viewBox). On the page, the chart is as wide as the page allows.
const (
	chartWidth  = 620.0
	chartHeight = 160.0
)

// column is a bar of the chart.
type column struct {
	class               string
	x, y, width, height string
	title               string
}

// columns returns the bars of the chart, and the largest use of one day.
func (o *overview) columns(v *visit) (list []column, most int64) {
	days := o.days()
	for _, d := range days {
		most = max(most, d.used+d.over)
	}
	if most == 0 {
		return nil, 0
	}
	number := func(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }
	slot := chartWidth / float64(len(days))
	for i, d := range days {
		title := v.lang.day(d.at) + ": " + v.lang.number(d.used+d.over) + " " + o.unit(o.meter)
		top := chartHeight
		for _, s := range []struct {
			class  string
			amount int64
		}{{"used", d.used}, {"over", d.over}} {
			if s.amount <= 0 {
				continue
			}
			height := max(1, float64(s.amount)/float64(most)*chartHeight)
			top -= height
			list = append(list, column{s.class, number(float64(i)*slot + slot*0.15), number(top), number(slot * 0.7), number(height), title})
		}
	}
	return list, most
}

// mostText describes the chart in words, for people who cannot see it.
func (v *visit) mostText(o *overview, most int64) string {
	return v.say("use.chart", "meter", o.meter, "n", strconv.Itoa(len(o.days())), "most", v.lang.number(most), "unit", o.unit(o.meter))
}

// endText returns a text that says until when units can be used.
func (v *visit) endText(o *overview, at *time.Time) string {
	if at == nil {
		return v.say("grant.never")
	}
	return v.lang.moment(at.In(o.zone))
}

// heading returns the operator's name for the heading of the pages. If no name is configured, it returns a general
// title.
func (v *visit) heading() string { return cmp.Or(v.portal.cfg.Look.Name, v.say("title")) }
