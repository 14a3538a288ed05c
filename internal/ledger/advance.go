package ledger

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// advanceStepsMax bounds the events that one transaction processes for one balance. 512 periods are about 1,500 rows.
// Further transactions process the rest before anything is decided on the balance.
const advanceStepsMax = 512

// entriesPerStep is more than the entries of a usual event. A run of idle periods that pay overage has up to 2,000, and
// many grants or holds may end together. So a transaction also ends when it has this number for each event allowed.
const entriesPerStep = 8

// due reports whether advance has anything to do at the instant `now`.
func (b *Book) due(now time.Time) bool { return !b.NextEvent.After(now) || b.changesBy(now) }

// changesBy reports whether terms change the open period by the instant `at`.
func (b *Book) changesBy(at time.Time) bool {
	t, when := b.nextChange()
	return t != nil && !when.After(at)
}

// advance processes every event due by the instant `now`, in the order in which they were due, as if each had
// been processed on time. At one instant, holds end first, then grants expire, then the period closes and the next
// opens, then grants take effect, then terms change. If it stops because it has made `most` steps, or has written
// entriesPerStep entries for each of these, it returns more = true. It stops only where the next thing is an event, so
// NextEvent says how far it came. The result depends only on the book and the arguments. Entries are appended to j with the instant `now`.
func (b *Book) advance(now time.Time, most int, j *[]Entry) (steps int, more bool, err error) {
	if b.Broken != nil || !b.due(now) {
		return 0, false, b.Broken
	}
	if !b.loaded {
		return 0, false, errNotLoaded
	}
	b.knowOnce()
	if !b.Opened() {
		if err := b.openFirst(j, now); err != nil {
			return 0, false, err
		}
	}
	for first := len(*j); b.due(now); steps++ {
		switch t, at := b.nextChange(); {
		case t != nil && at.Before(b.NextEvent):
			err = b.change(t, at, now, j)
		case steps >= most || len(*j)-first >= most*entriesPerStep:
			return steps, true, nil
		default:
			err = b.step(b.NextEvent, now, j)
		}
		if err != nil {
			return steps, false, err
		}
	}
	return steps, false, nil
}

// openFirst opens the period that contains the tenant's sign-up, even if the plan lacked the meter then. So the
// result does not depend on when the balance is first read.
func (b *Book) openFirst(j *[]Entry, now time.Time) error {
	t := b.Timeline.At(time.Time{})
	if t == nil {
		return errNotLoaded
	}
	p, err := t.Containing(t.since)
	if err != nil {
		return err
	}
	b.open(&opening{terms: t, period: p, worth: t.share(t.Allowance.Amount, t.since, p)}, t.since, j, now)
	return nil
}

// step processes everything due at one instant, and skips idle periods that end by the instant `now`. Holds come
// first, because the units that a hold returns may expire with their grant.
func (b *Book) step(due, now time.Time, j *[]Entry) error {
	for _, h := range b.Holds {
		if h.Open() > 0 && !h.ExpiresAt.After(due) {
			b.endLine(j, h, due, now)
		}
	}
	closes := !b.End.After(due)
	var to *opening
	if closes {
		var err error
		if to, err = b.nextOpening(); err != nil {
			return err
		}
		b.carryOver(to, due, now, j)
	}
	for _, g := range b.Grants {
		if g.Status == GrantActive && (!g.ExpiresAt.After(due) || closes && to.ends(b, g)) {
			b.expire(g, due, now, j)
		}
	}
	if closes {
		if err := b.roll(to, now, j); err != nil {
			return err
		}
		b.prune()
	}
	for _, g := range b.Grants {
		if g.Status == GrantPending && !g.EffectiveAt.After(due) {
			b.activate(g, due, now, j)
		}
	}
	b.refresh()
	return nil
}

// fromPlan reports whether the grant ends with a period.
func (g *OpenGrant) fromPlan() bool {
	return g.Source == SourceRollover || g.Source == SourceAllowance && !g.once()
}

// opening is the state with which the period after the open period begins.
type opening struct {
	terms    *Terms // terms in force at the start of the period
	period   period.Period
	worth    int64      // what its allowance is worth, before earlier use is taken off
	cut      bool       // a change of the interval ends the open period before its own end
	from     time.Time  // set after a change of the interval: the earlier use since this instant counts
	past     PastUse    // that use, without held units
	held     int64      // held units that count with it
	rollover *OpenGrant // units that move from the open period into the next; nil: no units move
	owing    int64      // overage that the next period owes
}

// ends reports whether a change of the interval ends g with the open period of b. What an earlier change let stay is
// touched by no later one.
func (o *opening) ends(b *Book, g *OpenGrant) bool {
	return o.cut && g.fromPlan() && g != o.rollover && (g.Source == SourceRollover || !o.terms.add && b.Timeline.fateOf(g, b.TermsAt) != kept)
}

