package ledger

import (
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// advanceStepsMax bounds the events that one transaction works off for one balance: 512 periods are about 1,500 rows. Further
// transactions work off the rest before anything is decided on the balance.
const advanceStepsMax = 512

// due reports whether advance has anything to do at now.
func (b *Book) due(now time.Time) bool { return !b.NextEvent.After(now) || b.endedByTerms() }

// endedByTerms reports whether new terms end the open period before its own end.
func (b *Book) endedByTerms() bool {
	if !b.Opened() || len(b.Timeline) == 0 {
		return false
	}
	_, ends := b.Timeline.endsPeriod(&b.BalanceRow)
	return ends
}

// advance works off every event due at or before now: see advanceTo.
func (b *Book) advance(now time.Time, j *[]Entry) (more bool, err error) {
	_, more, err = b.advanceTo(now, now, advanceStepsMax, j)
	return more, err
}

// advanceTo works off every event due at or before until, in the order in which they were due, as if a clock had done it in time.
// At one instant, holds end first, then grants expire, then the period closes and the next opens, then grants take effect. It
// returns more = true when it stopped after most steps. It depends on the book and its arguments only; entries go to j with the instant now.
func (b *Book) advanceTo(until, now time.Time, most int, j *[]Entry) (steps int, more bool, err error) {
	if !b.due(until) {
		return 0, false, nil
	}
	if !b.loaded {
		return 0, false, errNotLoaded
	}
	if !b.Opened() {
		if err := b.openFirst(j, now); err != nil {
			return 0, false, err
		}
	}
	b.cutOpenPeriod()
	for ; !b.NextEvent.After(until); steps++ {
		if steps == most {
			return steps, true, nil
		}
		if err := b.step(b.NextEvent, now, j); err != nil {
			return steps, false, err
		}
		b.cutOpenPeriod()
	}
	return steps, false, nil
}

// cutOpenPeriod gives the open period the end that new terms set. The end never lies before what was written when the book was
// read: an entry stays in its period even if the change of terms has an earlier instant and was committed later.
func (b *Book) cutOpenPeriod() {
	if !b.endedByTerms() {
		return
	}
	at, _ := b.Timeline.endsPeriod(&b.BalanceRow)
	b.End = Later(at, b.writtenAt)
	b.changed = true
	b.refresh()
}

// openFirst opens the period that contains the tenant's sign-up, even if the plan lacked the meter then, so that the result does not
// depend on when the balance is first read.
func (b *Book) openFirst(j *[]Entry, now time.Time) error {
	t := b.Timeline.At(time.Time{})
	if t == nil {
		return errNotLoaded
	}
	p, err := t.Containing(t.since)
	if err != nil {
		return err
	}
	b.open(t, p, t.since, j, now)
	return nil
}

// step works off everything due at one instant. Holds come first: what they give back expires with its grant.
func (b *Book) step(due, now time.Time, j *[]Entry) error {
	for _, h := range b.Holds {
		if n := h.Open(); n > 0 && !h.ExpiresAt.After(due) {
			b.giveBack(j, h, n, ReturnForfeit, systemID("hold-expire", b.BalanceKey, fmt.Sprint(h.HoldID, "/", h.Line)), due, now)
		}
	}
	closes := !b.End.After(due)
	var next period.Period
	if closes {
		var err error
		if next, err = b.nextPeriod(); err != nil {
			return err
		}
		b.carryOver(next, due, now, j)
	}
	for _, g := range b.Grants {
		if g.Status == GrantActive && (!g.ExpiresAt.After(due) || closes && g.fromPlan() && g != b.carried) {
			b.expire(g, due, now, j)
		}
	}
	if closes {
		b.roll(next, now, j)
	}
	for _, g := range b.Grants {
		if g.Status == GrantPending && !g.EffectiveAt.After(due) {
			b.activate(g, due, now, j)
		}
	}
	b.refresh()
	return nil
}

// fromPlan reports whether the grant ends with its period, even when the period is cut short.
func (g *OpenGrant) fromPlan() bool {
	return (g.Source == SourceAllowance || g.Source == SourceRollover) && g.ExpiresAt.Before(period.Forever)
}

// nextPeriod returns the period that follows the open one, under the terms in force at its start.
func (b *Book) nextPeriod() (period.Period, error) {
	t := b.Timeline.At(b.End)
	if t == nil {
		return period.Period{}, errNotLoaded
	}
	return t.Containing(b.End)
}

// carryOver moves unused units of the plan's grants into a rollover grant of the next period, as far as the terms of the closing period
// allow. The units stay part of remaining. If the terms' minimum is more than what is left, the next period grants the difference.
func (b *Book) carryOver(next period.Period, due, now time.Time, j *[]Entry) {
	a := b.Terms
	if b.Subject != "" || !a.rolls() {
		return
	}
	left := int64(0)
	for _, g := range b.Grants {
		if g.Status == GrantActive && g.fromPlan() {
			left += g.Remaining
		}
	}
	carry := a.carry(left)
	if carry == 0 {
		return
	}
	to := &OpenGrant{isNew: true, GrantRecord: GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: prefixRollover + instantID(b.End), Source: SourceRollover,
		Amount: carry, Priority: PriorityAllowance, EffectiveAt: b.End, ExpiresAt: next.End, Status: GrantActive,
		OperationID: systemID("rollover", b.BalanceKey, instantID(b.End)), CreatedAt: now,
	}}
	moved := min(carry, left)
	excess := left - moved
	n := int32(0)
	for _, g := range b.Grants {
		if g.Status != GrantActive || !g.fromPlan() || g.Remaining == 0 {
			continue
		}
		lost := min(excess, g.Remaining) // the units that would burn first are those that are lost
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
	b.carried = to
	b.addGrant(to)
}

// expire ends a grant and enters what was left of it.
func (b *Book) expire(g *OpenGrant, due, now time.Time, j *[]Entry) {
	lost := g.Remaining
	b.setRemaining(g, 0)
	g.Status, g.changed = GrantExpired, true
	if lost == 0 {
		return
	}
	b.enterDue(j, EntryExpire, systemID("expire", b.BalanceKey, g.ID), 1, g, lost, due, now)
}

// activate makes a pending grant spendable.
func (b *Book) activate(g *OpenGrant, due, now time.Time, j *[]Entry) {
	g.Status, g.changed = GrantActive, true
	g.Remaining = g.Amount
	b.enterDue(j, EntryGrant, systemID("effective", b.BalanceKey, g.ID), 1, g, g.Amount, due, now)
}

// roll closes the open period at its end and opens next there, under the terms in force at that instant.
func (b *Book) roll(next period.Period, now time.Time, j *[]Entry) {
	at := b.End
	t := b.Timeline.At(at)
	closing := b.Remaining() + b.Held
	b.closeOverage(at, now, j)
	sums := b.Sums
	sums.Owed, sums.Paid = 0, 0
	b.Closed = append(b.Closed, PeriodRow{
		BalanceKey: b.BalanceKey, Sums: sums, Start: b.Start, End: at, Plan: b.Plan, PlanVersion: b.PlanVersion,
		Closing: closing, LastSeq: b.Seq, ClosedAt: Later(now, at),
	})
	b.Sums = Sums{Opening: closing, Held: b.Held}
	b.open(t, next, at, j, now)
}

// open starts period p, which was due at the instant due, under terms t, and issues its allowance. Only the first period of a balance may
// begin before it is due.
func (b *Book) open(t *Terms, p period.Period, due time.Time, j *[]Entry, now time.Time) {
	amount := int64(0)
	if t.Grants {
		amount = t.amountFrom(due, p)
	}
	if b.Opened() {
		p.Start = due
	}
	b.Start, b.End, b.changed = p.Start, p.End, true
	b.Plan, b.PlanVersion, b.Allowance, b.Renews, b.Terms = "", 0, 0, false, nil
	if t.Grants {
		b.Plan, b.PlanVersion, b.Allowance, b.Renews, b.Terms = t.plan, t.version, t.Allowance.Amount, t.renews(), &t.Allowance
	}
	var g *OpenGrant
	if amount > 0 {
		expires := p.End
		if t.Allowance.Lasts > 0 {
			expires = Earlier(expires, Later(due, p.Start).Add(t.Allowance.Lasts))
		}
		g = &OpenGrant{isNew: true, GrantRecord: GrantRecord{
			Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: allowanceID(p.Start),
			Source: SourceAllowance, Amount: amount, Remaining: amount, Priority: PriorityAllowance,
			EffectiveAt: p.Start, ExpiresAt: expires, Status: GrantActive,
			OperationID: systemID("allowance", b.BalanceKey, instantID(p.Start)), CreatedAt: now,
		}}
		b.addGrant(g)
		b.enterDue(j, EntryGrant, g.OperationID, 1, g, amount, due, now)
	}
	b.openOverage(g, due, now, j)
	if g := b.carried; g != nil {
		b.carried = nil
		if extra := g.Amount - g.Remaining; extra > 0 {
			b.setRemaining(g, g.Amount)
			b.enterDue(j, EntryGrant, systemID("rollover-min", b.BalanceKey, instantID(p.Start)), 1, g, extra, due, now)
		}
	}
	b.active = false // its opening is no use of it
	b.refresh()
}

// allowanceID returns the id of the allowance of the period that starts at start.
func allowanceID(start time.Time) string {
	return prefixAllowance + instantID(start)
}

func instantID(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// systemID returns the id of an operation that the ledger makes by itself. It does not depend on who makes it, so that a decision, a roll
// and a retry all make the same one. The character § cannot occur in a client's key.
func systemID(event string, k BalanceKey, which string) string {
	return "§" + event + "/" + k.Meter + "/" + k.Subject + "/" + which
}
