package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// The verbs that set a story's stage: the clock, the catalogue, who is on which plan.

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

// plan PLAN METER AMOUNT every=INTERVAL [...] [and METER AMOUNT every=INTERVAL ...]. A second such line for a plan is its next
// version, in force from now on for periods that begin later.
func (s *scenario) plan(w words) (string, error) {
	name, rest := w.all[0], w.all[1:]
	version := planVersion{version: int32(len(s.plans[name])) + 1, createdAt: s.now, allowances: map[string]allowance{}}
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
		version.allowances[items[0].Meter] = a
		s.meters[items[0].Meter] = s.meters[items[0].Meter] || false
	}
	s.plans[name] = append(s.plans[name], version)
	return "ok", nil
}

// readAllowance reads every= anchor= rollover-min= rollover-max= overage= overage-end= overflow= price= per-subject=
// days=
func readAllowance(amount int64, w words) (allowance, error) {
	a := allowance{amount: amount, anchor: period.Calendar, overflowMeter: w.named["overflow"]}
	var err error
	if a.every, err = period.ParseInterval(w.named["every"]); err != nil {
		return a, err
	}
	if text, ok := w.named["anchor"]; ok {
		if a.anchor, err = period.ParseAnchorKind(text); err != nil {
			return a, err
		}
	}
	number := func(name string, to **int64) {
		if text, ok := w.named[name]; ok && err == nil {
			*to = new(int64)
			**to, err = strconv.ParseInt(text, 10, 64)
		}
	}
	var price, days *int64
	for name, to := range map[string]**int64{
		"rollover-min": &a.rolloverMin, "rollover-max": &a.rolloverMax, "per-subject": &a.perSubject, "price": &price, "days": &days,
	} {
		number(name, to)
	}
	if text, ok := w.named["overage"]; ok {
		a.overageAllowed = true
		if text != "unlimited" {
			number("overage", &a.overageCap)
		}
	}
	switch w.named["overage-end"] {
	case "preserve":
		a.overagePreserved = true
	case "", "forgive":
	default:
		return a, fmt.Errorf("overage-end=%s is neither forgive nor preserve", w.named["overage-end"])
	}
	if price != nil {
		a.overflowPrice = *price
	}
	if days != nil {
		a.lasts = time.Duration(*days) * 24 * time.Hour
	}
	return a, err
}

// tenant TENANT plan=PLAN [anchor=INSTANT] [zone=ZONE] [own=METER:AMOUNT] [apply=now [prorate=yes]] signs a tenant up, or
// changes its terms from the next period on.
func (s *scenario) tenant(w words) (string, error) {
	terms := tenantTerms{since: s.now, anchorAt: s.now, zone: time.UTC, now: w.named["apply"] == "now", prorate: w.named["prorate"] == "yes"}
	m, known := s.tenants[w.args[0]]
	if known {
		last := m.history[len(m.history)-1]
		terms.plan, terms.anchorAt, terms.zone, terms.overrides = last.plan, last.anchorAt, last.zone, last.overrides
	} else {
		m = newMemory()
		m.plans = s.plans
		s.tenants[w.args[0]] = m
	}
	var err error
	if text, ok := w.named["plan"]; ok {
		terms.plan = text
	}
	if len(s.plans[terms.plan]) == 0 {
		return "", fmt.Errorf("there is no plan %q", terms.plan)
	}
	if text, ok := w.named["anchor"]; ok {
		if terms.anchorAt, err = parseInstant(text); err != nil {
			return "", err
		}
	}
	if text, ok := w.named["zone"]; ok {
		if terms.zone, err = period.ParseZone(text); err != nil {
			return "", err
		}
	}
	if text, ok := w.named["own"]; ok {
		items, err := s.amounts(strings.Split(text, ":"))
		if err != nil {
			return "", err
		}
		terms.overrides = map[string]int64{items[0].Meter: items[0].Amount}
	}
	m.history = append(m.history, terms)
	if terms.now { // as the catalogue does: open periods end, and are due
		for k, b := range m.balances {
			if b.opened() {
				b.nextEvent = earlier(b.nextEvent, s.now)
				m.balances[k] = b
			}
		}
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
