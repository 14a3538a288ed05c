package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (m *Model) refund(r *ledger.Refund) string {
	target := m.ops[r.OperationID]
	if target == nil {
		m.refuse(errcode.OperationNotFound)
	}
	if !target.refundable {
		m.refuse(errcode.InvalidArgument)
	}
	copied := *target
	copied.parts, copied.groups = slices.Clone(target.parts), slices.Clone(target.groups)
	target = &copied
	m.ops[r.OperationID] = target
	for i := range target.parts {
		m.touch(target.parts[i].balance)
	}
	items := 0
	left := map[int]int64{}
	for i := range target.parts {
		items = max(items, target.parts[i].item+1)
	}
	seen := map[int]bool{}
	for i := range items {
		for _, p := range target.parts {
			if p.item != i || p.balance.Subject != "" {
				continue
			}
			seen[i] = true
			if p.price > 0 {
				left[i] += p.amount - p.back
			}
		}
		for g := range target.priced(i) {
			left[i] += target.groups[g].units - target.groups[g].back
		}
		for price, cost := range target.bought(i) {
			left[i] += cost / price
		}
	}
	total := int64(0)
	for i := range items {
		total += left[i]
	}
	if r.Amount > 0 && max(len(seen), target.items) > 1 {
		m.refuse(errcode.InvalidArgument)
	}
	if r.Amount > total || total == 0 {
		m.refuse(errcode.RefundExceedsDebit)
	}
	answer := "ok"
	for i := range items {
		n := left[i]
		if r.Amount > 0 {
			n = r.Amount
		}
		if seen[i] && n > 0 {
			answer += m.refundItem(target, i, n, r)
		}
	}
	return answer
}

// bought returns, by price, the units that overflow meters have paid for an item and that were not given back.
func (op *operation) bought(item int) map[int64]int64 {
	out := map[int64]int64{}
	for _, p := range op.parts {
		if p.item == item && p.price < 0 && p.per == 1 && p.balance.Subject == "" {
			out[-p.price] += p.amount - p.back
		}
	}
	return out
}

// priced returns, by group, the units of the overflow meter that have paid for an item at a price that is not a whole
// number. Units that were given back are not included.
func (op *operation) priced(item int) map[int]int64 {
	out := map[int]int64{}
	for _, p := range op.parts {
		if p.item == item && p.price < 0 && p.per > 1 && p.balance.Subject == "" {
			out[p.group] += p.amount - p.back
		}
	}
	return out
}

// refundItem gives units of an item back. The units that were drawn last come first.
func (m *Model) refundItem(op *operation, item int, units int64, r *ledger.Refund) string {
	bought, costs := op.bought(item), map[int64]int64{}
	first := func(i int) bool {
		return i == 0 || op.parts[i-1].price > 0 || op.parts[i-1].per == 1 || op.parts[i-1].group != op.parts[i].group
	}
	tenant, subject, forfeited := units, units, int64(0)
	priced, stay := op.priced(item), map[int]int64{} // by group: paid units, and units that stay paid
	for i := len(op.parts) - 1; i >= 0; i-- {
		p := &op.parts[i]
		if p.item != item {
			continue
		}
		left := p.amount - p.back
		var n int64
		switch {
		case p.balance.Subject != "":
			n = min(left, subject)
			subject -= n
		case p.price < 0 && p.per > 1 && op.groups[p.group].hold != "":
			if g := &op.groups[p.group]; first(i) {
				back := min(tenant, g.units-g.back)
				tenant -= back
				g.back += back
				if back > 0 {
					forfeited += m.refundTab(g, back, r, fmt.Sprint("refund/", r.Key, "/", i+1))
				}
			}
			continue
		case p.price < 0 && p.per > 1:
			if _, ok := stay[p.group]; !ok {
				g := &op.groups[p.group]
				back := min(tenant, g.units-g.back)
				tenant -= back
				g.back += back
				terms := Terms{price: -p.price, per: p.per}
				stay[p.group] = min(priced[p.group], terms.costs(g.units-g.back))
				if back > 0 { // the entry with the number of refunded units
					m.balances[p.balance].entries++
				}
			}
			n = min(left, priced[p.group]-stay[p.group])
			priced[p.group] -= n
		case p.price < 0:
			price := -p.price
			if _, ok := costs[price]; !ok {
				costs[price] = min(tenant, bought[price]/price) * price
				tenant -= costs[price] / price
			}
			n = min(left, costs[price])
			costs[price] -= n
		default:
			n = min(left, tenant)
			tenant -= n
		}
		if n == 0 {
			continue
		}
		p.back += n
		b := m.balances[p.balance]
		if p.overage {
			forfeited += m.refundOverage(b, p, n, r, i+1)
			continue
		}
		b.entries++
		b.refunded += n
		g := b.grant(p.grant)
		b.uses = append(b.uses, use{p.at, g.of, -n})
		at := p.at
		if p.held && !at.Before(b.start) {
			at = time.Time{} // it was held when the period began
		}
		lost := b.restore(g, n, at, r.Return, m.Now, fmt.Sprint("refund/", r.Key, "/", i+1))
		if p.balance.Subject == "" {
			forfeited += lost
		}
	}
	return fmt.Sprintf(" [%d back, %d forfeited]", units, forfeited)
}

