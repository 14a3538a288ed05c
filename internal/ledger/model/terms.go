package model

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Terms are the terms of a plan version for one meter.
type Terms struct {
	amount           int64
	once             bool // one period without an end
	day              bool // periods of a day; else of an hour
	rollMin, rollMax *int64
	overage          bool
	overageCap       *int64
	preserve         bool // overage is still owed after the period's end
	overflow         string
	price, per       int64 // `price` units of the overflow meter pay for `per` units
	perSubject       *int64
}

// planVersion is a version of a plan, in force from at on.
type planVersion struct {
	at     time.Time
	meters map[string]Terms
}

// PlanChange puts the tenant on a plan at an instant.
type PlanChange struct {
	at           time.Time
	Plan         string
	Now, Prorate bool
	Reset        bool // earlier use does not count
}

// termsAt returns the plan and the terms of k at t. The plan is empty when it has no such meter.
func (m *Model) termsAt(k ledger.BalanceKey, t time.Time) (string, Terms) {
	change := m.Changes[0]
	for _, c := range m.Changes {
		if !c.at.After(t) {
			change = c
		}
	}
	versions := m.plans[change.Plan]
	version := versions[0]
	for _, v := range versions {
		if !v.at.After(t) {
			version = v
		}
	}
	terms, ok := version.meters[k.Meter]
	if !ok || k.Subject != "" && terms.perSubject == nil {
		return "", Terms{}
	}
	if k.Subject != "" {
		terms = Terms{amount: *terms.perSubject, once: terms.once, day: terms.day}
	}
	return change.Plan, terms
}

// instants lists the instants at which terms may change.
func (m *Model) instants() []time.Time {
	var out []time.Time
	for _, c := range m.Changes {
		out = append(out, c.at)
	}
	for _, versions := range m.plans {
		for _, v := range versions {
			out = append(out, v.at)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// calendar returns the period under terms that contains t.
func (m *Model) calendar(terms *Terms, t time.Time) (time.Time, time.Time) {
	length := time.Hour
	if terms.day {
		length = 24 * time.Hour
	}
	start := m.anchor.Add(t.Sub(m.anchor).Truncate(length))
	if start.After(t) {
		start = start.Add(-length)
	}
	return start, start.Add(length)
}
