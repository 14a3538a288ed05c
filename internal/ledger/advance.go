package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// advanceStepsMax bounds the events one transaction works off for one balance: 512 periods are about 1,500 rows. What is
// left is worked off by further transactions before the balance is decided on.
const advanceStepsMax = 512

// errNotLoaded says that a decision needs the balance's grants or terms and they were not read with it. The reading
// statements ask for a superset of what decisions need, so it stands for a bug or a clock that jumped between statements;
// the batch is then read again with everything.
var errNotLoaded = errors.New("ledger: grants or terms not loaded")

// due says whether advance has something to do at now.
func (b *book) due(now time.Time) bool { return !b.nextEvent.After(now) || b.endedByTerms() }

// endedByTerms says whether new terms end the open period before its own end.
func (b *book) endedByTerms() bool {
	if !b.opened() || len(b.timeline) == 0 {
		return false
	}
	_, ends := b.timeline.endsPeriod(&b.balance)
	return ends
}

// advance works off every event due at or before now: see advanceAt.
func (b *book) advance(now time.Time, j *journal) (more bool, err error) {
	return b.advanceAt(now, now, j)
}

// advanceAt works off every event due at or before until: grant expiry before period close and open before grants taking
// effect, in the order they were due, as if a clock had done it in time. It returns more = true when it stopped at
// advanceStepsMax. It is a pure function of the book and its arguments; entries go to j, stamped now.
func (b *book) advanceAt(until, now time.Time, j *journal) (more bool, err error) {
	if !b.due(until) {
		return false, nil
	}
	if !b.loaded {
		return false, errNotLoaded
	}
	if !b.opened() {
		if err := b.openFirst(j, now); err != nil {
			return false, err
		}
	}
	b.cutOpenPeriod()
	for steps := 0; !b.nextEvent.After(until); steps++ {
		if steps == advanceStepsMax {
			return true, nil
		}
		if err := b.step(b.nextEvent, now, j); err != nil {
			return false, err
		}
		b.cutOpenPeriod()
	}
	return false, nil
}

// cutOpenPeriod gives the open period the end that new terms set. The end never lies before what was written
// when the book was read: that stays in its period, also if the change was stamped before it and committed after it.
func (b *book) cutOpenPeriod() {
	if !b.endedByTerms() {
		return
	}
	at, _ := b.timeline.endsPeriod(&b.balance)
	b.end = later(at, b.writtenAt)
	b.dirty = true
	b.settle()
}

// openFirst opens the balance's first period: the one around the tenant's sign-up, whether or not its plan had the meter then. So
// nothing depends on when the balance is looked at for the first time.
func (b *book) openFirst(j *journal, now time.Time) error {
	t := b.timeline.at(time.Time{})
	if t == nil {
		return errNotLoaded
	}
	p, err := t.containing(t.since)
	if err != nil {
		return err
	}
	b.open(t, p, t.since, j, now)
	return nil
}

// step works off everything due at one instant: holds first, so that what they give back meets its grant's end.
func (b *book) step(due, now time.Time, j *journal) error {
	for _, h := range b.holds {
		if n := h.open(); n > 0 && !h.expiresAt.After(due) {
			b.giveBack(h, n, ReturnForfeit, systemID("hold-expire", b.key, fmt.Sprint(h.holdID, "/", h.line)), due, now, j)
		}
	}
	closes := !b.end.After(due)
	var next period.Period
	if closes {
		var err error
		if next, err = b.nextPeriod(); err != nil {
			return err
		}
		b.carryOver(next, due, now, j)
	}
	for _, g := range b.grants {
		if g.Status == GrantActive && (!g.ExpiresAt.After(due) || closes && g.fromPlan() && g != b.carried) {
			b.expire(g, due, now, j)
		}
	}
	if closes {
		b.roll(next, now, j)
	}
	for _, g := range b.grants {
		if g.Status == GrantPending && !g.EffectiveAt.After(due) {
			b.activate(g, due, now, j)
		}
	}
	b.settle()
	return nil
}

// fromPlan says whether the grant ends with its period, also when that one is cut short.
func (g *grant) fromPlan() bool {
	return (g.Source == SourceAllowance || g.Source == SourceRollover) && g.ExpiresAt.Before(period.Forever)
}

// nextPeriod is the period that follows the open one, under the terms in force at its start.
func (b *book) nextPeriod() (period.Period, error) {
	t := b.timeline.at(b.end)
	if t == nil {
		return period.Period{}, errNotLoaded
	}
	return t.containing(b.end)
}

