package model

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// touch returns the balance of k, after every event that was due.
func (m *Model) touch(k ledger.BalanceKey) *balance {
	if m.trial != nil {
		m.trial.asked[k] = true
	}
	b := m.balances[k]
	if b == nil {
		b = &balance{}
		m.balances[k] = b
		born := m.Changes[0].at
		plan, terms := m.termsAt(k, born)
		start, _ := m.calendar(&terms, born)
		if plan == "" || terms.once {
			start = born
		}
		m.open(k, b, born, start, 0)
	}
	m.catchUp(k, b)
	return b
}

// open opens a period at start under the terms of the instant `due`, and grants its allowance minus the units used. A
// once-only allowance is granted once for each plan.
func (m *Model) open(k ledger.BalanceKey, b *balance, due, start time.Time, used int64) {
	b.plan, b.terms = m.termsAt(k, due)
	b.start, b.end, b.nominal, b.carried = start, period.Forever, start, used
	amount := b.terms.amount
	switch {
	case b.plan == "":
	case b.terms.once && slices.Contains(b.gifts, b.plan):
		amount = 0
	case b.terms.once && amount > 0:
		b.gifts = append(b.gifts, b.plan)
	case !b.terms.once:
		b.nominal, b.end = m.calendar(&b.terms, due)
		for _, c := range m.Changes {
			if c.at.Equal(due) && c.Now && c.Prorate && due.After(b.nominal) {
				amount = amount * int64(b.end.Sub(due)/time.Microsecond) / int64(b.end.Sub(b.nominal)/time.Microsecond)
			}
		}
		amount = max(0, amount-used)
	}
	amount = min(amount, b.room())
	b.promised = b.end
	if b.plan != "" && amount > 0 {
		b.grants = append(b.grants, grant{
			id: "allowance:" + start.Format("2006-01-02T15:04:05.999999Z"), source: "allowance", amount: amount, left: amount,
			priority: 10, from: start, until: b.end, state: "active",
		})
		b.granted += amount
		b.entries++
	}
}

// room returns how many units b can still receive. What it has, holds and awaits is at most ledger.MaxAmount.
func (b *balance) room() int64 {
	room := ledger.MaxAmount - (b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted)
	for i := range b.grants {
		if b.grants[i].state == "pending" {
			room -= b.grants[i].amount
		}
	}
	return max(0, room)
}

