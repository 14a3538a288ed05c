package model

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// allowance is what a plan gives for one period, or once. Several grants may belong to it.
type allowance struct {
	plan    string        // the plan of a once-only allowance
	once    bool          // it ends at its own end, whatever plan follows
	gave    bool          // a once-only allowance whose amount was not always 0
	kept    bool          // a change let it stay beside a new allowance
	apart   bool          // a newer allowance was given anew: no change acts on it
	from    time.Time     // the whole amount counts from this instant on
	end     time.Time     // end of its grants
	length  time.Duration // of the nominal period; 0: once
	amounts []span
	worth   int64 // what it is worth under the terms in force
	short   int64 // draws, holds and carried units beyond its worth
}

// span is an amount that was in force from an instant on.
type span struct {
	at     time.Time
	amount int64
}

// use is a draw from an allowance, negative for units that were refunded. It has the instant of the debit.
type use struct {
	at time.Time
	of int // index of the allowance
	n  int64
}

// excess is overage that was not refunded, or overage that allowances and rollovers have paid.
type excess struct {
	at time.Time
	n  int64
}

// since sums what came at an instant or later.
func since(at time.Time, all []excess) (sum int64) {
	for _, e := range all {
		if !e.at.Before(at) {
			sum += e.n
		}
	}
	return sum
}

// share returns the part of an amount for the time between two instants, in units times microseconds.
func share(amount int64, from, until time.Time) int64 {
	return amount * int64(until.Sub(from)/time.Microsecond)
}

// whole returns what an amount is worth if it was in force all the time.
func (a *allowance) whole(amount int64) int64 {
	if a.once {
		return amount
	}
	return share(amount, a.from, a.end) / int64(a.length/time.Microsecond)
}

// prorated returns the sum of the amounts, each for the time in which it was in force.
func (a *allowance) prorated() int64 {
	sum, until := int64(0), a.end
	for _, s := range slices.Backward(a.amounts) {
		sum += share(s.amount, s.at, until)
		until = s.at
	}
	return sum / int64(a.length/time.Microsecond)
}

// acted are terms that took effect, for new periods or in the open one.
type acted struct {
	at     time.Time
	kind   kind
	amount int64
}

// act notes the terms in force from an instant on, if they differ from those before.
func (b *balance) act(at time.Time) {
	a := acted{at, b.kind(), b.terms.amount}
	if n := len(b.acted); n == 0 || b.acted[n-1].kind != a.kind || b.acted[n-1].amount != a.amount {
		b.acted = append(slices.Clip(b.acted), a)
	}
}

// inForce returns the amounts in force from an instant on. Amounts of another kind of period count as 0.
func (b *balance) inForce(from time.Time) (amounts []span) {
	for i, a := range b.acted {
		if a.kind != b.kind() {
			a.amount = 0
		}
		if i == 0 || !a.at.After(from) {
			amounts, a.at = nil, from
		}
		amounts = append(amounts, span{a.at, a.amount})
	}
	return amounts
}

// give gives a new allowance from the instant `at` on, less the units that are carried. Prorated, an allowance that is
// given anew counts from then on, and every other one for the time in which its amounts were in force.
func (b *balance) give(a allowance, amount, carried int64, id string, at time.Time, c *PlanChange) (of int) {
	a.amounts, a.worth = []span{{at, amount}}, a.whole(amount)
	if !a.once {
		if !c.Prorate || !c.anew() {
			a.amounts = b.inForce(a.from)
		}
		if c.Prorate {
			a.worth = a.prorated()
		}
	}
	n := max(0, a.worth-carried)
	a.short = max(0, carried-a.worth)
	if room := b.room(); n > room {
		a.worth -= n - room // units that do not fit are never given
		n = room
	}
	b.allowances = append(b.allowances, a)
	of = len(b.allowances) - 1
	if n > 0 {
		b.granted += n
		b.issue(of, "allowance:"+id, n, at)
	}
	return of
}

