package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// This file has the verbs of scenarios for the clock, the catalogue and the plans of tenants. The comment of each
// method begins with the syntax of its verb.

// at INSTANT
func (s *scenario) at(w words) (string, error) {
	now, err := parseInstant(w.args[0])
	if err == nil && now.Before(s.now) {
		err = fmt.Errorf("the clock cannot go back from %s", formatInstant(s.now))
	}
	if err != nil {
		return "", err
	}
	s.now = now
	return "ok", nil
}

// meter METER [denial_replay]
func (s *scenario) meter(w words) (string, error) {
	s.meters[w.args[0]] = len(w.args) > 1 && w.args[1] == "denial_replay"
	return "ok", nil
}

// plan PLAN METER AMOUNT every=INTERVAL [...] [and METER AMOUNT every=INTERVAL ...] [apply=now|opening]. A second such
// line for a plan creates its next version. Tenants get that version at the end of their billing period, or at once. With
// apply=opening it is a version that a program before version 1.2 made.
func (s *scenario) plan(w words) (string, error) {
	name, rest := w.all[0], w.all[1:]
	version := ledger.PlanVersion{
		Version: int32(len(s.plans[name])) + 1, CreatedAt: s.now, Apply: ledger.ApplyNextPeriod,
		Allowances: map[string]ledger.Allowance{},
	}
	switch last := rest[len(rest)-1]; last {
	case "apply=now", "apply=opening":
		version.Apply, rest = ledger.ApplyOpening, rest[:len(rest)-1]
		if last == "apply=now" {
			version.Apply = ledger.ApplyNow
		}
	}
	for more := true; more; {
		part := rest
		at := slices.Index(rest, "and")
		if more = at >= 0; more {
			part, rest = rest[:at], rest[at+1:]
		}
		w := wordsOf(part)
		items, err := s.amounts(w.args)
		if err != nil {
			return "", err
		}
		if len(items) != 1 {
			return "", fmt.Errorf("want METER AMOUNT, not %q", strings.Join(w.args, " "))
		}
		a, err := readAllowance(items[0].Amount, w)
		if err != nil {
			return "", err
		}
		version.Allowances[items[0].Meter] = a
		s.meters[items[0].Meter] = s.meters[items[0].Meter] || false
	}
	s.plans[name] = append(s.plans[name], version)
	return "ok", nil
}

// readAllowance returns an allowance with the fields every= anchor= rollover-min= rollover-max= overage= overage-end=
// overflow= price= per-subject= per= days= alert-at=
func readAllowance(amount int64, w words) (ledger.Allowance, error) {
	a := ledger.Allowance{Amount: amount, Anchor: period.Calendar, OverflowMeter: w.named["overflow"]}
	var err error
	if a.Every, err = period.ParseInterval(w.named["every"]); err != nil {
		return a, err
	}
	if text, ok := w.named["anchor"]; ok {
		if a.Anchor, err = period.ParseAnchorKind(text); err != nil {
			return a, err
		}
	}
	number := func(name string, to **int64) {
		if text, ok := w.named[name]; ok && err == nil {
			*to = new(int64)
			**to, err = strconv.ParseInt(text, 10, 64)
		}
	}
	var units, per, days *int64
	for name, to := range map[string]**int64{
		"rollover-min": &a.RolloverMin, "rollover-max": &a.RolloverMax, "per-subject": &a.PerSubject, "price": &units, "per": &per, "days": &days,
	} {
		number(name, to)
	}
	if text, ok := w.named["overage"]; ok {
		a.OverageAllowed = true
		if text != "unlimited" {
			number("overage", &a.OverageCap)
		}
	}
	switch w.named["overage-end"] {
	case "preserve":
		a.OveragePreserved = true
	case "", "forgive":
	default:
		return a, fmt.Errorf("overage-end=%s is neither forgive nor preserve", w.named["overage-end"])
	}
	if units != nil {
		a.OverflowPrice = price.Whole(*units)
	}
	if per != nil {
		a.OverflowPrice.Per = *per
	}
	if text, ok := w.named["alert-at"]; ok {
		a.AlertAt = new([]int16)
		for _, part := range strings.Split(text, ",") {
			percent, bad := strconv.ParseInt(part, 10, 16)
			*a.AlertAt, err = append(*a.AlertAt, int16(percent)), errors.Join(err, bad)
		}
	}
	if days != nil {
		a.Lasts = time.Duration(*days) * 24 * time.Hour
	}
	return a, err
}

// tenant TENANT plan=PLAN [anchor=INSTANT] [zone=ZONE] [own=METER:AMOUNT] [apply=now|from=INSTANT [prorate=yes]
// [usage=reset]] signs a tenant up, or changes its terms: from the next period on, at once, or at an instant to come.
func (s *scenario) tenant(w words) (string, error) {
	terms := ledger.TenantTerms{
		Since: s.now, AnchorAt: s.now, Zone: time.UTC, Now: w.named["apply"] == "now", Prorate: w.named["prorate"] == "yes",
		Reset: w.named["usage"] == "reset", Add: w.named["usage"] == "add",
	}
	m, known := s.tenants[w.args[0]]
	if known {
		last := m.History[len(m.History)-1]
		terms.Plan, terms.AnchorAt, terms.Zone, terms.Overrides = last.Plan, last.AnchorAt, last.Zone, last.Overrides
	} else {
		m = newMemory()
		m.Plans = s.plans
		m.stored = s.note
		s.tenants[w.args[0]] = m
	}
	var err error
	if text, ok := w.named["plan"]; ok {
		terms.Plan = text
	}
	if len(s.plans[terms.Plan]) == 0 {
		return "", fmt.Errorf("there is no plan %q", terms.Plan)
	}
	if text, ok := w.named["anchor"]; ok {
		if terms.AnchorAt, err = parseInstant(text); err != nil {
			return "", err
		}
	}
	if text, ok := w.named["zone"]; ok {
		if terms.Zone, err = period.ParseZone(text); err != nil {
			return "", err
		}
	}
	if text, ok := w.named["own"]; ok {
		items, err := s.amounts(strings.Split(text, ":"))
		if err != nil {
			return "", err
		}
		terms.Overrides = map[string]int64{items[0].Meter: items[0].Amount}
	}
	if text, ok := w.named["from"]; ok {
		if terms.Since, err = parseInstant(text); err != nil {
			return "", err
		}
		terms.Now = true
	}
	m.History = append(m.History, terms)
	slices.SortStableFunc(m.History, func(a, b ledger.TenantTerms) int { return a.Since.Compare(b.Since) })
	if terms.Now { // open periods end now, and their balances are due
		m.makeDue(s.now)
	}
	return "ok", nil
}

// suspend TENANT
func (s *scenario) suspend(w words) (string, error) {
	s.suspended[w.args[0]] = true
	return "ok", nil
}

// resume TENANT
func (s *scenario) resume(w words) (string, error) {
	s.suspended[w.args[0]] = false
	return "ok", nil
}
