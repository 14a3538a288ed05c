package model

import (
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (b *balance) remaining() int64 {
	sum := int64(0)
	for _, g := range b.grants {
		if g.state == "active" {
			sum += g.left
		}
	}
	return sum
}

func (m *Model) held(k ledger.BalanceKey) int64 {
	sum := int64(0)
	for _, r := range m.reserves {
		if r.balance == k {
			sum += r.left
		}
	}
	return sum
}

// next returns the open grant that burns first among those that counts selects, nil when there is none. Grants of an
// allowance that are equal burn in the order in which they were given.
func (b *balance) next(counts func(*grant) bool) *grant {
	var best *grant
	for i := range b.grants {
		g := &b.grants[i]
		if g.state != "active" || g.left == 0 || !counts(g) {
			continue
		}
		if best == nil || g.priority < best.priority || g.priority == best.priority && (g.until.Before(best.until) ||
			g.until.Equal(best.until) && (g.from.Before(best.from) || g.from.Equal(best.from) && (g.of == 0 || best.of == 0) && g.id < best.id)) {
			best = g
		}
	}
	return best
}

// draw takes n units from the grants in burn order, and calls the function `each` with every part.
func (b *balance) draw(n int64, each func(g *grant, part int64)) {
	for n > 0 {
		g := b.next(func(*grant) bool { return true })
		part := min(n, g.left)
		g.left -= part
		n -= part
		each(g, part)
	}
}

// refuseIfFull refuses a grant to a balance that has as many open grants as it can have.
func (m *Model) refuseIfFull(b *balance) {
	open := 0
	for _, g := range b.grants {
		if g.state == "pending" || g.state == "active" && g.left+g.held > 0 {
			open++
		}
	}
	if open >= ledger.GrantsOpenMax {
		m.refuse(errcode.TooManyGrants)
	}
}

// giveBack gives reserved units back to their grant. If the grant has ended, policy decides where the units go.
func (m *Model) giveBack(r *reservation, n int64, policy ledger.ReturnPolicy, now time.Time) {
	b := m.balances[r.balance]
	r.left -= n
	g := b.grant(r.grant)
	g.held -= n
	b.entries++
	b.restore(g, n, time.Time{}, policy, now, fmt.Sprint("hold/", r.hold, "/", r.line, "/", n))
}

// restore gives n units back to g if g is active. Otherwise they go to the open allowance as far as they had been taken
// off it. policy decides whether the rest is issued anew or expires. The instant `at` is that of the debit, the zero
// time for held units. restore returns the lost units.
func (b *balance) restore(g *grant, n int64, at time.Time, policy ledger.ReturnPolicy, now time.Time, from string) (forfeited int64) {
	if g.state == "active" { // a hold that ends together with g ends first
		b.returnTo(g, n)
		return 0
	}
	n -= b.returnCarried(g, n, at, now, derivedID("carried-", from))
	switch {
	case n == 0:
	case policy == ledger.ReturnRegrant:
		until := period.Forever
		if g.source == "allowance" || g.source == "rollover" {
			until = b.end
		}
		b.grants = append(b.grants, grant{
			id: derivedID("regrant-", from), source: "refund", amount: n, left: n, priority: g.priority, from: now, until: until, state: "active",
		})
	default:
		b.expired += n
	}
	if policy == ledger.ReturnRegrant {
		return 0
	}
	return n
}