// nextOpening returns the opening of the period that follows the open period, under the terms in force at its start. If
// the interval stays the same and the period begins between two boundaries of the schedule, a change of the time zone or
// of the anchor has moved the boundaries. Then it is a short period, with its share of the allowance.
func (b *Book) nextOpening() (*opening, error) {
	t := b.Timeline.At(b.End)
	if t == nil {
		return nil, errNotLoaded
	}
	p, err := t.Containing(b.End)
	if err != nil {
		return nil, err
	}
	o := &opening{terms: t, period: p, worth: t.Allowance.Amount, cut: b.cut}
	switch {
	case t.once() && t.kind() == b.kind():
	case t.once(): // overage goes on to count against the cap
		if o.from = b.CarriedFrom; o.from.IsZero() {
			o.from = b.Start
		}
		o.past.Overage = bound.SaturatingAdd(b.OverageBefore, b.Overage)
	case t.kind() != b.kind():
		return o, b.countPast(o)
	default:
		o.worth = part(o.worth, p.End.Sub(b.End), p.End.Sub(p.Start))
	}
	return o, nil
}

// countPast adds to o the use that counts after a change of the interval. It counts from the instant at which a period of
// the new interval would have begun.
func (b *Book) countPast(o *opening) (err error) {
	t := o.terms
	o.from, o.worth = o.period.Start, t.share(t.Allowance.Amount, b.End, o.period)
	if o.past, err = b.pastUse(o.from); err != nil {
		return err
	}
	switch {
	case t.reset || t.add:
		o.past.Drawn = 0
		return nil
	case t.prorate:
		p := o.period
		o.worth = b.Timeline.prorated(t, p.Start, p.End, p.End.Sub(p.Start))
	}
	o.held = b.heldSince(o.from)
	return nil
}

// rollsOver reports whether units of g may move into the next period. If a change of the interval ends the period, the
// next allowance contains what is left of this allowance. Then only units of an earlier rollover may move. What a change
// let stay beside a new allowance ends with the period.
func (o *opening) rollsOver(b *Book, g *OpenGrant) bool {
	return g.Status == GrantActive && g.fromPlan() && (g.Source == SourceRollover || !o.cut && b.isAllowance(g) && !g.ExpiresAt.After(b.End))
}

// carryOver moves unused units of the plan's grants into a rollover grant of the next period. The terms of the
// closing period limit the number of these units. The units stay part of remaining. If fewer units are left than the
// terms' minimum, the next period grants the difference.
func (b *Book) carryOver(o *opening, due, now time.Time, j *[]Entry) {
	left := int64(0)
	for _, g := range b.Grants {
		if o.rollsOver(b, g) {
			left += g.Remaining
		}
	}
	carry := left
	switch {
	case b.Subject != "":
		return
	case !o.cut && b.Terms.rolls():
		carry = b.Terms.carry(left)
	case !o.cut:
		return
	}
	if carry == 0 {
		return
	}
	to := b.newRollover(carry, b.End, o.period.End, now)
	moved := min(carry, left)
	excess := left - moved
	n := int32(0)
	for _, g := range b.Grants {
		if !o.rollsOver(b, g) || g.Remaining == 0 {
			continue
		}
		lost := min(excess, g.Remaining) // the units that would burn first are lost
		excess -= lost
		part := g.Remaining - lost
		if part == 0 {
			continue
		}
		b.setRemaining(g, lost)
		to.Remaining += part
		n += 2
		b.enterDue(j, EntryRolloverOut, to.OperationID, n-1, g, part, due, now)
		b.enterDue(j, EntryRolloverIn, to.OperationID, n, to, part, due, now)
	}
	o.rollover = to
	b.addGrant(to)
}

// newRollover returns an empty grant for units that roll over into the period [start, end).
func (b *Book) newRollover(amount int64, start, end, now time.Time) *OpenGrant {
	return &OpenGrant{isNew: true, GrantRecord: GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: prefixRollover + instantID(start), Source: SourceRollover,
		Amount: amount, Priority: PriorityAllowance, EffectiveAt: start, ExpiresAt: end, Status: GrantActive,
		OperationID: systemID("rollover", b.BalanceKey, instantID(start)), CreatedAt: now,
	}}
}

// expire ends a grant and writes an entry for the units that were left.
func (b *Book) expire(g *OpenGrant, due, now time.Time, j *[]Entry) {
	if lost := b.end(g); lost > 0 {
		b.enterDue(j, EntryExpire, systemID("expire", b.BalanceKey, g.ID), 1, g, lost, due, now)
	}
}

// end takes what is left from a grant that expires, and returns it.
func (b *Book) end(g *OpenGrant) (lost int64) {
	lost = g.Remaining
	b.setRemaining(g, 0)
	g.Status, g.changed = GrantExpired, true
	return lost
}

