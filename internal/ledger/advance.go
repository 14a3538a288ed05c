package ledger

import (
	"errors"
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

// endedByTerms says whether new terms end an open-ended period.
func (b *book) endedByTerms() bool {
	if !b.opened() || b.end.Before(period.Forever) || len(b.timeline) == 0 {
		return false
	}
	_, ends := b.timeline.endsOpenPeriod(b.start, b.plan)
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

// cutOpenPeriod gives an open-ended period the end that new terms set. The end never lies before the newest entry: what
// was written stays in its period.
func (b *book) cutOpenPeriod() {
	if !b.endedByTerms() {
		return
	}
	at, _ := b.timeline.endsOpenPeriod(b.start, b.plan)
	b.end = later(at, b.updatedAt)
	b.dirty = true
	b.settle()
}

// openFirst opens the balance's first period: the one around the instant at which the meter came into the tenant's plan.
func (b *book) openFirst(j *journal, now time.Time) error {
	t := b.timeline.born()
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

// step works off everything due at one instant.
func (b *book) step(due, now time.Time, j *journal) error {
	for _, g := range b.grants {
		if g.Status == GrantActive && !g.ExpiresAt.After(due) {
			b.expire(g, due, now, j)
		}
	}
	if !b.end.After(due) {
		if err := b.roll(now, j); err != nil {
			return err
		}
	}
	for _, g := range b.grants {
		if g.Status == GrantPending && !g.EffectiveAt.After(due) {
			b.activate(g, due, now, j)
		}
	}
	b.settle()
	return nil
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
	j.system(b, lineExpire, systemID("expire", b.key, g.ID), g, lost, due, now)
}

// activate makes a grant spendable that was issued for a later instant.
func (b *book) activate(g *grant, due, now time.Time, j *journal) {
	g.Status, g.dirty = GrantActive, true
	g.Remaining = g.Amount
	b.granted += g.Amount
	b.dirty = true
	j.system(b, lineGrant, systemID("effective", b.key, g.ID), g, g.Amount, due, now)
}

// roll closes the open period at its end and opens the next one there, under the terms in force at that instant.
func (b *book) roll(now time.Time, j *journal) error {
	at := b.end
	t := b.timeline.at(at)
	if t == nil {
		return errNotLoaded
	}
	p, err := t.containing(at)
	if err != nil {
		return err
	}
	closing := b.remaining() + b.held
	b.closed = append(b.closed, closedPeriod{
		key: b.key, start: b.start, end: at, plan: b.plan, planVersion: b.planVersion,
		opening: b.opening, granted: b.granted, refunded: b.refunded, used: b.used, expired: b.expired, adjusted: b.adjusted,
		overage: b.overage, held: b.held, closing: closing, lastSeq: b.seq, closedAt: later(now, at),
	})
	b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage = closing, 0, 0, 0, 0, 0, 0
	p.Start = at
	b.open(t, p, at, j, now)
	return nil
}

// open starts period p under terms t, due at due, and issues its allowance.
func (b *book) open(t *terms, p period.Period, due time.Time, j *journal, now time.Time) {
	b.start, b.end, b.dirty = p.Start, p.End, true
	b.plan, b.planVersion, b.allowance, b.renews = "", 0, 0, false
	if t.grants {
		b.plan, b.planVersion, b.allowance, b.renews = t.plan, t.version, t.allow.amount, t.renews()
	}
	if b.allowance > 0 {
		g := &grant{isNew: true, GrantRecord: GrantRecord{
			Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: allowanceID(p.Start),
			Source: SourceAllowance, Amount: b.allowance, Remaining: b.allowance, Priority: PriorityAllowance,
			EffectiveAt: p.Start, ExpiresAt: p.End, Status: GrantActive,
			OperationID: systemID("allowance", b.key, p.Start.Format(time.RFC3339Nano)), CreatedAt: now,
		}}
		b.addGrant(g)
		b.granted += b.allowance
		j.system(b, lineGrant, g.OperationID, g, g.Amount, due, now)
	}
	b.settle()
}

// allowanceID names the allowance of the period that starts at start.
func allowanceID(start time.Time) string {
	return "allowance:" + start.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// systemID names an operation of the ledger's own. It is the same whoever performs it, so that lazy path, sweeper and
// retries converge; '§' cannot occur in a client's key.
func systemID(event string, k key, which string) string {
	return "§" + event + "/" + k.Meter + "/" + k.Subject + "/" + which
}
