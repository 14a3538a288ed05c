package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// A period is idle when it has no entries besides those of its opening. So nobody used it, no hold ended in it, and
// no grant of a client began or ended in it. The state at its beginning and at its end follows from its terms and
// from the state that the period before it left. So nothing is stored for it.
//
// Consecutive idle periods under the same terms are a run. A run is one row of the table periods, with the sums of
// the run's entries. The journal has only entries for changes by the run as a whole. It has no entries if no units
// roll over and nothing is owed. The row also has the state in which the first period began, and names the terms.
// From the row, IdleRun derives every single period and the entries that it would have had, by the same steps as for
// periods in use.
//
// Every period of a run gets its whole allowance and rollover. A period that would raise the balance above MaxAmount
// is opened alone, like a period in use, because it gets only what fits.

// idleState is the state in which an idle period begins.
type idleState struct {
	left     int64 // units that roll over into it
	rollover int64 // the amount of that rollover: left, or the minimum of the previous terms
	owing    int64 // overage of earlier periods
}

// pass returns the state in which the next period begins, after an idle period under terms a that began in state s.
// paid is the part of the owed overage that the idle period pays: from the allowance, then from the rollover.
func (a *Allowance) pass(s idleState) (next idleState, paid int64) {
	paid = min(s.owing, a.Amount+s.rollover)
	left := a.Amount + s.rollover - paid
	if a.rolls() {
		next.rollover = a.carry(left)
		next.left = min(next.rollover, left)
	}
	if a.OveragePreserved {
		next.owing = s.owing - paid
	}
	return next, paid
}

// passAll applies pass n times. It ends early when the state no longer changes.
func (a *Allowance) passAll(s idleState, n int) (after idleState, paid int64) {
	for range n {
		next, part := a.pass(s)
		if next == s {
			break
		}
		s, paid = next, paid+part
	}
	return s, paid
}

// payingMax is the number of periods of a run that may pay overage, each with entries of its own.
const payingMax = 1000

// fitting returns how many of n idle periods under terms a, the first of which begins in state s, can be one run. room
// is the number of units that the plan's grants may have together. The run must fit as a whole as well, because it
// grants everything that its periods pay at once.
func (a *Allowance) fitting(s idleState, n int, room int64) int {
	most, paying := room-s.left, 0 // what the periods may pay together, and how many of them pay
	for i := range n {
		next, paid := a.pass(s)
		if paid > 0 {
			paying++
		}
		if most -= paid; a.Amount+s.rollover > room || most < 0 || paying > payingMax {
			return i
		}
		if next == s {
			break
		}
		s = next
	}
	return n
}

// idleRun returns the number of consecutive idle periods that begin with the opening o and end by the instant
// `until`. It also returns the end of the last period.
func (b *Book) idleRun(o *opening, until time.Time) (n int, end time.Time) {
	t, at := o.terms, b.End
	switch {
	case t.once(), o.cut, !o.from.IsZero(), o.worth != t.Allowance.Amount:
		return 0, at // the first period of the run would differ from the others
	case b.Seq == 0 && (t.Allowance.Amount > 0 || o.rollover != nil || t.Allowance.rolls()):
		return 0, at // the first grant of a balance always has an entry: Unknown depends on it
	}
	before := b.nextFact(o)
	if next := b.Timeline.after(t); next != nil {
		before = period.Earlier(before, next.since)
	}
	n, end, err := t.schedule().Count(at, period.Earlier(until, before.Add(-time.Microsecond)))
	if err != nil {
		return 0, at
	}
	s := o.idleState()
	if fits := t.Allowance.fitting(s, n, b.room()+s.left); fits < n {
		last, err := t.schedule().Nth(at, fits)
		if err != nil {
			return 0, at
		}
		return fits, last.Start
	}
	return n, end
}

// idleState returns the state in which the period of o begins.
func (o *opening) idleState() idleState {
	s := idleState{owing: o.owing}
	if o.rollover != nil {
		s.left, s.rollover = o.rollover.Remaining, o.rollover.Amount
	}
	return s
}

// nextFact returns the first instant at which a hold ends, or at which a grant outside the plan begins or ends.
func (b *Book) nextFact(o *opening) time.Time {
	at := period.Latest
	for _, h := range b.Holds {
		if h.Open() > 0 {
			at = period.Earlier(at, h.ExpiresAt)
		}
	}
	for _, g := range b.Grants {
		switch {
		case g.Status == GrantPending:
			at = period.Earlier(at, g.EffectiveAt)
		case g.Status == GrantActive && g != o.rollover:
			at = period.Earlier(at, g.ExpiresAt)
		}
	}
	return at
}

// after returns the terms that follow t, nil when there are none.
func (tl Timeline) after(t *Terms) *Terms {
	for i := range tl {
		if tl[i].since.After(t.since) {
			return &tl[i]
		}
	}
	return nil
}

