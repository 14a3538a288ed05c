package model

import (
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// touch returns the balance of k, with everything done that is due.
func (m *Model) touch(k ledger.BalanceKey) *balance {
	b := m.balances[k]
	if b == nil {
		b = &balance{}
		m.balances[k] = b
		born := m.Changes[0].at
		plan, terms := m.termsAt(k, born)
		start, _ := m.hour(born)
		if plan == "" || terms.once {
			start = born
		}
		m.open(k, b, born, start)
	}
	m.catchUp(k, b)
	return b
}

// open opens a period at start under the terms of due, and grants its allowance.
func (m *Model) open(k ledger.BalanceKey, b *balance, due, start time.Time) {
	b.plan, b.terms = m.termsAt(k, due)
	b.start, b.end = start, period.Forever
	_, hourEnd := m.hour(due)
	hourStart := hourEnd.Add(-time.Hour)
	amount := b.terms.amount
	if b.plan != "" && !b.terms.once {
		b.end = hourEnd
		for _, c := range m.Changes {
			if c.at.Equal(due) && c.now && c.prorate && due.After(hourStart) {
				amount = amount * int64(hourEnd.Sub(due)/time.Microsecond) / int64(time.Hour/time.Microsecond)
			}
		}
	}
	if b.plan != "" && amount > 0 {
		b.grants = append(b.grants, grant{
			id: "allowance:" + start.Format("2006-01-02T15:04:05.999999Z"), source: "allowance", amount: amount, left: amount,
			priority: 10, from: start, until: b.end, state: "active",
		})
		b.granted += amount
		b.entries++
	}
}

// cut returns the end of the open period, which new terms may have brought forward.
func (m *Model) cut(k ledger.BalanceKey, b *balance) time.Time {
	end := b.end
	consider := func(t time.Time) {
		if t.After(b.start) && t.Before(end) {
			end = t
		}
	}
	for i, c := range m.Changes {
		if plan, terms := m.termsAt(k, c.at); i > 0 && c.now && (plan != b.plan || !reflect.DeepEqual(terms, b.terms)) {
			consider(c.at)
		}
	}
	if b.end.Equal(period.Forever) {
		for _, t := range m.instants() {
			plan, terms := m.termsAt(k, t)
			if plan != b.plan || plan != "" && b.plan != "" && !terms.once {
				consider(t)
			}
		}
	}
	return end
}

// catchUp works off the events of k one by one, the earliest first, up to now.
func (m *Model) catchUp(k ledger.BalanceKey, b *balance) {
	for {
		end := m.cut(k, b)
		due := end
		for _, r := range m.reserves {
			if r.balance == k && r.left > 0 && r.until.Before(due) {
				due = r.until
			}
		}
		for _, g := range b.grants {
			if g.state == "active" && g.until.Before(due) {
				due = g.until
			}
			if g.state == "pending" && g.from.Before(due) {
				due = g.from
			}
		}
		if due.After(m.Now) {
			return
		}
		b.end = end
		m.event(k, b, due)
	}
}

// grant returns the grant with the id, nil when there is none.
func (b *balance) grant(id string) *grant {
	for i := range b.grants {
		if b.grants[i].id == id {
			return &b.grants[i]
		}
	}
	return nil
}

// event does what is due of k at due: the ends of holds, the ends of grants, the end of the period, and pending grants.
func (m *Model) event(k ledger.BalanceKey, b *balance, due time.Time) {
	for i := range m.reserves {
		if r := &m.reserves[i]; r.balance == k && r.left > 0 && !r.until.After(due) {
			m.giveBack(r, r.left, "", due)
		}
	}
	closes := !b.end.After(due)
	carry, moved := int64(0), int64(0)
	if closes {
		carry, moved = b.carried(k)
	}
	b.expire(due, closes, carry > 0, moved)
	if closes {
		m.closePeriod(k, b, carry, moved)
	}
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "pending" && !g.from.After(due) {
			g.state, g.left = "active", g.amount
			b.granted += g.amount
			b.entries++
		}
	}
}

// ofPlan reports whether g came from the plan and ends with the period.
func (g *grant) ofPlan() bool {
	return (g.source == "allowance" || g.source == "rollover") && g.until.Before(period.Forever)
}

// carried returns what the next period gets by rollover, and how much of it is left of this period's grants.
func (b *balance) carried(k ledger.BalanceKey) (carry, moved int64) {
	if b.plan == "" || k.Subject != "" || b.terms.rollMin == nil && b.terms.rollMax == nil {
		return 0, 0
	}
	left := int64(0)
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "active" && g.ofPlan() {
			left += g.left
		}
	}
	carry = left
	if b.terms.rollMin != nil {
		carry = max(carry, *b.terms.rollMin)
	}
	if b.terms.rollMax != nil {
		carry = min(carry, *b.terms.rollMax)
	}
	return carry, min(carry, left)
}

// expire ends the grants that end at due, and those of the plan when the period closes. Rollover takes moved units of the plan's
// grants; the rest of them expires in one entry.
func (b *balance) expire(due time.Time, closes, rollover bool, moved int64) {
	lost := int64(0)
	for i := range b.grants {
		g := &b.grants[i]
		if g.state != "active" || g.until.After(due) && !(closes && g.ofPlan()) {
			continue
		}
		if closes && g.ofPlan() && rollover {
			lost += g.left
		} else if g.left > 0 {
			b.expired += g.left
			b.entries++
		}
		g.left, g.state = 0, "gone"
	}
	if rollover {
		b.expired += lost - moved
		b.entries++
	}
}

// closePeriod closes the open period and opens the next one, with carry units by rollover, of which moved were left before.
func (m *Model) closePeriod(k ledger.BalanceKey, b *balance, carry, moved int64) {
	at, owing, forgiven := b.end, int64(0), b.forgiven
	switch {
	case b.overage > 0 && b.plan != "" && b.terms.preserve:
		owing = b.overage
	case b.overage > 0:
		forgiven = at
		b.entries++
	}
	opening := b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted
	closed := append(slices.Clip(b.closed), PeriodText(b.plan, b.start, at, [...]int64{
		b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage, m.held(k), opening,
	}))
	*b = balance{opening: opening, grants: b.grants, entries: b.entries, closed: closed, forgiven: forgiven}
	before := len(b.grants)
	m.open(k, b, at, at)
	if owing > 0 {
		b.overage, b.owed = owing, owing
		b.entries++
	}
	if owing > 0 && len(b.grants) > before {
		b.payOwed(&b.grants[before])
	}
	if carry > 0 {
		b.grants = append(b.grants, grant{
			id: "rollover:" + at.Format("2006-01-02T15:04:05.999999Z"), source: "rollover", amount: carry, left: carry, priority: 10,
			from: at, until: b.end, state: "active",
		})
		b.granted += carry - moved
	}
}

// payOwed lets the new allowance pay overage of earlier periods.
func (b *balance) payOwed(allowance *grant) {
	b.settled = min(b.owed, allowance.left)
	allowance.left -= b.settled
	b.used += b.settled
	b.overage -= b.settled
	b.owed -= b.settled
	b.entries++
}
