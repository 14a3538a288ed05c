package notice

import (
	"slices"
	"strconv"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// The share of a threshold is what was used, with overage, of what can be used: used + held + remaining. Units on hold
// can still be used, but are not used yet. So a hold, its release and its capture do not change what can be used.
//
// A threshold is emitted when an operation takes the share to it or above it. It is emitted again only after an
// operation has raised what can be used and has left the share below the threshold: this arms the threshold. An
// operation that raises what can be used arms the event Exhausted as well.

// DefaultLevels returns, in order, the percentages that have events if the plan names no percentages.
func DefaultLevels() []int16 { return []int16{80, 100} }

var defaultLevels = DefaultLevels()

// markExhausted is the mark of events of type Exhausted.
const markExhausted = "exhausted"

func markOf(level int16) string { return "threshold:" + strconv.Itoa(int(level)) }

// watched is a balance whose operations are examined one by one.
type watched struct {
	*ledger.Book

	levels  []int16          // percentages, in order
	entries []int            // indices of the entries of the open period
	left    int64            // remaining units before the batch, if the batch closed the period; 0: it did not
	last    int              // index of the last entry that the ledger made by itself
	isNew   bool             // the batch has opened the period, so no mark of it is stored
	marks   map[string]state // marks that the batch has set or cleared; nil: none
}

// state is what a batch has done to a mark.
type state int8

const (
	emitted state = iota + 1
	armed         // the event may be emitted again
)

// arm clears a mark if it may be stored.
func (w *watched) arm(mark string) {
	if !w.isNew || w.marks[mark] == emitted {
		w.set(mark, armed)
	}
}

func (w *watched) set(mark string, s state) {
	if w.marks == nil {
		w.marks = map[string]state{}
	}
	w.marks[mark] = s
}

// watch adds a book to watched if its entries may have crossed a threshold.
func (n *notices) watch(b *ledger.Book) {
	levels, emits := levelsOf(b)
	if !emits {
		return
	}
	if b.HeadOnly() && b.Remaining() > 0 && (len(levels) == 0 || !reached(&b.Sums, levels[0])) {
		return // debits only add to use, which is below the lowest level
	}
	if n.watched == nil {
		n.watched = map[ledger.BalanceKey]*watched{}
	}
	w := &watched{Book: b, levels: levels, isNew: len(b.Closed) > 0}
	if w.isNew {
		w.left = b.Closed[0].Remaining()
	}
	n.watched[b.BalanceKey] = w
}

// levelsOf returns the percentages that have events for a balance, in order, and whether it has any events. Balances
// of subjects have events only if the plan names percentages: a tenant may have one such balance for each of its
// users.
func levelsOf(b *ledger.Book) (levels []int16, emits bool) {
	if b.Terms != nil && b.Terms.AlertAt != nil {
		levels = *b.Terms.AlertAt
		if !slices.IsSorted(levels) {
			levels = slices.Sorted(slices.Values(levels))
		}
		return levels, b.Subject == "" || len(levels) > 0
	}
	return defaultLevels, b.Subject == ""
}

// used returns the units that count as used. Overage of earlier periods does not count.
func used(s *ledger.Sums) int64 { return max(0, s.Used-s.Refunded) + max(0, s.Overage-s.Owed) }

// use returns the same as used, but refunds of units of earlier periods can make it negative. So it grows with each
// used unit.
func use(s *ledger.Sums) int64 { return s.Used - s.Refunded + s.Overage - s.Owed }

// reached reports whether at least percent of the limit is used. No percentage is reached if the limit is 0.
func reached(s *ledger.Sums, percent int16) bool {
	limit := s.Limit()
	if limit <= 0 {
		return false
	}
	// used*100 >= percent*limit without a product that is too large: amounts have 53 bits, and percent has at most
	// ten bits.
	whole, rest := limit/100*int64(percent), limit%100*int64(percent)
	return used(s) >= whole+(rest+99)/100
}

// see notes the entry e, which has index i.
func (w *watched) see(i int, e *ledger.Entry) {
	switch {
	case e.PeriodStart.Equal(w.Start):
		w.entries = append(w.entries, i)
	case len(w.Closed) > 0 && e.PeriodStart.Equal(w.Closed[0].Start):
		m, _ := e.Kind.Moves()
		w.left -= m.Remaining() * e.Amount
	}
	if !e.EffectiveAt.IsZero() {
		w.last = i
	}
	w.isNew = w.isNew || e.Seq == 1
}

// examine adds the events of the balance's operations.
func (w *watched) examine(n *notices) {
	sums := w.Sums
	for _, i := range slices.Backward(w.entries) {
		e := &n.changes.Entries[i]
		sums.Apply(e.Kind, -e.Amount) // sums at the beginning of the batch, or of the period
	}
	for from := 0; from < len(w.entries); {
		first := &n.changes.Entries[w.entries[from]]
		if first.EffectiveAt.IsZero() {
			w.opened(n, &sums)
		}
		op := operation{watched: w, before: sums}
		for ; from < len(w.entries); from++ {
			e := &n.changes.Entries[w.entries[from]]
			if e.OperationID != first.OperationID {
				break
			}
			sums.Apply(e.Kind, e.Amount)
			op.cause, op.regrants = w.entries[from], op.regrants || n.regrants(w.entries[from])
		}
		if op.after = sums; !makesRoom(first) {
			op.armAll()
			op.emit(n)
		}
	}
	w.opened(n, &sums)
	for mark, s := range w.marks {
		if s == armed {
			n.Armed = append(n.Armed, events.Mark{
				Tenant: w.Tenant, Meter: w.Meter, Subject: w.Subject, Start: w.Start, Name: mark,
			})
		}
	}
}

// opened adds an event if the period was opened with nothing, although units were left before. Then new terms give
// nothing. sums are those after the opening. The next calls of opened do nothing.
func (w *watched) opened(n *notices, sums *ledger.Sums) {
	if w.left > 0 && sums.Remaining() == 0 {
		op := operation{watched: w, cause: w.last, after: *sums}
		op.add(n, events.Exhausted, 0, markExhausted)
	}
	w.left = 0
}

// makesRoom reports whether an entry removes units that a plan gave, at the end of a period or of a trial. Such an
// entry is not use. A change that gives the allowance anew ends the old one in its own operation.
func makesRoom(e *ledger.Entry) bool {
	return e.Kind == ledger.EntryExpire && (e.Source == ledger.SourceAllowance || e.Source == ledger.SourceRollover) &&
		!e.ByChange()
}

// regrants reports whether the entry with index i issues refunded units anew. The units count as refunded, so the limit
// is the same, but the tenant has a new grant.
func (n *notices) regrants(i int) bool {
	e := &n.changes.Entries[i]
	first, isNew := n.issued[ledger.GrantKey{BalanceKey: e.BalanceKey, ID: e.Grant}]
	m, _ := e.Kind.Moves()
	return isNew && first == i && m.Refunded > 0
}

// operation is what one operation did to a watched balance.
type operation struct {
	*watched

	cause         int // index of its last entry
	before, after ledger.Sums
	regrants      bool
}

// armAll clears the marks of the thresholds that the share is below, if the operation raised what can be used.
func (o *operation) armAll() {
	if o.after.Limit() <= o.before.Limit() && !o.regrants {
		return
	}
	for _, level := range o.levels {
		if !reached(&o.after, level) {
			o.arm(markOf(level))
		}
	}
	if o.after.Remaining() > 0 {
		o.arm(markExhausted)
	}
}

// emit adds the events of the operation: thresholds up to 100, then Exhausted, then thresholds of overage. If the
// operation only took units away and nothing remains, emit adds Exhausted alone.
func (o *operation) emit(n *notices) {
	uses := use(&o.after) > use(&o.before)
	thresholds := uses || o.after.Remaining() > 0
	overage, _ := slices.BinarySearch(o.levels, 101)
	if thresholds {
		o.emitLevels(n, o.levels[:overage])
	}
	if o.before.Remaining() > 0 && o.after.Remaining() == 0 {
		if !uses && o.after.Limit() < o.before.Limit() { // units were taken away
			o.set(markExhausted, armed)
		}
		o.add(n, events.Exhausted, 0, markExhausted)
	}
	if thresholds {
		o.emitLevels(n, o.levels[overage:])
	}
}

func (o *operation) emitLevels(n *notices, levels []int16) {
	for _, level := range levels {
		if !reached(&o.before, level) && reached(&o.after, level) {
			o.add(n, events.ThresholdReached, level, markOf(level))
		}
	}
}

// add adds an event, unless the batch has emitted it and has not armed it since.
func (o *operation) add(n *notices, t events.Type, level int16, mark string) {
	was := o.marks[mark]
	if was == emitted {
		return
	}
	o.set(mark, emitted)
	s := &o.after
	n.add(o.cause, events.Event{
		Type: t, At: n.changes.Entries[o.cause].CreatedAt, Tenant: o.Tenant, Meter: o.Meter, Subject: o.Subject,
		Data: events.Level{
			Threshold: level, Used: used(s), Limit: s.Limit(), Remaining: s.Remaining(), Held: s.Held, Plan: o.Plan,
			PeriodStart: o.Start.UTC(), PeriodEnd: endOf(o.End),
		},
		Once: &events.Once{Start: o.Start, End: o.End, Mark: mark, Armed: was == armed},
	})
}
