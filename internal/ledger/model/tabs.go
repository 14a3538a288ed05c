package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// tab is the bill of a hold for one item at one price that is not a whole number. After any captures and refunds, the
// payer has paid the price of the used units, rounded up once. While other units of the item are reserved, one unit of
// the payer may stay reserved with them. Then the payer has paid one unit less.
type tab struct {
	item        int
	payer       ledger.BalanceKey
	price, per  int64
	used, taken int64
	paid        []tabPart // by line
}

// tabPart is the number of units that one reservation has paid, without the units that were given back.
type tabPart struct {
	line  int
	grant string
	n     int64
}

func (t *tab) costs(n int64) int64 {
	terms := Terms{price: t.price, per: t.per}
	return terms.costs(n)
}

// late returns how many units of the payer are due but still reserved: 0 or 1.
func (t *tab) late() int64 { return min(1, max(0, t.costs(t.used)-t.taken)) }

func (t *tab) pay(line int, grant string, n int64) {
	t.taken += n
	byLine := func(p tabPart, line int) int { return cmp.Compare(p.line, line) }
	at, found := slices.BinarySearchFunc(t.paid, line, byLine)
	if !found {
		t.paid = slices.Insert(t.paid, at, tabPart{line: line, grant: grant})
	}
	t.paid[at].n += n
}

// tabOf returns the index of a hold's tab. It opens the tab if there is none.
func (m *Model) tabOf(id string, item int, payer ledger.BalanceKey, price, per int64) int {
	h := m.holds[id]
	at := slices.IndexFunc(h.tabs, func(t tab) bool {
		return t.item == item && t.payer == payer && t.price == price && t.per == per
	})
	if at < 0 {
		at = len(h.tabs)
		h.tabs = append(h.tabs, tab{item: item, payer: payer, price: price, per: per})
	}
	return at
}

// tabFor returns the tab of a hold under the present terms of the item. It returns the zero tab if there is no hold, or
// if the price is a whole number.
func (m *Model) tabFor(id string, item int, b *balance) tab {
	if id == "" || b.plan == "" || b.terms.overflow == "" || b.terms.per <= 1 {
		return tab{}
	}
	payer := ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow}
	return m.holds[id].tabs[m.tabOf(id, item, payer, b.terms.price, b.terms.per)]
}

// reservesFor lists the open reservations that pay a tab.
func (m *Model) reservesFor(id string, t *tab) []*reservation {
	var out []*reservation
	for i := range m.reserves {
		r := &m.reserves[i]
		pays := r.item == t.item && !r.subject && r.balance == t.payer && -r.price == t.price && r.per == t.per
		if pays && r.hold == id && r.left > 0 {
			out = append(out, r)
		}
	}
	return out
}

// take captures n units of a reservation for a tab at the instant `at`.
func (m *Model) take(r *reservation, t *tab, n int64, at time.Time) {
	r.left -= n
	b := m.balances[r.balance]
	g := b.grant(r.grant)
	g.held -= n
	b.spend(g, n, at)
	b.entries++
	t.pay(r.line, r.grant, n)
}

// captureTab captures units of an item. r is the first open reservation of the payer for the item. left is the number
// of the item's units that stay reserved.
func (m *Model) captureTab(op *operation, c *ledger.HoldChange, item int, r reservation, units, left int64) {
	if units == 0 {
		return
	}
	at := m.tabOf(c.HoldID, item, r.balance, -r.price, r.per)
	m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: m.holds[c.HoldID].meters[item]}).overflow += units
	t := &m.holds[c.HoldID].tabs[at]
	op.groups = append(op.groups, group{item: int64(item), units: units, hold: c.HoldID, tab: at, at: m.Now})
	t.used += units
	due, open, keep := max(0, t.costs(t.used)-t.taken), int64(0), int64(0)
	reserves := m.reservesFor(c.HoldID, t)
	for _, o := range reserves {
		open += o.left
	}
	if left > 0 && !c.Final {
		keep = 1
	}
	now := min(due, max(0, open-keep))
	missing := due - now - min(due-now, keep)
	entered := len(op.parts)
	for _, o := range reserves {
		if n := min(now, o.left); n > 0 {
			now -= n
			m.take(o, t, n, m.Now)
			m.bill(op, item, o.balance, true)
		}
	}
	if missing > 0 {
		if have := m.touch(t.payer).remaining(); have < missing {
			m.deny(item, t.payer.Meter, "", missing, have, true)
			l := &m.trial.lacks[len(m.trial.lacks)-1]
			l.unstored = len(c.Items) == 0
			return
		}
		m.draw(op, c.HoldID, t, missing)
	}
	if len(op.parts) == entered { // an entry without an amount records the units
		m.balances[r.balance].entries++
		m.bill(op, item, r.balance, true)
	}
}

