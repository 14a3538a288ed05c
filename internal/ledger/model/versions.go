package model

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// How a new version of a plan takes effect for the tenants on the plan.
const (
	whenOpening = ""            // a program of before made it: each balance gets it with its next period
	whenBilled  = "next_period" // all balances get it where the billing period ends
	whenMade    = "now"         // all balances get it at once
)

// inForce is what the tenant has from an instant on.
type inForce struct {
	at      time.Time
	change  *PlanChange
	version *planVersion
	agreed  bool // a change of the tenant's terms, not only another version of its plan
	acts    bool // it acts on open periods
}

// timeline keeps what was computed for a number of changes and versions.
type timeline struct {
	changes, versions int
	list              []inForce
}

// billing steps through all instants at which something may come into force, with the ends of the open periods.
type billing struct {
	m     *Model
	at    time.Time
	list  []inForce
	open  map[string]openMeter
	waits []waitingVersion
}

type openMeter struct {
	day bool
	end time.Time
}

type waitingVersion struct {
	until   time.Time
	version *planVersion
}

// timeline returns what the tenant has, from its sign-up on.
func (m *Model) timeline() []inForce {
	versions := 0
	for _, v := range m.plans {
		versions += len(v)
	}
	if t := m.known; t != nil && t.changes == len(m.Changes) && t.versions == versions {
		return t.list
	}
	b := billing{m: m, open: map[string]openMeter{}}
	for b.at = m.Changes[0].at; b.at.Before(period.Forever); b.at = b.next() {
		b.step()
	}
	m.known = &timeline{len(m.Changes), versions, b.list}
	return b.list
}

// next returns the next instant at which something may come into force.
func (b *billing) next() time.Time {
	next := period.Forever
	note := func(at time.Time) {
		if at.After(b.at) {
			next = period.Earlier(next, at)
		}
	}
	for i := range b.m.Changes {
		note(b.m.Changes[i].at)
	}
	for _, versions := range b.m.plans {
		for i := range versions {
			note(versions[i].at)
		}
	}
	for _, w := range b.waits {
		note(w.until)
	}
	return next
}

func (b *billing) step() {
	b.pass()
	change := b.m.changeAt(b.at)
	versions := b.m.plans[change.Plan]
	if len(b.list) == 0 || change.at.Equal(b.at) {
		newest := &versions[0]
		for i := range versions {
			if !versions[i].at.After(b.at) {
				newest = &versions[i]
			}
		}
		b.waits = nil
		b.enter(inForce{b.at, change, newest, true, change.Now})
		return
	}
	now := b.list[len(b.list)-1].version
	came, acts := now, true
	for _, w := range b.waits {
		if w.until.Equal(b.at) && w.version.at.After(came.at) {
			came = w.version
		}
	}
	for i := range versions {
		v := &versions[i]
		if !v.at.Equal(b.at) {
			continue
		}
		if until := b.billingEnd(now); v.apply == whenBilled && until.After(b.at) {
			b.waits = append(b.waits, waitingVersion{until, v})
			continue
		}
		came, acts = v, v.apply != whenOpening
	}
	if came != now {
		b.enter(inForce{b.at, change, came, false, acts})
	}
}

// pass lets the periods end that end before the present instant, under the terms in force so far.
func (b *billing) pass() {
	for meter, o := range b.open {
		for o.end.Before(b.at) {
			_, o.end = b.m.nominal(o.day, b.list[len(b.list)-1].change.Shift, o.end)
		}
		b.open[meter] = o
	}
}

// billingEnd returns the latest end of the open periods of the longest interval, or the present instant if the plan has
// no interval.
func (b *billing) billingEnd(v *planVersion) time.Time {
	daily, end := false, b.at
	for meter := range v.meters {
		daily = daily || b.open[meter].day
	}
	for meter, terms := range v.meters {
		if !terms.once && terms.day == daily {
			end = period.Later(end, b.open[meter].end)
		}
	}
	return end
}

// enter puts f into force. Open periods of the same interval go on.
func (b *billing) enter(f inForce) {
	b.list = append(b.list, f)
	open := map[string]openMeter{}
	for meter, terms := range f.version.meters {
		if terms.once {
			continue
		}
		o, goesOn := b.open[meter]
		if !goesOn || o.day != terms.day || !o.end.After(b.at) {
			_, end := b.m.nominal(terms.day, f.change.Shift, b.at)
			o = openMeter{terms.day, end}
		}
		open[meter] = o
	}
	b.open = open
}

// at returns what the tenant has at t.
func (m *Model) at(t time.Time) *inForce {
	list := m.timeline()
	i := len(list) - 1
	for i > 0 && list[i].at.After(t) {
		i--
	}
	return &list[i]
}

// lastKnown returns the last instant at which something is known to come into force.
func (m *Model) lastKnown() time.Time {
	list := m.timeline()
	return list[len(list)-1].at
}