// cut returns the end of the open period, which new terms may have moved to an earlier instant.
func (m *Model) cut(k ledger.BalanceKey, b *balance) time.Time {
	end := b.end
	consider := func(t time.Time) {
		if t.After(b.start) && t.Before(end) {
			end = t
		}
	}
	for i, c := range m.Changes {
		if plan, terms := m.termsAt(k, c.at); i > 0 && c.Now && (plan != b.plan || !reflect.DeepEqual(terms, b.terms)) {
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

// catchUp processes the events of k one by one, the earliest first, up to now.
func (m *Model) catchUp(k ledger.BalanceKey, b *balance) {
	for {
		end := m.cut(k, b)
		due := m.due(k, b, end)
		if due.After(m.Now) {
			return
		}
		b.end = end
		m.event(k, b, due)
	}
}

// due returns the instant of the next event of k, whose period ends at the instant `end`.
func (m *Model) due(k ledger.BalanceKey, b *balance, end time.Time) time.Time {
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
	return due
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

// event processes the events of k that are due at one instant: the ends of holds, the ends of grants, the end of the
// period, and pending grants.
func (m *Model) event(k ledger.BalanceKey, b *balance, due time.Time) {
	for _, id := range slices.Sorted(maps.Keys(m.holds)) {
		m.payTabs(id, func(r *reservation) bool { return r.balance == k && !r.until.After(due) })
	}
	for i := range m.reserves {
		if r := &m.reserves[i]; r.balance == k && r.left > 0 && !r.until.After(due) {
			m.giveBack(r, r.left, "", due)
		}
	}
	closes := !b.end.After(due)
	var c closing
	if closes {
		c = m.closing(k, b)
	}
	b.expire(due, closes, &c)
	if closes {
		m.closePeriod(k, b, &c)
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

// closing describes how a period ends.
type closing struct {
	cut, reset  bool
	used        int64 // use of its allowance
	carry       int64 // units that roll over into the next period
	moved       int64 // how much of carry comes from this period's grants
	keepsGift   bool  // the next period has the once-only allowance of the same plan
	nextNominal time.Time
	nextEnd     time.Time
}

// closing returns how the period of k ends now.
func (m *Model) closing(k ledger.BalanceKey, b *balance) closing {
	var c closing
	plan, terms := m.termsAt(k, b.end)
	c.cut = b.plan == "" || b.terms.once || b.promised.After(b.end)
	for i, change := range m.Changes {
		// A change exactly at the end of a period cuts the period only if earlier changes still count together.
		if i > 0 && change.at.Equal(b.end) && change.Now && (plan != b.plan || !reflect.DeepEqual(terms, b.terms)) {
			c.cut = c.cut || b.toggling.After(b.end)
			c.reset = c.cut && change.Reset
		}
	}
	if b.plan != "" && !b.terms.once {
		for i := range b.grants {
			if g := &b.grants[i]; g.source == "allowance" && g.from.Equal(b.start) {
				c.used = g.amount - g.left
			}
		}
	}
	c.keepsGift = plan == b.plan && plan != "" && b.terms.once && terms.once
	c.nextNominal, c.nextEnd = b.end, period.Forever
	if plan != "" && !terms.once {
		c.nextNominal, c.nextEnd = m.calendar(&terms, b.end)
	}
	c.rollOver(k, b)
	return c
}

// rollOver computes the units that roll over into the next period. After a change of plan that does not reset the use,
// only units of an earlier rollover roll over again.
func (c *closing) rollOver(k ledger.BalanceKey, b *balance) {
	counts := c.cut && !c.reset
	if k.Subject != "" || !counts && (b.plan == "" || b.terms.rollMin == nil && b.terms.rollMax == nil) {
		return
	}
	left := int64(0)
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "active" && g.ofPlan() && (!counts || g.source == "rollover") {
			left += g.left
		}
	}
	c.carry = left
	if !counts && b.terms.rollMin != nil {
		c.carry = max(c.carry, *b.terms.rollMin)
	}
	if !counts && b.terms.rollMax != nil {
		c.carry = min(c.carry, *b.terms.rollMax)
	}
	c.moved = min(c.carry, left)
}

// expire ends the grants that end at the instant `due`, and the plan's grants if the period closes. Rollover takes
// units of the plan's grants; the remaining units of these grants expire in one entry.
func (b *balance) expire(due time.Time, closes bool, c *closing) {
	lost := int64(0)
	for i := range b.grants {
		g := &b.grants[i]
		ends := closes && g.ofPlan() && !(c.keepsGift && g.source == "allowance")
		if g.state != "active" || g.until.After(due) && !ends {
			continue
		}
		if ends && c.carry > 0 {
			lost += g.left
		} else if g.left > 0 {
			b.expired += g.left
			b.entries++
		}
		g.left, g.state = 0, "gone"
	}
	if c.carry > 0 {
		b.expired += lost - c.moved
		b.entries++
	}
}

// count adds the use of the period to the use that changes of plan share. The period ends at the instant `at`. It
// returns the units by which the next allowance is reduced, the shared use, and the end of the time in which changes
// share their use.
func (c *closing) count(b *balance, at time.Time, scheduled bool) (used, toggled int64, toggling time.Time) {
	toggled, toggling = b.toggled+c.used, b.toggling
	if c.cut && b.plan != "" && !b.terms.once && b.promised.After(toggling) {
		toggling = b.promised
	}
	if c.reset || !toggling.After(at) {
		return 0, 0, time.Time{}
	}
	if !scheduled || !c.cut && c.nextNominal.Equal(at) {
		return 0, toggled, toggling
	}
	if c.nextEnd.After(toggling) {
		toggling = c.nextEnd
	}
	switch {
	case c.nextNominal.Equal(b.nominal):
		return b.carried + c.used, toggled, toggling
	case !b.start.After(c.nextNominal):
		return c.used, toggled, toggling
	}
	return toggled, toggled, toggling
}

// closePeriod closes the open period and opens the next period.
func (m *Model) closePeriod(k ledger.BalanceKey, b *balance, c *closing) {
	at, owing, forgiven := b.end, int64(0), b.forgiven
	switch {
	case b.overage > 0 && b.plan != "" && b.terms.preserve:
		owing = b.overage
	case b.overage > 0:
		forgiven = at
		b.entries++
	}
	opening := b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted
	closed := append(b.closed, PeriodText(b.plan, b.start, at, [...]int64{
		b.opening, b.granted, 0, b.refunded, b.used, b.expired, b.adjusted, b.overage, m.held(k), opening,
	}))
	used, toggled, toggling := c.count(b, at, c.nextEnd.Before(period.Forever))
	*b = balance{
		opening: opening, grants: b.grants, entries: b.entries, closed: closed, forgiven: forgiven, gifts: b.gifts,
		toggled: toggled, toggling: toggling,
	}
	before := len(b.grants)
	m.open(k, b, at, at, used)
	if carry := c.moved + min(c.carry-c.moved, b.room()); carry > 0 {
		b.grants = append(b.grants, grant{
			id: "rollover:" + at.Format("2006-01-02T15:04:05.999999Z"), source: "rollover", amount: carry, left: carry, priority: 10,
			from: at, until: b.end, state: "active",
		})
		b.granted += carry - c.moved
	}
	if owing > 0 {
		b.overage, b.owed = owing, owing
		b.entries++
	}
	for i := before; i < len(b.grants); i++ { // the allowance, then the rollover
		b.payOwed(&b.grants[i])
	}
}

// payOwed uses g, a grant that opens with the period, to pay overage of earlier periods.
func (b *balance) payOwed(g *grant) {
	n := min(b.owed, g.left)
	if n == 0 {
		return
	}
	g.left -= n
	b.paid += n
	if g.source == "rollover" {
		b.paidByRollover += n
	}
	b.used += n
	b.overage -= n
	b.owed -= n
	b.entries++
}
