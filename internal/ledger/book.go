package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// key names a balance.
type key struct{ Tenant, Meter, Subject string }

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Meter, b.Meter), cmp.Compare(a.Subject, b.Subject))
}

// balance is the stored row. All amounts count the open period.
type balance struct {
	key
	seq           int64
	plan          string // terms the period was opened under; '' = the plan has no such meter
	planVersion   int32
	allowance     int64
	renews        bool
	start, end    time.Time // zero = no period was opened yet; end forever = no end
	opening       int64
	granted       int64
	refunded      int64
	used          int64
	expired       int64
	adjusted      int64
	held          int64
	overage       int64
	owed          int64 // part of overage that earlier periods left
	settled       int64 // overage of earlier periods that this period's allowance has paid
	forgivenSeq   int64 // entry at which overage was last forgiven; overage up to there is nobody's debt
	headID        string
	headSource    Source
	headRemaining int64
	nextEvent     time.Time // no event is due before
	updatedAt     time.Time
}

func (b *balance) remaining() int64 {
	return b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held
}

// limit is what could be used in the open period in all. Refunds of earlier periods' debits can outweigh what was used.
func (b *balance) limit() int64 { return max(0, b.used-b.refunded) + b.held + b.remaining() }

func (b *balance) opened() bool { return !b.start.IsZero() }

func (b *balance) position() Position {
	p := Position{Remaining: b.remaining(), Limit: b.limit()}
	if b.end.Before(period.Forever) {
		p.ResetAt = b.end
	}
	return p
}

// grant is an open grant of a balance in memory.
type grant struct {
	GrantRecord
	isNew bool
	dirty bool
}

// burnsBefore is the burn order: lower priority, then sooner expiry, then earlier effect, then id.
func burnsBefore(a, b *grant) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		a.ExpiresAt.Compare(b.ExpiresAt),
		a.EffectiveAt.Compare(b.EffectiveAt),
		cmp.Compare(a.ID, b.ID),
	)
}

// closedPeriod is a row of periods to be written.
type closedPeriod struct {
	key
	start, end        time.Time
	plan              string
	planVersion       int32
	opening, granted  int64
	refunded, used    int64
	expired, adjusted int64
	overage, held     int64
	closing, lastSeq  int64
	closedAt          time.Time
}

// book is one balance with what a decision needs of it, and what the decisions have changed.
//
// The head grant's remainder lives in the balance; while grants are loaded, the head's element is kept equal to it. Grants
// are loaded (loaded = true) whenever an event is due or the head may not cover the demand; otherwise a debit touches the
// balance alone.
type book struct {
	balance
	grants []*grant    // open grants in burn order
	holds  []*holdLine // what holds reserve of them
	terms  *allowance  // of the open period; nil = the plan has no such meter, or not read
	loaded bool
	// writtenAt is updatedAt as it was read: everything due until then had been worked off.
	writtenAt time.Time
	timeline  timeline // terms; only when an event is due or the plan has no such meter yet
	closed    []closedPeriod
	// unwritten is what advance made in memory, for reads that break a period down.
	unwritten []line
	carried   *grant // what the closing period hands to the next one, while advance is between the two
	owing     int64  // overage that the closing period leaves owed to the next one, likewise
	dirty     bool
	broken    error // the next period cannot be computed: the book is neither used nor written
}

// head returns the loaded element of the head grant, or nil.
func (b *book) head() *grant {
	for _, g := range b.grants {
		if g.ID == b.headID {
			return g
		}
	}
	return nil
}

// attach gives the book its open grants as stored. The stored remainder of the head is stale; the balance knows it.
func (b *book) attach(grants []*grant, holds []*holdLine) {
	b.grants, b.holds, b.loaded = grants, holds, true
	slices.SortFunc(b.grants, burnsBefore)
	if h := b.head(); h != nil {
		h.Remaining = b.headRemaining
	}
}

// setRemaining changes what is left of a loaded grant. A head's remainder is written with the balance, any other's with
// its own row.
func (b *book) setRemaining(g *grant, remaining int64) {
	g.Remaining = remaining
	if g.ID == b.headID {
		b.headRemaining = remaining
	} else {
		g.dirty = true
	}
	b.dirty = true
}

// settle brings head, status of grants and next event back in order after loaded grants were changed.
func (b *book) settle() {
	if !b.loaded {
		return
	}
	var head *grant
	next := b.end
	for _, g := range b.grants {
		if g.Status == GrantActive && g.Remaining == 0 && g.Held == 0 && !b.mayReturnSettled(g) {
			g.Status, g.dirty = GrantExhausted, true
		}
		switch g.Status {
		case GrantActive:
			if head == nil && g.Remaining > 0 {
				head = g
			}
			next = earlier(next, g.ExpiresAt)
		case GrantPending:
			next = earlier(next, g.EffectiveAt)
		case GrantExhausted, GrantExpired, GrantVoided:
		}
	}
	for _, h := range b.holds {
		if h.open() > 0 {
			next = earlier(next, h.expiresAt)
		}
	}
	b.moveHead(head)
	if !b.nextEvent.Equal(next) {
		b.nextEvent, b.dirty = next, true
	}
}

// mayReturnSettled says that a refund may bring back what g, the open period's allowance, has paid of older overage. Such a one
// stays open, used up or not: refunds of older operations do not know its name.
func (b *book) mayReturnSettled(g *grant) bool {
	return b.settled > 0 && g.Source == SourceAllowance && g.EffectiveAt.Equal(b.start)
}

// settler is the name of the grant that has paid what is settled.
func (b *book) settler() string {
	for _, g := range b.grants {
		if b.mayReturnSettled(g) {
			return g.ID
		}
	}
	return allowanceID(b.start)
}

// moveHead makes g the head. The old head's remainder goes back to its own row.
func (b *book) moveHead(g *grant) {
	if old := b.head(); old != nil && old != g {
		old.dirty = true
	}
	switch {
	case g == nil && b.headID != "":
		b.headID, b.headSource, b.headRemaining, b.dirty = "", "", 0, true
	case g != nil && g.ID != b.headID:
		b.headID, b.headSource, b.headRemaining, b.dirty = g.ID, g.Source, g.Remaining, true
	}
}

// clone copies the book so that the copy can be advanced or undone without a trace.
func (b *book) clone() *book {
	c := *b
	c.grants = make([]*grant, len(b.grants))
	for i, g := range b.grants {
		copied := *g
		c.grants[i] = &copied
	}
	c.holds = make([]*holdLine, len(b.holds))
	for i, h := range b.holds {
		copied := *h
		c.holds[i] = &copied
	}
	c.closed = slices.Clone(b.closed)
	return &c
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// addGrant puts a new grant among the open ones. The caller settles.
func (b *book) addGrant(g *grant) {
	at, _ := slices.BinarySearchFunc(b.grants, g, burnsBefore)
	b.grants = slices.Insert(b.grants, at, g)
	b.dirty = true
}
