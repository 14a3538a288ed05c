package ledger

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Apply says when a new version of a plan takes effect for the tenants that are on the plan.
type Apply string

// Values of Apply. A program before version 1.2 stores no value.
const (
	ApplyOpening    Apply = ""            // for each balance, where its next period opens
	ApplyNextPeriod Apply = "next_period" // at the end of the tenant's billing period, for all balances together
	ApplyNow        Apply = "now"         // when the version is made, for all tenants and balances together
)

// PlanVersion is one immutable version of a plan.
type PlanVersion struct {
	Version    int32
	CreatedAt  time.Time
	Apply      Apply
	Allowances map[string]Allowance // by meter

	// Renewals has the allowances that renew, of all counters. nil: those in Allowances, which has all meters then.
	// They end billing periods.
	Renewals map[string]Renewal
}

// Renewal says when an allowance renews.
type Renewal struct {
	Every  period.Interval
	Anchor period.AnchorKind
}

// renewals returns the allowances that renew, by meter.
func (v *PlanVersion) renewals() map[string]Renewal {
	if v.Renewals != nil {
		return v.Renewals
	}
	renewals := make(map[string]Renewal, len(v.Allowances))
	for meter := range v.Allowances {
		if a := v.Allowances[meter]; a.Every != period.Once {
			renewals[meter] = Renewal{Every: a.Every, Anchor: a.Anchor}
		}
	}
	return renewals
}

// Agreement is what a tenant has from an instant on: its terms, with one version of its plan. Since is the instant at
// which both are in force. AgreedAt is the instant of the terms.
type Agreement struct {
	TenantTerms

	AgreedAt time.Time
	Version  *PlanVersion
}

// Agreements returns the terms of a tenant with the versions of its plans that are in force, oldest first. The newest
// version is in force at each change of the terms. After that, a version takes effect as its Apply says: it waits for
// the end of the billing period that contains its creation. The billing period ends with the latest end among the
// open periods of the longest interval that the plan in force has. If the plan has no interval, a version does not
// wait. Before a plan's first version, the first version applies.
func Agreements(history []TenantTerms, plans map[string][]PlanVersion) []Agreement {
	c := chain{list: make([]Agreement, 0, len(history))}
	for i := range history {
		c.until = period.Forever
		if i+1 < len(history) {
			c.until = history[i+1].Since
		}
		c.segment(&history[i], plans[history[i].Plan])
	}
	return c.list
}

// chain builds the agreements of a tenant. It follows the open period of each meter, because a change of the time zone
// or of the anchor does not move the end of an open period.
type chain struct {
	list  []Agreement
	until time.Time // the instant of the tenant's next terms
	waits []waiting
	open  map[string]openPeriod // by meter; nil: no version of the tenant's plans has waited yet
	known int                   // number of elements of list that open contains
}

// waiting is a version that waits for an instant.
type waiting struct {
	from    time.Time
	version *PlanVersion
}

// openPeriod is the period of a meter that is open. Its boundaries follow a schedule, if it did not begin under an
// earlier one.
type openPeriod struct {
	schedule period.Schedule
	until    time.Time // the end of a period that began under an earlier schedule; zero: none
}

// segment adds the terms h with the versions that are in force until the next terms.
func (c *chain) segment(h *TenantTerms, versions []PlanVersion) {
	if len(versions) == 0 {
		return
	}
	first := 0
	for j := range versions {
		if !versions[j].CreatedAt.After(h.Since) {
			first = j
		}
	}
	c.waits = c.waits[:0]
	c.list = append(c.list, Agreement{TenantTerms: *h, AgreedAt: h.Since, Version: &versions[first]})
	for j := first + 1; j < len(versions) && versions[j].CreatedAt.Before(c.until); j++ {
		v := &versions[j]
		c.advance(v.CreatedAt)
		from := v.CreatedAt
		if v.Apply == ApplyNextPeriod {
			from = c.billingEnd(v.CreatedAt)
		}
		if from.After(v.CreatedAt) {
			c.waits = append(c.waits, waiting{from, v})
			continue
		}
		c.waits = c.waits[:0]
		c.add(v.CreatedAt, v)
	}
	c.advance(c.until)
}

// advance puts the versions into force that wait until an instant before `until`.
func (c *chain) advance(until time.Time) {
	slices.SortStableFunc(c.waits, func(a, b waiting) int { return a.from.Compare(b.from) })
	for len(c.waits) > 0 && c.waits[0].from.Before(until) {
		w := c.waits[0]
		c.waits = c.waits[1:]
		switch newest := &c.list[len(c.list)-1]; {
		case w.version.Version < newest.Version.Version: // a newer one did not wait so long
		case newest.Since.Equal(w.from) && !newest.Since.Equal(newest.AgreedAt):
			newest.Version = w.version
		default:
			c.add(w.from, w.version)
		}
	}
}

// add adds the newest terms of the list with another version.
func (c *chain) add(from time.Time, v *PlanVersion) {
	a := c.list[len(c.list)-1]
	a.Since, a.Version = from, v
	a.Now, a.Prorate, a.Reset, a.Add = v.Apply != ApplyOpening, false, false, false
	c.list = append(c.list, a)
}

// billingEnd returns the end of the billing period that contains the instant just before `at`, or `at` if no interval
// ends it.
func (c *chain) billingEnd(at time.Time) time.Time {
	c.follow()
	before, end := at.Add(-time.Microsecond), at
	var longest period.Interval
	var known period.Schedule // of the newest end that was computed: most meters have the same
	var its time.Time
	for _, o := range c.open {
		every := o.schedule.Every
		switch {
		case longest == "" || every.Longer(longest):
			longest, end = every, at
		case every != longest:
			continue
		}
		if o.until.IsZero() && sameSchedule(&known, &o.schedule) && !its.IsZero() {
			continue
		}
		ends := o.end(before)
		if o.until.IsZero() {
			known, its = o.schedule, ends
		}
		end = period.Later(end, ends)
	}
	return end
}

// follow brings the open periods up to the newest terms of the list.
func (c *chain) follow() {
	for ; c.known < len(c.list); c.known++ {
		a := &c.list[c.known]
		next := map[string]openPeriod{}
		for meter, r := range a.Version.renewals() {
			s := period.Schedule{Every: r.Every, Anchor: r.Anchor, AnchorAt: a.AnchorAt, Location: a.Zone}
			next[meter] = openPeriod{schedule: s}
			before, goesOn := c.open[meter]
			switch {
			case !goesOn || before.schedule.Every != s.Every:
			case sameSchedule(&before.schedule, &s):
				next[meter] = before
			default: // a period that ends at this instant is followed by one of the new schedule
				next[meter] = openPeriod{s, before.end(a.Since.Add(-time.Microsecond))}
			}
		}
		c.open = next
	}
}

// end returns the end of the period that contains an instant. It returns the instant itself if the schedule has no
// such period.
func (o *openPeriod) end(at time.Time) time.Time {
	if at.Before(o.until) {
		return o.until
	}
	p, err := o.schedule.Containing(at)
	if err != nil {
		return at
	}
	return p.End
}

func sameSchedule(a, b *period.Schedule) bool {
	sameZone := a.Location == b.Location ||
		a.Location != nil && b.Location != nil && a.Location.String() == b.Location.String()
	return a.Every == b.Every && a.Anchor == b.Anchor && a.AnchorAt.Equal(b.AnchorAt) && sameZone
}