// prune removes from Grants the grants that began and ended while advance ran. Otherwise every step would visit the
// grants of all earlier steps. No request can name such a grant, and no units can return to it.
func (b *Book) prune() {
	b.Grants = slices.DeleteFunc(b.Grants, func(g *OpenGrant) bool {
		ended := g.isNew && g.Held == 0 && g.Status == GrantExpired
		if ended {
			b.ended = append(b.ended, g)
		}
		return ended
	})
}

// activate makes a pending grant spendable.
func (b *Book) activate(g *OpenGrant, due, now time.Time, j *[]Entry) {
	g.Status, g.changed = GrantActive, true
	g.Remaining = g.Amount
	b.enterDue(j, EntryGrant, systemID("effective", b.BalanceKey, g.ID), 1, g, g.Amount, due, now)
}

// roll closes the open period at its end, skips the idle periods that end by the instant `now`, and opens the next
// period.
func (b *Book) roll(o *opening, now time.Time, j *[]Entry) error {
	at := b.End
	closing := b.Remaining() + b.Held
	o.owing = b.closeOverage(at, now, j)
	sums := b.Sums
	sums.Owed, sums.Paid = 0, 0
	b.Closed = append(b.Closed, PeriodRow{
		BalanceKey: b.BalanceKey, Sums: sums, Start: b.Start, End: at, Plan: b.Plan, PlanVersion: b.PlanVersion,
		Closing: closing, LastSeq: b.Seq, ClosedAt: period.Later(now, at),
	})
	b.Sums = Sums{Opening: closing, Held: b.Held}
	if n, end := b.idleRun(o, now); n > 0 {
		var err error
		if o, err = b.skipIdle(o, n, end, now, j); err != nil {
			return err
		}
	}
	b.open(o, b.End, j, now)
	return nil
}

// open starts the period that o describes and issues its allowance. The argument `due` is the instant at which the
// opening was due. Only the first period of a balance may begin before that instant.
func (b *Book) open(o *opening, due time.Time, j *[]Entry, now time.Time) {
	t, p := o.terms, o.period
	if b.Opened() {
		p.Start = due
	}
	b.Start, b.End, b.AllowanceAt, b.TermsAt, b.cut, b.changed = p.Start, p.End, p.Start, period.Later(b.TermsAt, t.since), false, true
	b.CarriedFrom, b.Carried, b.OverageBefore = o.from, bound.SaturatingAdd(o.past.Drawn, o.held), max(0, o.past.Overage-o.owing)
	b.Entitled, b.Short = o.worth, max(0, b.Carried-o.worth)
	b.agree(t)
	var g *OpenGrant
	amount := max(0, b.Entitled-b.Carried)
	if given := min(amount, b.room()); given < amount {
		b.Entitled -= amount - given
		amount = given
	}
	if t.kind() == period.Once && t.reset {
		for _, g := range b.givenOnce(t) {
			b.expire(g, due, now, j)
		}
	}
	if amount > 0 && t.Grants && !t.gaveOnce() {
		g = b.newAllowance(systemID(t.event("allowance"), b.BalanceKey, instantID(p.Start)), amount, p.Start, b.allowanceEnd(t), now)
		b.addGrant(g)
		b.enterDue(j, EntryGrant, g.OperationID, 1, g, amount, due, now)
	}
	if r := o.rollover; r != nil {
		extra := max(0, min(r.Amount-r.Remaining, b.room()))
		switch r.Amount = r.Remaining + extra; {
		case r.Amount == 0: // nothing rolled over, and the minimum does not fit
			b.Grants = slices.DeleteFunc(b.Grants, func(g *OpenGrant) bool { return g == r })
			o.rollover = nil
		case extra > 0:
			minimum := systemID("rollover-min", b.BalanceKey, instantID(p.Start))
			if r.Remaining == 0 {
				r.OperationID = minimum // nothing rolled over: this operation creates the grant
			}
			b.setRemaining(r, r.Amount)
			b.enterDue(j, EntryGrant, minimum, 1, r, extra, due, now)
		}
	}
	b.openOverage(o.owing, []*OpenGrant{g, o.rollover}, due, now, j)
	b.active = false // the entries of the opening do not count as use
	b.refresh()
}

// allowanceID returns the id of the allowance of the period that begins at the instant `start`.
func allowanceID(start time.Time) string {
	return prefixAllowance + instantID(start)
}

func instantID(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// systemID returns the id of an operation that the ledger makes by itself. A decision, a roll and a retry create the
// same id for the same event. The character § cannot occur in a client's key. Two events of a tenant have different ids.
func systemID(event string, k BalanceKey, which string) string {
	return "§" + event + "/" + bound.Join(k.Meter, k.Subject, which)
}