// issue adds a grant of n units to an allowance.
func (b *balance) issue(of int, id string, n int64, from time.Time) {
	b.grants = append(b.grants, grant{
		id: id, source: "allowance", of: of, amount: n, left: n, priority: 10, from: from,
		until: b.allowances[of].end, state: "active",
	})
	b.entries++
}

// left returns what is left in the grants of an allowance.
func (b *balance) left(of int) int64 {
	sum := int64(0)
	for _, g := range b.grants {
		if g.of == of && g.state == "active" {
			sum += g.left
		}
	}
	return sum
}

// amend changes an allowance to another amount from the instant `at` on. If more was drawn and is held than the
// allowance is then worth, nothing remains, and the difference is short.
func (b *balance) amend(of int, amount int64, at time.Time, prorate bool) {
	a := &b.allowances[of]
	a.gave = a.gave || amount > 0 // also if its time is over
	if amount == a.amounts[len(a.amounts)-1].amount || !a.end.After(at) {
		return
	}
	a.amounts = append(slices.Clip(a.amounts), span{at, amount})
	worth := a.whole(amount)
	if prorate && !a.once {
		worth = max(a.prorated(), b.drawnOf(of))
	}
	left := b.left(of)
	rest := left - a.short + worth - a.worth
	a.worth, a.short = worth, max(0, -rest)
	if more := max(0, rest) - left; more > 0 {
		n := min(more, b.room())
		a.worth -= more - n
		b.amended += n
		if n > 0 {
			b.issue(of, "amend:"+stamp(at), n, at)
		}
		return
	}
	if less := left - max(0, rest); less > 0 {
		b.amended -= less
		b.entries++
		b.takeOff(of, less)
	}
}

// takeOff takes n units off the grants of an allowance, in burn order.
func (b *balance) takeOff(of int, n int64) {
	for n > 0 {
		g := b.next(func(g *grant) bool { return g.of == of })
		part := min(n, g.left)
		g.left -= part
		n -= part
	}
}

// replace gives the allowance of the open period anew, with its grants until the same end.
func (b *balance) replace(amount int64, at time.Time, c *PlanChange) {
	old := b.allowances[b.current]
	b.setApart(c)
	b.current = b.give(allowance{from: old.from, end: old.end, length: old.length}, amount, 0, stamp(at), at, c)
	b.carried, b.carriedFrom = 0, period.Forever
}

// setApart sets all allowances of periods apart before a new one is given anew. With reset, the rest of the open
// period's allowance expires.
func (b *balance) setApart(c *PlanChange) {
	for i := range b.allowances {
		a := &b.allowances[i]
		if c.Reset && i > 0 && i == b.current && !a.apart && !a.once {
			b.expireAllowance(i)
		}
		a.kept = a.kept || c.Add && i > 0 && i == b.current && !a.once
		a.apart = a.apart || i > 0 && !a.once
	}
}

// expireAllowance ends the grants of an allowance.
func (b *balance) expireAllowance(of int) {
	for i := range b.grants {
		if g := &b.grants[i]; g.of == of && g.state == "active" {
			b.endGrant(g)
		}
	}
}

// giveOnce gives the once-only allowance of the plan in force, or changes its amount. A plan gives it once, unless the
// change c gives it anew. If the plan comes back, nothing is given, and a change of its amount counts from then on.
func (b *balance) giveOnce(at time.Time, c *PlanChange, id string) {
	again := b.gift > 0 && b.allowances[b.gift].plan == b.plan
	if again && !c.anew() {
		b.amend(b.gift, b.terms.amount, at, false)
		return
	}
	given := false
	for i := range b.allowances {
		a := &b.allowances[i]
		if !a.once {
			continue
		}
		a.apart = true
		b.forget(a)
		if given = given || a.plan == b.plan && a.gave; c.Reset && a.plan == b.plan {
			b.expireAllowance(i)
		}
	}
	a := allowance{plan: b.plan, once: true, from: at, end: period.Forever}
	if b.terms.lasts > 0 {
		a.end = at.Add(b.terms.lasts)
	}
	if given && !c.anew() {
		a.gave, a.worth, a.amounts = true, b.terms.amount, []span{{at, b.terms.amount}}
		b.allowances = append(b.allowances, a)
		b.gift = len(b.allowances) - 1
		return
	}
	a.gave = b.terms.amount > 0
	b.gift = b.give(a, b.terms.amount, 0, id, at, c)
}

