package model

import (
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// touch returns the balance of k, with everything due worked off.
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

// cut returns the end that new terms set to the open period.
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

func (b *balance) grant(id string) *grant {
	for i := range b.grants {
		if b.grants[i].id == id {
			return &b.grants[i]
		}
	}
	return nil
}

func (m *Model) event(k ledger.BalanceKey, b *balance, due time.Time) {
	for i := range m.reserves {
		if r := &m.reserves[i]; r.balance == k && r.left > 0 && !r.until.After(due) {
			m.giveBack(r, r.left, "", due)
		}
	}
	closes := !b.end.After(due)
	carry, moved := int64(0), int64(0)
	plans := func(g *grant) bool {
		return (g.source == "allowance" || g.source == "rollover") && g.until.Before(period.Forever)
	}
	if closes && b.plan != "" && k.Subject == "" && (b.terms.rollMin != nil || b.terms.rollMax != nil) {
		left := int64(0)
		for i := range b.grants {
			if g := &b.grants[i]; g.state == "active" && plans(g) {
				left += g.left
			}
		}
		carry = left
		if b.terms.rollMin != nil && carry < *b.terms.rollMin {
			carry = *b.terms.rollMin
		}
		if b.terms.rollMax != nil && carry > *b.terms.rollMax {
			carry = *b.terms.rollMax
		}
		moved = min(carry, left)
	}
	lost := int64(0)
	for i := range b.grants {
		g := &b.grants[i]
		if g.state != "active" || g.until.After(due) && !(closes && plans(g)) {
			continue
		}
		if closes && plans(g) && carry > 0 {
			lost += g.left // what is carried is taken off the sum below
		} else if g.left > 0 {
			b.expired += g.left
			b.entries++
		}
		g.left, g.state = 0, "gone"
	}
	if closes && carry > 0 {
		b.expired += lost - moved
		b.entries++
	}
	if closes {
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
			g := &b.grants[before]
			b.settled = min(owing, g.left)
			g.left -= b.settled
			b.used += b.settled
			b.overage -= b.settled
			b.owed -= b.settled
			b.entries++
		}
		if carry > 0 {
			b.grants = append(b.grants, grant{
				id: "rollover:" + at.Format("2006-01-02T15:04:05.999999Z"), source: "rollover", amount: carry, left: carry, priority: 10,
				from: at, until: b.end, state: "active",
			})
			b.granted += carry - moved
		}
	}
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "pending" && !g.from.After(due) {
			g.state, g.left = "active", g.amount
			b.granted += g.amount
			b.entries++
		}
	}
}