// skipIdle skips the n idle periods that begin with o at the end of the closed period. It returns the opening of the
// period after them.
func (b *Book) skipIdle(o *opening, n int, end, now time.Time, j *[]Entry) (*opening, error) {
	t, at := o.terms, b.End
	p, err := t.Containing(end)
	if err != nil {
		return nil, err
	}
	s := o.idleState()
	after, paid := t.Allowance.passAll(s, n)
	b.Start, b.End = at, end
	b.Plan, b.PlanVersion, b.Terms, b.TermsAt = t.plan, t.version, &t.Allowance, period.Later(b.TermsAt, t.since)
	r := runEntries{book: b, j: j, id: systemID("idle", b.BalanceKey, instantID(at)), now: now}
	r.enter(EntryOwe, nil, SourceOverage, s.owing, at)
	r.enter(EntryGrant, nil, SourceAllowance, paid, end)
	if err := r.payOverage(t, s, n, at); err != nil {
		return nil, err
	}
	if forgiven := s.owing - paid - after.owing; forgiven > 0 {
		r.enter(EntryForgive, nil, SourceOverage, forgiven, end)
		b.ForgivenSeq = b.Seq
	}
	next := &opening{terms: t, period: p, worth: t.Allowance.Amount, owing: after.owing}
	if next.rollover = r.rollOver(o.rollover, after, at, p); next.rollover != nil {
		b.addGrant(next.rollover)
	}
	closing := b.Remaining() + b.Held
	sums := b.Sums
	sums.Owed, sums.Paid = 0, 0
	b.Closed = append(b.Closed, PeriodRow{
		BalanceKey: b.BalanceKey, Sums: sums, Start: at, End: end, Plan: b.Plan, PlanVersion: b.PlanVersion, Closing: closing, LastSeq: b.Seq,
		ClosedAt: period.Later(now, end), Idle: int64(n), TermsAt: t.agreedAt, RolledOver: s.left, Rollover: s.rollover, Owing: s.owing,
	})
	b.Sums = Sums{Opening: closing, Held: b.Held}
	return next, nil
}

// runEntries writes the entries of a run of idle periods. They record the changes by the run as a whole, and what each
// period paid: a change of the interval counts what allowances paid since an instant inside the run.
type runEntries struct {
	book *Book
	j    *[]Entry
	id   string
	line int32
	now  time.Time
}

// enter writes an entry unless amount is 0. g is the grant of the entry, nil if the tables do not have that grant.
func (r *runEntries) enter(kind EntryKind, g *OpenGrant, source Source, amount int64, due time.Time) {
	if amount == 0 {
		return
	}
	r.line++
	e := Entry{OperationID: r.id, Line: r.line, Kind: kind, Source: source, Amount: amount, EffectiveAt: due}
	if g != nil {
		e.Grant = g.ID
	}
	r.book.enter(r.j, r.now, e)
}

// payOverage writes what each of the n periods paid, the first of which began at the instant `at` in state s. The
// allowances and rollovers that paid began and ended within the run, so they have no rows.
func (r *runEntries) payOverage(t *Terms, s idleState, n int, at time.Time) error {
	for i := range n {
		next, paid := t.Allowance.pass(s)
		if paid > 0 {
			p, err := t.schedule().Nth(at, i)
			if err != nil {
				return err
			}
			first := min(paid, t.Allowance.Amount)
			r.enter(EntryPayOwed, nil, SourceAllowance, first, p.Start)
			r.enter(EntryPayOwed, nil, SourceRollover, paid-first, p.Start)
		}
		if next == s {
			break
		}
		s = next
	}
	return nil
}

// rollOver replaces `from`, the rollover grant with which the run began, with the rollover grant of the period p after
// the run. It returns the new grant, nil if nothing rolls over. Units that the run gained are granted; units that the
// run lost expire.
func (r *runEntries) rollOver(from *OpenGrant, after idleState, at time.Time, p period.Period) *OpenGrant {
	b, end, kept := r.book, r.book.End, int64(0)
	if from != nil {
		r.enter(EntryGrant, from, from.Source, from.Amount-from.Remaining, at) // units that the minimum adds
		kept = min(from.Amount, after.left)
		r.enter(EntryExpire, from, from.Source, from.Amount-kept, end)
		r.enter(EntryRolloverOut, from, from.Source, kept, end)
		b.setRemaining(from, 0)
		from.Status = GrantExpired
	}
	if after.rollover == 0 {
		return nil
	}
	to := b.newRollover(after.rollover, end, p.End, r.now)
	to.Remaining = after.left
	r.enter(EntryRolloverIn, to, to.Source, kept, end)
	r.enter(EntryGrant, to, to.Source, after.left-kept, end)
	return to
}
