package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

const (
	chartHours  = 48 // two days of use
	chartDays   = 31 // a month
	chartMonths = 13 // a year and one month, to compare with the year before

	// marksMax is the maximum number of reached thresholds that a chart reads. The number is enough for a month in
	// which five meters with a daily period reach two thresholds each day.
	marksMax = 500
)

// interval is an hour, a day or a month of the chart, with the use in that time.
type interval struct {
	label string // name of the interval, in the tenant's zone
	short string // short name, for the chart's axis
	start time.Time
	use   client.Usage
	marks []string // events in this interval
}

// lengths returns the lengths that the chart's intervals may have.
func lengths() []string { return []string{"hour", "day", "month"} }

// chooseSteps sets the length of the chart's intervals, and the start and the end of the chart. The chart ends now.
// If the argument `by` is not a known length, the length is a day.
func (v *tenantView) chooseSteps(by string) {
	if v.by = by; !slices.Contains(lengths(), by) {
		v.by = "day"
	}
	local := v.now.In(v.zone)
	switch v.to = v.now; v.by {
	case "hour":
		v.from = local.Truncate(time.Hour).Add(-(chartHours - 1) * time.Hour)
	case "month":
		v.from = time.Date(local.Year(), local.Month()-chartMonths+1, 1, 0, 0, 0, 0, v.zone)
	default:
		v.from = time.Date(local.Year(), local.Month(), local.Day()-chartDays+1, 0, 0, 0, 0, v.zone)
	}
}

// after returns the start of the next interval. The given instant is the start of an interval.
func (v *tenantView) after(start time.Time) time.Time {
	switch v.by {
	case "hour":
		return start.Add(time.Hour)
	case "month":
		return time.Date(start.Year(), start.Month()+1, 1, 0, 0, 0, 0, v.zone)
	default:
		return time.Date(start.Year(), start.Month(), start.Day()+1, 0, 0, 0, 0, v.zone)
	}
}

// names returns the names of the interval that begins at start: one for tables, and a short one for the chart's axis.
func (v *tenantView) names(start time.Time) (label, short string) {
	switch local := start.In(v.zone); v.by {
	case "hour":
		return local.Format("2006-01-02 15:04"), local.Format("15:04")
	case "month":
		return local.Format("2006-01"), local.Format("2006-01")
	default:
		return local.Format("2006-01-02"), local.Format("01-02")
	}
}

// intervals returns all intervals of the chart with their use, which may be 0, and with their events.
func (v *tenantView) intervals() []interval {
	if v.usage.value == nil {
		return nil
	}
	var out []interval
	for start := v.from; start.Before(v.to); start = v.after(start) {
		s := interval{start: start}
		s.label, s.short = v.names(start)
		out = append(out, s)
	}
	at := func(t time.Time) *interval {
		for i := range slices.Backward(out) {
			if !t.Before(out[i].start) {
				return &out[i]
			}
		}
		return nil
	}
	for _, u := range v.usage.value.Items {
		if s := at(u.Start); s != nil {
			s.use.Used, s.use.Overage, s.use.Overflow = s.use.Used+u.Used, s.use.Overage+u.Overage, s.use.Overflow+u.Overflow
			s.use.Refunded, s.use.Operations = s.use.Refunded+u.Refunded, s.use.Operations+u.Operations
		}
	}
	mark := func(t time.Time, text string) {
		if s := at(t); s != nil && !t.After(v.to) && !slices.Contains(s.marks, text) {
			s.marks = append(s.marks, text)
		}
	}
	for _, m := range v.planChanges() {
		mark(m.at, m.text)
	}
	if v.reached.value != nil {
		for i := range v.reached.value.Items {
			if e := &v.reached.value.Items[i]; e.Meter == v.meter && e.Subject == "" {
				mark(e.At, fmt.Sprintf("%v %% reached", members(e.Data)["threshold"]))
			}
		}
	}
	return out
}

// happening is an event that the chart marks.
type happening struct {
	at   time.Time
	text string
}

// planChanges returns the instants at which the tenant changed to another plan.
func (v *tenantView) planChanges() (out []happening) {
	if v.terms.value == nil {
		return nil
	}
	list := v.terms.value.Items // newest first
	for i := range list {
		if i+1 < len(list) && list[i].Plan != list[i+1].Plan {
			out = append(out, happening{list[i].EffectiveAt, "plan " + list[i].Plan})
		}
	}
	return out
}

// readReached reads the events about thresholds that were reached in the time of the chart.
func (v *tenantView) readReached(c *call) {
	v.reached = take(c.ListEvents(c.ctx, client.ListEventsQuery{
		Tenant: v.Tenant.Tenant, Type: string(client.EventTypeBalanceThresholdReached), After: eventAt(v.from), Limit: marksMax,
	}))
}

// eventAt returns the id that an event at this instant would have. Ids begin with the time in microseconds, so their
// order is the order of time.
func eventAt(t time.Time) string { return fmt.Sprintf("evt_%016d", max(t.UnixMicro(), 0)) }

// marked returns the events of an interval as one text.
func (s *interval) marked() string { return strings.Join(s.marks, ", ") }
