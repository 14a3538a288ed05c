package model

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (m *Model) hold(h *ledger.Hold) string {
	m.refuseIfSuspended(h.Items[0].Meter)
	m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: h.Items[0].Meter})
	if m.holds[h.HoldID] != nil {
		m.refuse(errcode.Conflict)
	}
	until := m.Now.Add(h.TTL)
	row := &hold{state: "active", subject: h.Subject, until: until}
	for i, item := range h.Items {
		if m.skips(i) {
			continue
		}
		row.meters = append(row.meters, item.Meter)
		row.captured = append(row.captured, 0)
		own, over, _ := m.allocate(item.Meter, h.Subject, item.Amount, tab{})
		row.asked, row.bought = append(row.asked, item.Amount), append(row.bought, over)
		if units := own + over; units < item.Amount {
			own, over, _ = m.allocate(item.Meter, "", item.Amount, tab{})
			m.deny(i, item.Meter, h.Subject, item.Amount, units, own+over < item.Amount)
			continue
		}
		k := ledger.BalanceKey{Tenant: Tenant, Meter: item.Meter}
		b := m.touch(k)
		reserve := func(on ledger.BalanceKey, n, price int64, subject bool) {
			o := m.touch(on)
			o.draw(n, func(g *grant, part int64) {
				g.held += part
				m.reserves = append(m.reserves, reservation{
					hold: h.HoldID, item: i, line: m.reservesOf(h.HoldID) + 1, subject: subject, balance: on, grant: g.id,
					price: price, per: max(b.terms.per, 1), left: part, until: until,
				})
			})
			if n > 0 {
				o.entries++
			}
		}
		reserve(k, own, 1, false)
		if over > 0 {
			reserve(ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow}, b.terms.costs(over), -b.terms.price, false)
		}
		if h.Subject != "" && b.plan != "" && b.terms.perSubject != nil {
			reserve(ledger.BalanceKey{Tenant: Tenant, Meter: item.Meter, Subject: h.Subject}, own+over, 1, true)
		}
	}
	m.holds[h.HoldID] = row
	return m.showHold(h.HoldID)
}

// reservesOf returns the number of reservations that the hold has had.
func (m *Model) reservesOf(id string) int {
	n := 0
	for _, r := range m.reserves {
		if r.hold == id {
			n++
		}
	}
	return n
}

// heldUnits returns the number of units of item i that a hold still reserves.
func (m *Model) heldUnits(id string, i int) int64 {
	own, cost, price := int64(0), int64(0), int64(1)
	for _, r := range m.reserves {
		if r.hold != id || r.item != i || r.subject {
			continue
		}
		if r.price < 0 && r.per > 1 {
			if r.left > 0 {
				return max(0, m.holds[id].asked[i]-m.holds[id].captured[i])
			}
			continue
		}
		if r.price < 0 {
			cost, price = cost+r.left, -r.price
		} else {
			own += r.left
		}
	}
	return own + cost/price
}

func (m *Model) showHold(id string) string {
	h := m.holds[id]
	out := "ok " + h.state
	for i, meter := range h.meters {
		left := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter}).remaining()
		out += fmt.Sprintf(" [%s held %d captured %d left %d]", meter, m.heldUnits(id, i), h.captured[i], left)
	}
	return out
}

func (m *Model) change(op *operation, c *ledger.HoldChange) string {
	h := m.holds[c.HoldID]
	if h == nil {
		m.refuse(errcode.HoldNotFound)
	}
	left := int64(0)
	for i := range m.reserves {
		if m.reserves[i].hold == c.HoldID {
			m.touch(m.reserves[i].balance)
		}
	}
	for _, r := range m.reserves {
		if r.hold == c.HoldID {
			left += r.left
		}
	}
	if h.state != "active" || left == 0 {
		m.refuse(errcode.HoldNotActive)
	}
	release := func(ends func(*reservation) bool) {
		m.payTabs(c.HoldID, m.Now, ends)
		for i := range m.reserves {
			if r := &m.reserves[i]; r.hold == c.HoldID && r.left > 0 && ends(r) {
				m.giveBack(r, r.left, c.Return, m.Now)
			}
		}
	}
	switch c.Action {
	case ledger.ActionExtend:
		if until := m.Now.Add(c.TTL); until.After(h.until) {
			h.until = until
		}
		for i := range m.reserves {
			if m.reserves[i].hold == c.HoldID {
				m.reserves[i].until = h.until
			}
		}
	case ledger.ActionRelease:
		release(func(*reservation) bool { return true })
		h.state = "released"
		if slices.Max(h.captured) > 0 {
			h.state = "captured"
		}
	case ledger.ActionCapture:
		m.capture(c, h, op)
		goesOn := make([]bool, len(h.meters))
		for i := range h.meters {
			goesOn[i] = !c.Final && len(c.Items) > 0 && m.heldUnits(c.HoldID, i) > 0
		}
		release(func(r *reservation) bool { return !goesOn[r.item] })
		left = 0
		for _, r := range m.reserves {
			if r.hold == c.HoldID {
				left += r.left
			}
		}
		if left == 0 {
			h.state = "captured"
		}
	}
	return m.showHold(c.HoldID)
}

func (m *Model) capture(c *ledger.HoldChange, h *hold, op *operation) {
	op.refundable = true
	for i, meter := range h.meters {
		amount := m.heldUnits(c.HoldID, i)
		if len(c.Items) > 0 {
			at := slices.IndexFunc(c.Items, func(it ledger.Item) bool { return it.Meter == meter })
			if at < 0 {
				continue
			}
			amount = c.Items[at].Amount
		}
		if amount == 0 || m.skips(i) {
			continue
		}
		part := min(amount, m.heldUnits(c.HoldID, i))
		tenant, subject, cost := part, part, int64(-1)
		for j := range m.reserves {
			r := &m.reserves[j]
			if r.hold != c.HoldID || r.item != i {
				continue
			}
			var n int64
			switch {
			case r.subject:
				n = min(subject, r.left)
				subject -= n
			case r.price == 1:
				n = min(tenant, r.left)
				tenant -= n
			case r.per > 1:
				if r.left > 0 {
					m.captureTab(op, c, i, *r, tenant, h.asked[i]-h.captured[i]-part)
					tenant = 0
				}
				continue
			default:
				if cost < 0 {
					cost = tenant * -r.price
					m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter}).overflow += tenant
				}
				n = max(0, min(cost, r.left))
				cost -= n
			}
			if n == 0 {
				continue
			}
			r.left -= n
			b := m.balances[r.balance]
			g := b.grant(r.grant)
			g.held -= n
			b.spend(g, n, m.Now)
			op.parts = append(op.parts, usedPart{
				item: i, meter: meter, balance: r.balance, grant: r.grant, price: r.price, per: r.per,
				amount: n, at: m.Now, start: b.start, held: true,
			})
		}
		h.captured[i] += amount
		if extra := amount - part; extra > 0 {
			m.debitItem(op, i, meter, h.subject, extra, ledger.ModeNormal, c.HoldID)
		}
	}
	for _, item := range c.Items {
		if !slices.Contains(h.meters, item.Meter) {
			m.refuse(errcode.InvalidArgument)
		}
	}
}
