package model

import (
	"maps"
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
		b = &balance{allowances: make([]allowance, 1)}
		m.balances[k] = b
		m.open(k, b, m.Changes[0].at, &opening{first: true, change: &PlanChange{}})
	}
	m.catchUp(k, b)
	return b
}

// opening says how a period opens.
type opening struct {
	first  bool        // it is the balance's first period, and may have begun before its opening
	turned bool        // the kind of the period changed
	owing  int64       // overage that the period owes
	since  time.Time   // since when overage counts against the cap in a period that has no end
	before int64       // this overage
	change *PlanChange // the change at this instant that applies at once; zero if there is none
}

// open opens a period at the instant `at`, under the terms then in force. If the kind of the period changed, the
// allowance is less by what was drawn and is held of earlier allowances since its nominal start. If a change of the
// anchor left a short period, the allowance counts from the period's start only.
func (m *Model) open(k ledger.BalanceKey, b *balance, at time.Time, o *opening) {
	b.plan, b.terms = m.termsAt(k, at)
	b.agreed, b.start, b.end, b.current = at, at, period.Forever, 0
	b.carried, b.carriedFrom, b.nominal = 0, period.Forever, period.Forever
	b.act(at)
	for i := range b.allowances {
		b.forget(&b.allowances[i])
	}
	if b.kind() == once {
		b.giveOnce(at, o.change, stamp(at))
	}
	if b.kind().endless() {
		if o.turned {
			b.nominal, b.before = o.since, max(0, o.before-o.owing)
		}
		return
	}
	nominal, end := m.calendar(&b.terms, at)
	a := allowance{from: at, end: end, length: end.Sub(nominal)}
	b.end = end
	if o.first {
		b.start, a.from = nominal, nominal
	}
	if o.turned {
		b.nominal, a.from = nominal, nominal
		b.before = max(0, max(0, since(nominal, b.excess)-since(nominal, b.paidOff))-o.owing)
		if !o.change.anew() {
			b.carriedFrom = nominal
			b.carried = b.drawn(nominal) + b.heldAfter(nominal)
		}
	}
	change := &PlanChange{}
	if o.turned {
		change = o.change
	}
	b.current = b.give(a, b.terms.amount, b.carried, stamp(b.start), b.start, change)
}

// room returns how many units b can still receive. What it has, holds and awaits is at most ledger.MaxAmount.
func (b *balance) room() int64 {
	room := ledger.MaxAmount - (b.opening + b.granted + b.amended + b.refunded - b.used - b.expired + b.adjusted)
	for i := range b.grants {
		if b.grants[i].state == "pending" {
			room -= b.grants[i].amount
		}
	}
	return max(0, room)
}

// nextChange returns the instant of the next change that acts on the open period of k: a change that applies at once.
// In a period without an end every change does, and a version of a plan that changes the kind.
func (m *Model) nextChange(k ledger.BalanceKey, b *balance) time.Time {
	next := period.Forever
	list := m.timeline()
	for i := range list {
		f := &list[i]
		if !f.at.After(b.agreed) {
			continue
		}
		plan, terms := f.terms(k)
		if b.kind() == once && kindOf(plan, &terms) == once && !f.agreed && f.version.apply == whenBilled {
			continue // it stays as it was given
		}
		if f.acts || b.kind().endless() && (f.agreed || kindOf(plan, &terms) != b.kind()) {
			next = period.Earlier(next, f.at)
		}
	}
	return next
}

// catchUp processes the events of k one by one, the earliest first, up to now.
func (m *Model) catchUp(k ledger.BalanceKey, b *balance) {
	for {
		due := m.due(k, b)
		if due.After(m.Now) {
			return
		}
		m.event(k, b, due)
	}
}

// due returns the instant of the next event of k.
func (m *Model) due(k ledger.BalanceKey, b *balance) time.Time {
	due := period.Earlier(b.end, m.nextChange(k, b))
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
// period, pending grants, and a change of the terms.
func (m *Model) event(k ledger.BalanceKey, b *balance, due time.Time) {
	for _, id := range slices.Sorted(maps.Keys(m.holds)) {
		m.payTabs(id, due, func(r *reservation) bool { return r.balance == k && !r.until.After(due) })
	}
	for i := range m.reserves {
		if r := &m.reserves[i]; r.balance == k && r.left > 0 && !r.until.After(due) {
			m.giveBack(r, r.left, "", due)
		}
	}
	change := &PlanChange{}
	if c := m.changeAt(due); c.at.Equal(due) && c.Now {
		change = m.changeOf(k.Meter, c)
	}
	plan, terms := m.termsAt(k, due)
	turned := kindOf(plan, &terms) != b.kind()
	acts := !m.nextChange(k, b).After(due)
	if !b.end.After(due) {
		m.turn(k, b, due, &opening{turned: turned, change: change})
		b.takeEffect(due)
		return
	}
	b.expire(due, nil)
	b.takeEffect(due)
	switch {
	case acts && turned:
		m.turn(k, b, due, &opening{turned: turned, change: change})
	case acts:
		b.agreed, b.plan, b.terms = due, plan, terms
		b.act(due)
		b.renew(due, change)
	}
}

// takeEffect makes the pending grants spendable that are due.
func (b *balance) takeEffect(due time.Time) {
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "pending" && !g.from.After(due) {
			g.state, g.left = "active", g.amount
			b.granted += g.amount
			b.entries++
		}
	}
}

