package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Book is one balance in memory: the state that a decision needs, and the changes that decisions have made.
//
// The remainder of the head grant is kept in the balance. While grants are loaded, the head's element of Grants has
// the same remainder. Grants are loaded if an event is due or the head may be too small for the demand. Otherwise a
// debit touches only the balance.
type Book struct {
	BalanceRow

	Grants   []*OpenGrant // open grants in burn order, when loaded
	Holds    []*HoldLine  // hold lines that reserve units of these grants, when loaded
	Terms    *Allowance   // terms of the open period; nil: the plan has no such meter, or the store did not read it
	Timeline Timeline     // read only when an event is due, or terms may have ended the period

	// History has the tenant's terms. Plans has the versions of the tenant's plans. Timeline was built from History
	// and Plans, and idle periods are derived from them.
	History []TenantTerms
	Plans   map[string][]PlanVersion

	Closed    []PeriodRow // periods that were closed since the balance was read
	Unwritten []Entry     // entries that advance has made in memory, for reads
	Overflow  *Overflow   // of the newest stored period, only in reads; nil: none
	Broken    error       // why the next period cannot be computed; such a book is neither used nor written
	NearLimit []int       // numbers of open grants, one each time that they rose to GrantsOpenNear or more

	openCount  int          // open grants when they were last counted
	ended      []*OpenGrant // new grants that have already ended; the store still writes them
	loaded     bool
	changed    bool
	active     bool      // the open period has entries besides those of its opening, or will have some before it ends
	firstEntry bool      // the open period got its first entry besides those of its opening, so RollAt has changed
	cut        bool      // a change of the interval has moved the end of the open period
	processed  time.Time // everything due until then had been processed when the balance was read

	past    []PastUse // what WantsPastUse asked for
	wanted  PastUse   // what pastUse lacked
	readSeq int64     // Seq as it was read
	unread  []PastUse // use since the balance was read
}

// Overflow says how many units of a balance other meters have paid for in the period that starts at Period. The largest
// int64 stands for any larger sum.
type Overflow struct {
	Period time.Time
	Units  int64
}

// In returns the units if the period starts at the given instant, 0 otherwise.
func (o *Overflow) In(start time.Time) int64 {
	if o == nil || !o.Period.Equal(start) {
		return 0
	}
	return o.Units
}

// NewBook returns the book of a balance as it was read.
func NewBook(row BalanceRow) *Book {
	if !row.knows() {
		row.Entitled, row.Short, row.CarriedFrom, row.OverageBefore = 0, 0, time.Time{}, 0
	}
	// If a transaction has worked off only a part of what was due, an event is still due at UpdatedAt.
	processed := period.Earlier(row.UpdatedAt, row.NextEvent)
	return &Book{BalanceRow: row, processed: processed, readSeq: row.Seq, active: !row.Start.IsZero() && !row.RollAt.After(row.End)}
}

// LoadGrants sets the open grants and hold lines as stored. The stored remainder of the head is out of date; the
// balance has the current remainder.
func (b *Book) LoadGrants(grants []*OpenGrant, holds []*HoldLine) {
	b.Grants, b.Holds, b.loaded = grants, holds, true
	slices.SortFunc(b.Grants, burnsBefore)
	if h := b.head(); h != nil {
		h.Remaining = b.HeadRemaining
	}
	b.openCount = b.openGrants()
}

// openGrants returns the number of grants that are pending or from which something can still be drawn or returned.
func (b *Book) openGrants() int {
	n := 0
	for _, g := range b.Grants {
		if g.Status == GrantPending || g.Status == GrantActive && !b.usedUp(g) {
			n++
		}
	}
	return n
}

// usedUp reports whether nothing is left of an active grant.
func (b *Book) usedUp(g *OpenGrant) bool {
	return g.Remaining == 0 && g.Held == 0 && !b.paidOldOverage(g)
}

// HeadOnly reports whether only the sums of the balance row have changed. This is so if debits have drawn from the
// head alone, and the open period had entries before.
func (b *Book) HeadOnly() bool { return !b.loaded && !b.firstEntry }

// Unknown reports whether the plan has no such meter and no grant was ever issued for the balance.
func (b *Book) Unknown() bool { return b.Plan == "" && b.Seq == 0 }

// NotInPlan returns the refusal of a request for an Unknown balance.
func (b *Book) NotInPlan() *errcode.Error {
	if b.Subject != "" {
		return errcode.Errorf(errcode.MeterNotInPlan, "meter", "the plan of tenant %q has no cap per subject on meter %q, and no grant was ever issued to subject %q",
			b.Tenant, b.Meter, b.Subject)
	}
	return errcode.Errorf(errcode.MeterNotInPlan, "meter", "the plan of tenant %q has no meter %q, and no grant was ever issued for it", b.Tenant, b.Meter)
}

