package model

import (
	"maps"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Terms are the terms of a plan version for one meter.
type Terms struct {
	amount           int64
	once             bool          // one period without an end
	lasts            time.Duration // how long a once-only allowance lasts; 0: for ever
	day              bool          // periods of a day; else of an hour
	rollMin, rollMax *int64
	overage          bool
	overageCap       *int64
	preserve         bool // overage is still owed after the period's end
	overflow         string
	price, per       int64 // `price` units of the overflow meter pay for `per` units
	perSubject       *int64
}

// planVersion is a version of a plan that was made at an instant.
type planVersion struct {
	at     time.Time
	apply  string // when it is in force for tenants on the plan: see versions.go
	meters map[string]Terms
}

// PlanChange puts the tenant on new terms at an instant, which may lie in the future.
type PlanChange struct {
	at           time.Time
	Plan         string
	After        time.Duration    // time from the request until the change is in force
	Shift        time.Duration    // from the tenant's first anchor to the anchor of these terms
	Own          map[string]int64 // amounts of this tenant, by meter
	Now, Prorate bool
	Reset        bool // a whole allowance anew; the rest of the old one expires
	Add          bool // a whole allowance anew, beside the rest of the old one
}

// anew reports whether the change gives a whole allowance anew.
func (c *PlanChange) anew() bool { return c.Reset || c.Add }

// changeOf returns the change c as it acts on a meter. A change of the amounts of some meters gives only these anew.
func (m *Model) changeOf(meter string, c *PlanChange) *PlanChange {
	before := &PlanChange{}
	for i := range m.Changes {
		if m.Changes[i].at.Before(c.at) {
			before = &m.Changes[i]
		}
	}
	own, had := before.Own[meter]
	amount, has := c.Own[meter]
	if c.Plan != before.Plan || maps.Equal(c.Own, before.Own) || has != had || amount != own {
		return c
	}
	only := *c
	only.Reset, only.Add = false, false
	return &only
}

// changeAt returns the newest change up to t.
func (m *Model) changeAt(t time.Time) *PlanChange {
	change := &m.Changes[0]
	for i := range m.Changes {
		if !m.Changes[i].at.After(t) {
			change = &m.Changes[i]
		}
	}
	return change
}

// termsAt returns the plan and the terms of k at t. The plan is empty when it has no such meter.
func (m *Model) termsAt(k ledger.BalanceKey, t time.Time) (string, Terms) {
	return m.at(t).terms(k)
}

// terms returns the plan and the terms of k. The plan is empty when it has no such meter.
func (f *inForce) terms(k ledger.BalanceKey) (string, Terms) {
	change := f.change
	terms, ok := f.version.meters[k.Meter]
	if !ok || k.Subject != "" && terms.perSubject == nil {
		return "", Terms{}
	}
	if k.Subject != "" {
		return change.Plan, Terms{amount: *terms.perSubject, once: terms.once, day: terms.day}
	}
	if own, ok := change.Own[k.Meter]; ok {
		terms.amount = own
	}
	return change.Plan, terms
}

// kind is the kind of a period: what its interval is.
type kind string

const (
	none   kind = "none" // the plan has no such meter
	once   kind = "once"
	hourly kind = "hour"
	daily  kind = "day"
)

func kindOf(plan string, terms *Terms) kind {
	switch {
	case plan == "":
		return none
	case terms.once:
		return once
	case terms.day:
		return daily
	}
	return hourly
}

// endless reports whether periods of this kind have no end of their own.
func (k kind) endless() bool { return k == none || k == once }

// calendar returns the nominal period that contains t, under terms and the anchor in force at t.
func (m *Model) calendar(terms *Terms, t time.Time) (time.Time, time.Time) {
	return m.nominal(terms.day, m.changeAt(t).Shift, t)
}

// nominal returns the period of a day or an hour that contains t, for an anchor that was shifted.
func (m *Model) nominal(day bool, shift time.Duration, t time.Time) (time.Time, time.Time) {
	length := time.Hour
	if day {
		length = 24 * time.Hour
	}
	anchor := m.anchor.Add(shift)
	start := anchor.Add(t.Sub(anchor).Truncate(length))
	if start.After(t) {
		start = start.Add(-length)
	}
	return start, start.Add(length)
}