// renew puts the open period under the terms in force.
func (b *balance) renew(at time.Time, c *PlanChange) {
	switch {
	case b.kind() == none:
	case b.kind() == once:
		b.giveOnce(at, c, stamp(at))
	case c.anew():
		b.replace(b.terms.amount, at, c)
	default:
		b.amend(b.current, b.terms.amount, at, c.Prorate)
	}
}

// turn ends the open period at the instant `at` and opens the next period.
func (m *Model) turn(k ledger.BalanceKey, b *balance, at time.Time, o *opening) {
	early := b.end.After(at)
	if o.turned && o.change.anew() {
		b.setApart(o.change)
	}
	c := b.rollOver(k, early)
	b.expire(at, &c)
	m.closePeriod(k, b, at, o, &c)
}

// ofPeriod reports whether g came from the plan and ends with the period.
func (b *balance) ofPeriod(g *grant) bool {
	return b.ends(g.of) || g.source == "rollover"
}

// rollover has the units that roll over into the next period, and how many of them come from this period's grants.
type rollover struct{ carry, moved int64 }

// rollOver computes the units that roll over into the next period. From a period that ends early, only units of an
// earlier rollover roll over again.
func (b *balance) rollOver(k ledger.BalanceKey, early bool) (c rollover) {
	if k.Subject != "" || !early && b.terms.rollMin == nil && b.terms.rollMax == nil {
		return c
	}
	left := int64(0)
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "active" && b.ofPeriod(g) && (!early || g.source == "rollover") {
			left += g.left
		}
	}
	c.carry = left
	if !early && b.terms.rollMin != nil {
		c.carry = max(c.carry, *b.terms.rollMin)
	}
	if !early && b.terms.rollMax != nil {
		c.carry = min(c.carry, *b.terms.rollMax)
	}
	c.moved = min(c.carry, left)
	return c
}

// expire ends the grants that end at the instant `due`, and the plan's grants if the period closes: then c is not nil.
// Rollover takes units of the plan's grants; the remaining units of these grants expire in one entry.
func (b *balance) expire(due time.Time, c *rollover) {
	lost, rolls := int64(0), c != nil && c.carry > 0
	for i := range b.grants {
		g := &b.grants[i]
		ends := c != nil && b.ofPeriod(g)
		if g.state != "active" || g.until.After(due) && !ends {
			continue
		}
		if ends && rolls {
			lost += g.left
			g.left = 0
		}
		b.endGrant(g)
	}
	if rolls {
		b.expired += lost - c.moved
		b.entries++
	}
}

// endGrant ends a grant; what is left of it expires.
func (b *balance) endGrant(g *grant) {
	if g.left > 0 {
		b.expired += g.left
		b.entries++
	}
	g.left, g.state = 0, "gone"
}

// closePeriod closes the open period at the instant `at` and opens the next period.
func (m *Model) closePeriod(k ledger.BalanceKey, b *balance, at time.Time, o *opening, c *rollover) {
	owing, forgiven := int64(0), b.forgiven
	switch {
	case b.overage > 0 && b.plan != "" && b.terms.preserve:
		owing = b.overage
	case b.overage > 0:
		forgiven = at
		b.entries++
	}
	closing := b.opening + b.granted + b.amended + b.refunded - b.used - b.expired + b.adjusted
	closed := b.closed
	if m.foresees.IsZero() { // nobody reads statements of time to come
		closed = append(closed, PeriodText(b.plan, b.start, at, [...]int64{
			b.opening, b.granted, b.amended, b.refunded, b.used, b.expired, b.adjusted, b.overage, b.overflow, m.held(k), closing,
		}))
	}
	o.owing, o.since, o.before = owing, period.Earlier(b.nominal, b.start), b.before+b.overage
	*b = balance{
		opening: closing, grants: b.grants, entries: b.entries, closed: closed, forgiven: forgiven,
		allowances: b.allowances, uses: b.uses, excess: b.excess, paidOff: b.paidOff, acted: b.acted, forgot: b.forgot,
	}
	if !m.foresees.IsZero() { // no operation names an allowance that begins and ends in time to come
		b.grants = slices.DeleteFunc(b.grants, func(g grant) bool {
			return g.state == "gone" && g.held == 0 && g.from.After(m.foresees)
		})
	}
	before := len(b.grants)
	m.open(k, b, at, o)
	if carry := c.moved + min(c.carry-c.moved, b.room()); carry > 0 {
		b.grants = append(b.grants, grant{
			id: "rollover:" + stamp(at), source: "rollover", amount: carry, left: carry, priority: 10, from: at, until: b.end, state: "active",
		})
		b.granted += carry - c.moved
	}
	if owing > 0 {
		b.overage, b.owed = owing, owing
		b.entries++
	}
	for i := before; i < len(b.grants); i++ { // the allowance, then the rollover
		b.payOwed(&b.grants[i], at)
	}
}

// payOwed uses g, a grant that opens with the period at the instant `at`, to pay overage of earlier periods.
func (b *balance) payOwed(g *grant, at time.Time) {
	n := min(b.owed, g.left)
	if n == 0 {
		return
	}
	g.left -= n
	b.paid += n
	if g.source == "rollover" {
		b.paidByRollover += n
	}
	b.spend(g, n, at)
	b.paidOff = append(b.paidOff, excess{at, n})
	b.overage -= n
	b.owed -= n
	b.entries++
}