// forget ends a shortage: with its period, or when the plan that gave a once-only allowance is left.
func (b *balance) forget(a *allowance) {
	b.forgot = b.forgot || a.once && a.short > 0
	a.short = 0
}

// carries reports whether draws and holds of an allowance reduce an allowance that follows.
func (b *balance) carries(of int) bool {
	return of > 0 && !b.allowances[of].once && !b.allowances[of].kept
}

// ends reports whether an allowance ends with its period.
func (b *balance) ends(of int) bool {
	return of > 0 && !b.allowances[of].once && !b.allowances[of].apart
}

// drawn returns the units that were drawn since an instant from allowances of periods.
func (b *balance) drawn(since time.Time) int64 {
	sum := int64(0)
	for _, u := range b.uses {
		if b.carries(u.of) && !u.at.Before(since) {
			sum += u.n
		}
	}
	return max(0, sum)
}

// drawnOf returns the units that were drawn of an open allowance, with the carried ones.
func (b *balance) drawnOf(of int) int64 {
	sum := b.carried
	for _, u := range b.uses {
		if u.of == of {
			sum += u.n
		}
	}
	return sum
}

// heldAfter returns the held units of allowances of periods that end, or would have ended, after an instant.
func (b *balance) heldAfter(t time.Time) int64 {
	sum := int64(0)
	for _, g := range b.grants {
		if b.carries(g.of) && g.until.After(t) {
			sum += g.held
		}
	}
	return sum
}

// spend counts n units as drawn from a grant.
func (b *balance) spend(g *grant, n int64, at time.Time) {
	b.used += n
	b.uses = append(b.uses, use{at, g.of, n})
}

// exceed counts n units as overage.
func (b *balance) exceed(n int64, at time.Time) {
	b.overage += n
	b.excess = append(b.excess, excess{at: at, n: n})
}

// lessExcess takes n refunded units off the overage that was used at the instant `at`.
func (b *balance) lessExcess(at time.Time, n int64) {
	for i := range b.excess {
		if e := &b.excess[i]; e.at.Equal(at) {
			part := min(n, e.n)
			e.n -= part
			n -= part
		}
	}
}

// returnTo gives n units back to grant g of the allowance to which it belongs. Units that the allowance lacks are taken
// off again.
func (b *balance) returnTo(g *grant, n int64) {
	if g.of > 0 && !b.allowances[g.of].apart {
		n -= b.makeUp(g.of, n)
	}
	g.left += n
}

// makeUp takes up to n units off again that an allowance lacks, and returns their number.
func (b *balance) makeUp(of int, n int64) int64 {
	a := &b.allowances[of]
	part := min(n, a.short)
	a.short -= part
	b.amended -= part
	return part
}

// returnCarried gives units of an earlier allowance to the open one, as far as they had been taken off it. It returns
// the number of these units. The instant `at` is that of the debit, the zero time for held units. A hold that ends
// together with the open period gives nothing to it.
func (b *balance) returnCarried(g *grant, n int64, at, now time.Time, id string) int64 {
	counts := !at.Before(b.carriedFrom)
	if at.IsZero() {
		counts = g.until.After(b.nominal)
	}
	if !counts || g.of == b.current || !b.carries(g.of) || !b.end.After(now) {
		return 0
	}
	k := min(n, b.carried)
	b.carried -= k
	if more := k - b.makeUp(b.current, k); more > 0 {
		b.issue(b.current, id, more, now)
	}
	return k
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.999999Z") }

// kind returns the kind of the open period.
func (b *balance) kind() kind { return kindOf(b.plan, &b.terms) }