// refundOverage takes back n units of overage. For an earlier period it first takes back overage that is still owed.
// Then it takes back overage that grants of the open period have paid, beginning with the rollover's part. It returns
// the lost units.
func (m *Model) refundOverage(b *balance, p *usedPart, n int64, r *ledger.Refund, line int) int64 {
	if b.start.Equal(p.start) {
		b.overage -= n
		b.lessExcess(p.at, n)
		b.entries++
		return 0
	}
	b.lessExcess(p.at, n)
	if p.start.Before(b.forgiven) {
		if !p.at.Before(b.nominal) {
			b.before = max(0, b.before-n)
		}
		b.entries++
		return 0
	}
	lost, id := int64(0), fmt.Sprint("refund/", r.Key, "/", line)
	owed := min(n, b.owed)
	if owed > 0 {
		b.overage -= owed
		b.owed -= owed
		b.entries++
	}
	paid := min(n-owed, b.paid)
	byRollover := min(paid, b.paidByRollover)
	b.paid -= paid
	b.paidByRollover -= byRollover
	b.refunded += paid
	b.paidOff = append(b.paidOff, excess{m.Now, -paid})
	giveBack := func(grant string, n int64, from string) {
		g := b.grant(grant)
		b.entries++
		b.uses = append(b.uses, use{b.start, g.of, -n})
		lost += b.restore(g, n, b.start, r.Return, m.Now, from)
	}
	if byRollover > 0 {
		giveBack("rollover:"+stamp(b.start), byRollover, id+"/settled-by-rollover")
	}
	if back := paid - byRollover; back > 0 {
		giveBack("allowance:"+stamp(b.start), back, id+"/settled")
	}
	if ended := n - owed - paid; ended > 0 {
		b.entries++
		m.refundEnded(b, p, ended, r, id)
	}
	return lost
}

// refundEnded takes back n units of overage that an allowance of a closed period has paid. Without a regrant, only
// units that were taken off the open allowance come back.
func (m *Model) refundEnded(b *balance, p *usedPart, n int64, r *ledger.Refund, id string) {
	g := &grant{source: "allowance", state: "gone", priority: 10}
	for i := range b.allowances {
		if i != b.current && b.carries(i) {
			g.of = i
		}
	}
	b.uses = append(b.uses, use{p.at, g.of, -n})
	if r.Return != ledger.ReturnRegrant {
		b.refunded += b.returnCarried(g, n, p.at, m.Now, derivedID("carried-", id))
		return
	}
	b.refunded += n
	b.restore(g, n, p.at, r.Return, m.Now, id)
}

func (m *Model) adjust(a *ledger.Adjust) string {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: a.Meter})
	if a.Amount < 0 {
		if -a.Amount > b.remaining() {
			m.refuse(errcode.Conflict)
		}
		b.draw(-a.Amount, func(_ *grant, n int64) { b.adjusted -= n })
	} else {
		m.refuseIfFull(b)
		b.grants = append(b.grants, grant{
			id: derivedID("adjustment-", a.Key), source: "adjustment", amount: a.Amount, left: a.Amount, priority: 100,
			from: m.Now, until: farAway, state: "active",
		})
		b.adjusted += a.Amount
	}
	b.entries++
	return fmt.Sprintf("ok left %d", b.remaining())
}

// changeGrant voids or extends a grant.
func (m *Model) changeGrant(x *ledger.GrantChange) string {
	for _, k := range m.Keys() {
		b := m.balances[k]
		if b.grant(x.GrantID) == nil {
			continue
		}
		b = m.touch(k)
		g := b.grant(x.GrantID)
		if g.state == "gone" || g.state == "active" && g.left == 0 && g.held == 0 {
			m.refuse(errcode.Conflict)
		}
		if x.Action == ledger.ExtendGrant {
			m.extendGrant(g, x.ExpiresAt)
		} else {
			b.adjusted -= g.left
			g.left, g.state = 0, "gone"
		}
		b.entries++
		return fmt.Sprintf("ok left %d", b.remaining())
	}
	m.refuse(errcode.GrantNotFound)
	return ""
}

// extendGrant gives a later end to a grant that a client issued. A zero time `until` means that the grant never ends.
func (m *Model) extendGrant(g *grant, until time.Time) {
	if until.IsZero() {
		until = farAway
	}
	if g.until.Equal(farAway) || g.source != "topup" && g.source != "promo" && g.source != "adjustment" {
		m.refuse(errcode.Conflict)
	}
	if !until.After(g.until) {
		m.refuse(errcode.InvalidArgument)
	}
	g.until = until
}