// bill adds a part for an entry to the operation. The part has no amount, because a refund uses the amounts of the tab.
// If charged is false, the entry is about units that were reserved.
func (m *Model) bill(op *operation, item int, payer ledger.BalanceKey, charged bool) {
	p := usedPart{item: item, balance: payer, price: 1, per: 1}
	if charged {
		p.price, p.per, p.group = -1, 2, len(op.groups)-1
	}
	op.parts = append(op.parts, p)
}

// draw pays n units from the payer's grants, beyond the units that the hold has reserved. The hold gets a reservation
// for each grant, which is captured at once.
func (m *Model) draw(op *operation, id string, t *tab, n int64) {
	b := m.touch(t.payer)
	var drawn []*grant
	var amounts []int64
	b.draw(n, func(g *grant, part int64) {
		drawn, amounts = append(drawn, g), append(amounts, part)
		b.spend(g, part, m.Now)
		b.entries++
		m.bill(op, t.item, t.payer, false)
	})
	for i, g := range drawn {
		line := m.reservesOf(id) + 1
		m.reserves = append(m.reserves, reservation{
			hold: id, item: t.item, line: line, balance: t.payer, grant: g.id,
			price: -t.price, per: t.per, until: m.holds[id].until,
		})
		t.pay(line, g.id, amounts[i])
		m.bill(op, t.item, t.payer, true)
	}
}

// buyMore charges units of an item that go beyond the hold to the overflow meter.
func (m *Model) buyMore(op *operation, id string, item int, b *balance, units int64) {
	payer := ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow}
	at := m.tabOf(id, item, payer, b.terms.price, b.terms.per)
	t := &m.holds[id].tabs[at]
	op.groups = append(op.groups, group{item: int64(item), units: units, hold: id, tab: at, at: m.Now})
	t.used += units
	if cost := max(0, t.costs(t.used)-t.taken); cost > 0 {
		m.draw(op, id, t, cost)
		return
	}
	m.balances[payer].entries++
	m.bill(op, item, payer, true)
}

// payTabs takes the unit of each tab that is due but still reserved, if its reservation ends at the instant `at`. This
// is the last open reservation of the tab.
func (m *Model) payTabs(id string, at time.Time, ends func(*reservation) bool) {
	h := m.holds[id]
	for i := range h.tabs {
		t := &h.tabs[i]
		reserves := m.reservesFor(id, t)
		if len(reserves) == 0 || t.late() == 0 {
			continue
		}
		if last := reserves[len(reserves)-1]; ends(last) {
			m.take(last, t, 1, at)
		}
	}
}

// refundTab gives back units of an item that a tab has paid. It also gives back the units of the payer that the
// remaining used units do not cost. It returns the forfeited units.
func (m *Model) refundTab(g *group, units int64, r *ledger.Refund, from string) (forfeited int64) {
	t := &m.holds[g.hold].tabs[g.tab]
	t.used -= units
	back := max(0, t.taken-t.costs(max(0, t.used)))
	t.taken -= back
	b := m.balances[t.payer]
	b.refunded += back
	b.entries++
	ended, last := int64(0), tabPart{}
	for i := len(t.paid) - 1; i >= 0 && back > 0; i-- {
		p := &t.paid[i]
		n := min(back, p.n)
		if n == 0 {
			continue
		}
		back -= n
		p.n -= n
		to := b.grant(p.grant)
		if to.state == "active" {
			b.uses = append(b.uses, use{g.at, to.of, -n})
			b.returnTo(to, n)
			continue
		}
		if ended == 0 {
			last = *p
		}
		ended += n
	}
	if ended > 0 {
		source := b.grant(last.grant) // all of it comes back as units of this grant
		b.uses = append(b.uses, use{g.at, source.of, -ended})
		forfeited = b.restore(source, ended, g.at, r.Return, m.Now, from)
	}
	return forfeited
}