// carryOver moves what the closing period's terms let go on from the plan's grants into one of the next period. It moves
// nothing on the balance: the units were remaining and stay so. A minimum above what is left is granted in the next period.
func (b *book) carryOver(next period.Period, due, now time.Time, j *journal) {
	a := b.terms
	if b.Subject != "" || !a.rolls() {
		return
	}
	left := int64(0)
	for _, g := range b.grants {
		if g.Status == GrantActive && g.fromPlan() {
			left += g.Remaining
		}
	}
	carry := a.carry(left)
	if carry == 0 {
		return
	}
	to := &grant{isNew: true, GrantRecord: GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: prefixRollover + instantID(b.end), Source: SourceRollover,
		Amount: carry, Priority: PriorityAllowance, EffectiveAt: b.end, ExpiresAt: next.End, Status: GrantActive,
		OperationID: systemID("rollover", b.key, instantID(b.end)), CreatedAt: now,
	}}
	moved := min(carry, left)
	excess := left - moved
	n := int32(0)
	for _, g := range b.grants {
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
		j.system(b, lineRolloverOut, to.OperationID, n-1, g, part, due, now)
		j.system(b, lineRolloverIn, to.OperationID, n, to, part, due, now)
	}
	b.carried = to
	b.addGrant(to)
}

// expire ends a grant. What is left of it is gone, visibly.
func (b *book) expire(g *grant, due, now time.Time, j *journal) {
	lost := g.Remaining
	b.setRemaining(g, 0)
	g.Status, g.dirty = GrantExpired, true
	if lost == 0 {
		return
	}
	b.expired += lost
	j.system(b, lineExpire, systemID("expire", b.key, g.ID), 1, g, lost, due, now)
}

// activate makes a grant spendable that was issued for a later instant.
func (b *book) activate(g *grant, due, now time.Time, j *journal) {
	g.Status, g.dirty = GrantActive, true
	g.Remaining = g.Amount
	b.granted += g.Amount
	b.dirty = true
	j.system(b, lineGrant, systemID("effective", b.key, g.ID), 1, g, g.Amount, due, now)
}

// roll closes the open period at its end and opens next there, under the terms in force at that instant.
func (b *book) roll(next period.Period, now time.Time, j *journal) {
	at := b.end
	t := b.timeline.at(at)
	closing := b.remaining() + b.held
	b.closeOverage(at, now, j)
	b.closed = append(b.closed, closedPeriod{
		key: b.key, start: b.start, end: at, plan: b.plan, planVersion: b.planVersion,
		opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used, expired: b.expired, adjusted: b.adjusted,
		overage: b.overage, held: b.held, closing: closing, lastSeq: b.seq, closedAt: later(now, at),
	})
	b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage = closing, 0, 0, 0, 0, 0, 0
	b.owed, b.settled = 0, 0
	b.open(t, next, at, j, now)
}

// open starts period p under terms t, due at due, and issues its allowance. Only the first period of a balance may begin
// before it is due.
func (b *book) open(t *terms, p period.Period, due time.Time, j *journal, now time.Time) {
	amount := int64(0)
	if t.grants {
		amount = t.amountFrom(due, p)
	}
	if b.opened() {
		p.Start = due
	}
	b.start, b.end, b.dirty = p.Start, p.End, true
	b.plan, b.planVersion, b.allowance, b.renews, b.terms = "", 0, 0, false, nil
	if t.grants {
		b.plan, b.planVersion, b.allowance, b.renews, b.terms = t.plan, t.version, t.allow.amount, t.renews(), &t.allow
	}
	var g *grant
	if amount > 0 {
		expires := p.End
		if t.allow.lasts > 0 {
			expires = earlier(expires, later(due, p.Start).Add(t.allow.lasts))
		}
		g = &grant{isNew: true, GrantRecord: GrantRecord{
			Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: allowanceID(p.Start),
			Source: SourceAllowance, Amount: amount, Remaining: amount, Priority: PriorityAllowance,
			EffectiveAt: p.Start, ExpiresAt: expires, Status: GrantActive,
			OperationID: systemID("allowance", b.key, instantID(p.Start)), CreatedAt: now,
		}}
		b.addGrant(g)
		b.granted += amount
		j.system(b, lineGrant, g.OperationID, 1, g, amount, due, now)
	}
	b.openOverage(g, due, now, j)
	if g := b.carried; g != nil {
		b.carried = nil
		if extra := g.Amount - g.Remaining; extra > 0 {
			b.setRemaining(g, g.Amount)
			b.granted += extra
			j.system(b, lineGrant, systemID("rollover-min", b.key, instantID(p.Start)), 1, g, extra, due, now)
		}
	}
	b.settle()
}

// allowanceID names the allowance of the period that starts at start.
func allowanceID(start time.Time) string {
	return prefixAllowance + instantID(start)
}

func instantID(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// systemID names an operation of the ledger's own. It is the same whoever performs it, so that lazy path, sweeper and
// retries converge; '§' cannot occur in a client's key.
func systemID(event string, k key, which string) string {
	return "§" + event + "/" + k.Meter + "/" + k.Subject + "/" + which
}