// canDraw reports whether the book has the grants from which amount would be drawn.
func (b *Book) canDraw(amount int64) bool { return b.loaded || amount <= b.HeadRemaining }

// take draws amount from the grants in burn order and returns the draws. The caller writes the entries of these draws
// and calls refresh. canDraw(amount) must be true, and amount must be at most Remaining.
func (b *Book) take(amount int64) []Draw {
	if amount == 0 {
		return nil
	}
	b.changed = true
	if !b.loaded {
		b.HeadRemaining -= amount
		return []Draw{{Grant: b.HeadID, Source: b.HeadSource, Meter: b.Meter, Amount: amount}}
	}
	var parts []Draw
	for _, g := range b.Grants {
		if amount == 0 {
			break
		}
		if g.Status != GrantActive || g.Remaining == 0 {
			continue
		}
		part := min(amount, g.Remaining)
		amount -= part
		b.setRemaining(g, g.Remaining-part)
		parts = append(parts, Draw{Grant: g.ID, Source: g.Source, Meter: b.Meter, Amount: part})
	}
	if amount != 0 {
		panic(fmt.Sprintf("ledger: %d units of %v are in no grant", amount, b.BalanceKey))
	}
	return parts
}

// draw takes amount from the grants in burn order. For each draw it writes e with the grant and the amount of the
// draw. It returns the draws.
func (b *Book) draw(j *[]Entry, now time.Time, amount int64, e Entry) []Draw {
	parts := b.take(amount)
	if len(parts) == 0 {
		return nil
	}
	for _, p := range parts {
		e.Grant, e.Source, e.Amount = p.Grant, p.Source, p.Amount
		b.enter(j, now, e)
	}
	if b.loaded {
		b.refresh()
	}
	return parts
}

// enter applies e to the sums and appends it to j as the balance's next entry. A simulation keeps no entries: its j is
// nil. The caller has changed the grants already.
func (b *Book) enter(j *[]Entry, now time.Time, e Entry) {
	remaining := b.Apply(e.Kind, e.Amount)
	b.Seq++
	if now.After(b.UpdatedAt) {
		b.UpdatedAt = now
	}
	b.changed = true
	b.noteUse(&e)
	if !b.active {
		b.active = true
		b.firstEntry = true
		b.RollAt = period.Earlier(b.RollAt, b.End)
	}
	if j == nil {
		return
	}
	e.BalanceKey, e.Seq, e.PeriodStart, e.RemainingAfter, e.CreatedAt = b.BalanceKey, b.Seq, b.Start, remaining, b.UpdatedAt
	*j = append(*j, e)
}

// enterDue writes an entry that the ledger makes by itself. The entry was due at the instant `due`. Its operation has
// the id `id`, and `line` is the number of the entry in the operation.
func (b *Book) enterDue(j *[]Entry, kind EntryKind, id string, line int32, g *OpenGrant, amount int64, due, now time.Time) {
	b.enter(j, now, Entry{
		OperationID: id, Line: line, Kind: kind, Grant: g.ID, Source: g.Source, Amount: amount, EffectiveAt: due,
	})
}

// head returns the loaded element of the head grant, or nil.
func (b *Book) head() *OpenGrant { return b.grant(b.HeadID) }

// grant returns the loaded grant of this id, or nil.
func (b *Book) grant(id string) *OpenGrant {
	for _, g := range b.Grants {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// setRemaining changes the remainder of a loaded grant. The store writes the remainder of the head with the balance
// row, and the remainder of any other grant with the grant's row.
func (b *Book) setRemaining(g *OpenGrant, remaining int64) {
	g.Remaining = remaining
	if g.ID == b.HeadID {
		b.HeadRemaining = remaining
	} else {
		g.changed = true
	}
	b.changed = true
}

// addGrant inserts a new grant into the open grants. The caller calls refresh.
func (b *Book) addGrant(g *OpenGrant) {
	at, _ := slices.BinarySearchFunc(b.Grants, g, burnsBefore)
	b.Grants = slices.Insert(b.Grants, at, g)
	b.changed = true
}

// refresh updates the head, the states of grants, the number of open grants, the next event and RollAt after the loaded
// grants were changed.
func (b *Book) refresh() {
	if !b.loaded {
		return
	}
	var head *OpenGrant
	open, next, roll := 0, b.End, period.Forever
	if b.active {
		roll = b.End
	}
	for _, g := range b.Grants {
		if g.Status == GrantActive && b.usedUp(g) {
			g.Status, g.changed = GrantExhausted, true
		}
		switch g.Status {
		case GrantActive:
			open++
			if head == nil && g.Remaining > 0 {
				head = g
			}
			next = period.Earlier(next, g.ExpiresAt)
			if !g.fromPlan() || !g.ExpiresAt.Equal(b.End) {
				roll = period.Earlier(roll, g.ExpiresAt)
			}
		case GrantPending:
			open++
			next, roll = period.Earlier(next, g.EffectiveAt), period.Earlier(roll, g.EffectiveAt)
		case GrantExhausted, GrantExpired, GrantVoided:
		}
	}
	for _, h := range b.Holds {
		if h.Open() > 0 {
			next, roll = period.Earlier(next, h.ExpiresAt), period.Earlier(roll, h.ExpiresAt)
		}
	}
	b.moveHead(head)
	if b.openCount < GrantsOpenNear && open >= GrantsOpenNear {
		b.NearLimit = append(b.NearLimit, open)
	}
	b.openCount = open
	if !b.NextEvent.Equal(next) || !b.RollAt.Equal(roll) {
		b.NextEvent, b.RollAt, b.changed = next, roll, true
	}
}

// moveHead makes g the head. The remainder of the old head is written to its grant row again.
func (b *Book) moveHead(g *OpenGrant) {
	if old := b.head(); old != nil && old != g {
		old.changed = true
	}
	switch {
	case g == nil && b.HeadID != "":
		b.HeadID, b.HeadSource, b.HeadRemaining, b.changed = "", "", 0, true
	case g != nil && g.ID != b.HeadID:
		b.HeadID, b.HeadSource, b.HeadRemaining, b.changed = g.ID, g.Source, g.Remaining, true
	}
}

// clone copies the book, so that a rollback can restore it.
func (b *Book) clone() *Book {
	c := *b
	c.Grants = make([]*OpenGrant, len(b.Grants))
	for i, g := range b.Grants {
		copied := *g
		c.Grants[i] = &copied
	}
	c.Holds = make([]*HoldLine, len(b.Holds))
	for i, h := range b.Holds {
		copied := *h
		c.Holds[i] = &copied
	}
	c.Closed, c.unread = slices.Clone(b.Closed), slices.Clip(b.unread)
	return &c
}

// burnsBefore compares two grants in burn order: lower priority first, then sooner expiry, then earlier effect, then
// id.
func burnsBefore(a, b *OpenGrant) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		a.ExpiresAt.Compare(b.ExpiresAt),
		a.EffectiveAt.Compare(b.EffectiveAt),
		cmp.Compare(a.ID, b.ID),
	)
}

// Lacks reports whether the store has to read the balance's grants, or its terms, before a decision at the instant
// `now` that draws at most `most` units. termsChanged is the instant at which terms of any tenant were last changed,
// with a margin for changes that are committed late.
func (b *Book) Lacks(now, termsChanged time.Time, most int64) (grants, terms bool) {
	due := !b.NextEvent.After(now)
	// New terms can end a period that has no end of its own. No event announces such an end.
	endless := !b.Start.IsZero() && !b.End.Before(period.Forever)
	stale := endless && termsChanged.After(b.UpdatedAt) || b.Plan != "" && b.Terms == nil
	// A refusal looks ahead: see Batch.simulate. If other balances may pay, the decision requests the terms.
	refuses := most < DemandAll && most > b.Remaining() && (b.Terms == nil || !b.Terms.OverageAllowed && b.Terms.OverflowMeter == "")
	return due || b.HeadRemaining < most, due || stale || refuses || most == DemandWhole
}

// MayChange reports whether terms that apply at once and have an instant up to `at` may change the open period. If so,
// the store must read the grants and the terms.
func (b *Book) MayChange(at time.Time) bool {
	return b.Opened() && at.After(b.Start) && at.After(b.TermsAt)
}

// UnchangedUntil returns the instant of the next terms after `at`. It returns the zero time if terms change the open
// period by the instant `at`, or if the terms were not read.
func (b *Book) UnchangedUntil(at time.Time) time.Time {
	if !b.Opened() || len(b.Timeline) == 0 || b.changesBy(at) {
		return time.Time{}
	}
	for i := range b.Timeline {
		if since := b.Timeline[i].since; since.After(at) {
			return since
		}
	}
	return period.Forever
}
