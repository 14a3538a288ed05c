package notice

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// Prefixes of the ids of operations that the ledger makes by itself.
const (
	holdExpires = "§hold-expire/"
	holdTakes   = "§hold-capture/"
	opens       = "§allowance/"
)

// notices collects the events of a batch.
type notices struct {
	events.Emitted

	books   map[ledger.BalanceKey]*ledger.Book // for data that entries lack; nil until it is needed
	changes *ledger.Changes
	watched map[ledger.BalanceKey]*watched // balances that may have crossed a threshold; nil: there are none
	holds   map[holdOf]int                 // indices in Emitted.Events
}

type holdOf struct {
	ledger.BalanceKey
	id string
}

// Of returns the events of changes.
func Of(c *ledger.Changes) events.Emitted {
	n := notices{changes: c}
	for _, b := range c.Books {
		n.watch(b)
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Kind != ledger.EntryDebit {
			n.entered(e)
		}
		if n.watched != nil {
			if w := n.watched[e.BalanceKey]; w != nil && e.PeriodStart.Equal(w.Start) {
				w.entries = append(w.entries, e)
			}
		}
	}
	for _, g := range c.NewGrants {
		n.granted(g)
	}
	for _, g := range c.Grants {
		if g.Extended {
			n.extended(g)
		}
	}
	for _, b := range c.Books { // in the order of the books, so that equal changes have equal events
		if w := n.watched[b.BalanceKey]; w != nil {
			w.addCrossed(&n.Emitted)
		}
	}
	return n.Emitted
}

// entered adds an event if the entry alone causes an event.
func (n *notices) entered(e *ledger.Entry) {
	switch {
	case e.Kind == ledger.EntryExpire && e.EffectiveAt.IsZero():
		// A refund or a release came too late: there was already an event when the grant ended.
	case e.Kind == ledger.EntryExpire && !strings.HasPrefix(e.OperationID, holdExpires) && !n.endsWithPeriod(e):
		n.Events = append(n.Events, events.Event{
			Type: events.GrantExpired, At: e.CreatedAt, Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject,
			Data: events.Grant{Grant: e.Grant, Source: string(e.Source), Amount: e.Amount, ExpiresAt: endOf(e.EffectiveAt)},
		})
	case e.Kind == ledger.EntryRelease && strings.HasPrefix(e.OperationID, holdExpires):
		n.holdExpired(e, holdExpires, e.Amount)
	case e.Kind == ledger.EntryCapture && strings.HasPrefix(e.OperationID, holdTakes):
		n.holdExpired(e, holdTakes, 0)
	case e.Kind == ledger.EntryGrant && e.Source == ledger.SourceAllowance && strings.HasPrefix(e.OperationID, opens):
		n.opened(e)
	}
}

// endsWithPeriod reports whether the entry's grant ends with its period, as periodic allowances and rollovers do.
func (n *notices) endsWithPeriod(e *ledger.Entry) bool {
	if e.Source != ledger.SourceAllowance && e.Source != ledger.SourceRollover {
		return false
	}
	book := n.book(e.BalanceKey)
	return book == nil || slices.ContainsFunc(book.Closed, func(p ledger.PeriodRow) bool { return p.End.Equal(e.EffectiveAt) })
}

// holdExpired adds units that an expired hold line returned to the event of the hold on this balance. The first line
// creates the event. prefix is that of the entry's operation.
func (n *notices) holdExpired(e *ledger.Entry, prefix string, units int64) {
	rest := strings.TrimPrefix(e.OperationID, prefix+e.Meter+"/"+e.Subject+"/")
	key := holdOf{e.BalanceKey, rest[:max(0, strings.LastIndexByte(rest, '/'))]}
	if i, there := n.holds[key]; there {
		h := n.Events[i].Data.(events.Hold)
		h.Amount += units
		n.Events[i].Data = h
		return
	}
	if n.holds == nil {
		n.holds = map[holdOf]int{}
	}
	n.holds[key] = len(n.Events)
	n.Events = append(n.Events, events.Event{
		Type: events.HoldExpired, At: e.CreatedAt, Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject,
		Data: events.Hold{Hold: key.id, Amount: units, ExpiredAt: e.EffectiveAt.UTC()},
	})
}

// opened adds an event for an opened period that is still open. If several periods were missed, only the last period
// has an event.
func (n *notices) opened(e *ledger.Entry) {
	book := n.book(e.BalanceKey)
	if book == nil || !book.Start.Equal(e.PeriodStart) || book.Subject != "" {
		return
	}
	n.Events = append(n.Events, events.Event{
		Type: events.PeriodOpened, At: e.CreatedAt, Tenant: e.Tenant, Meter: e.Meter,
		Data: events.Period{Plan: book.Plan, Limit: book.Limit(), PeriodStart: book.Start.UTC(), PeriodEnd: endOf(book.End)},
	})
}

// book returns a changed book of the batch. It returns nil if the book has not changed.
func (n *notices) book(k ledger.BalanceKey) *ledger.Book {
	if n.books == nil {
		n.books = make(map[ledger.BalanceKey]*ledger.Book, len(n.changes.Books))
		for _, b := range n.changes.Books {
			n.books[b.BalanceKey] = b
		}
	}
	return n.books[k]
}

// granted adds an event if the grant does not come from a plan. It also adds a reminder before the grant's end.
func (n *notices) granted(g *ledger.OpenGrant) {
	ofPlan := g.Source == ledger.SourceAllowance || g.Source == ledger.SourceRollover
	if !ofPlan {
		effective := g.EffectiveAt.UTC()
		n.Events = append(n.Events, events.Event{
			Type: events.GrantCreated, At: g.CreatedAt, Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject,
			Data: events.Grant{Grant: g.ID, Source: string(g.Source), Amount: g.Amount, EffectiveAt: &effective, ExpiresAt: endOf(g.ExpiresAt)},
		})
	}
	switch book := n.book(ledger.BalanceKey{Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject}); {
	case g.Status != ledger.GrantActive && g.Status != ledger.GrantPending, !g.ExpiresAt.Before(period.Forever):
		return
	case ofPlan && (book == nil || !g.ExpiresAt.Before(book.End)): // a grant that ends with its period has no reminder
		return
	}
	n.Reminders = append(n.Reminders, events.Reminder{
		Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject, Grant: g.ID, DueAt: g.ExpiresAt.Add(-events.Ahead),
	})
}

// extended moves the reminder of a grant that ends later. If the old end was already announced, the new end is
// announced as well.
func (n *notices) extended(g *ledger.OpenGrant) {
	r := events.Reminder{Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject, Grant: g.ID, DueAt: g.ExpiresAt.Add(-events.Ahead)}
	n.Dropped = append(n.Dropped, r)
	if g.ExpiresAt.Before(period.Forever) {
		n.Reminders = append(n.Reminders, r)
	}
}

// endOf returns an instant as events contain it: nil for never.
func endOf(t time.Time) *time.Time {
	if !t.Before(period.Forever) {
		return nil
	}
	t = t.UTC()
	return &t
}

// DefaultLevels returns, in order, the percentages that have events if the plan names no percentages.
func DefaultLevels() []int16 { return []int16{80, 100} }

var defaultLevels = DefaultLevels()

// watched is a balance whose entries are examined one by one.
type watched struct {
	*ledger.Book

	levels  []int16 // percentages, in order
	entries []*ledger.Entry
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
	n.watched[b.BalanceKey] = &watched{Book: b, levels: levels}
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

// addCrossed adds the thresholds that the entries cross, each once.
func (w *watched) addCrossed(emitted *events.Emitted) {
	sums := w.Sums
	for _, e := range slices.Backward(w.entries) {
		sums.Apply(e.Kind, -e.Amount) // sums at the beginning of the batch
	}
	seen := map[string]bool{}
	for _, e := range w.entries {
		before := sums
		sums.Apply(e.Kind, e.Amount)
		if makesRoom(e) {
			continue
		}
		for _, level := range w.levels {
			mark := "threshold:" + strconv.Itoa(int(level))
			if !seen[mark] && !reached(&before, level) && reached(&sums, level) {
				seen[mark] = true
				emitted.Events = append(emitted.Events, w.event(events.ThresholdReached, e, &sums, level, mark))
			}
		}
		// The mark contains the limit, so the event is emitted again after a top-up, but not after each refund.
		mark := "exhausted:" + strconv.FormatInt(sums.Limit(), 10)
		if before.Remaining() > 0 && sums.Remaining() == 0 && !seen[mark] {
			seen[mark] = true
			emitted.Events = append(emitted.Events, w.event(events.Exhausted, e, &sums, 0, mark))
		}
	}
}

// makesRoom reports whether an entry removes units that a plan gave, at the end of a period or of a trial. Such an
// entry is not use.
func makesRoom(e *ledger.Entry) bool {
	return e.Kind == ledger.EntryExpire && (e.Source == ledger.SourceAllowance || e.Source == ledger.SourceRollover)
}

func (w *watched) event(t events.Type, e *ledger.Entry, s *ledger.Sums, level int16, mark string) events.Event {
	return events.Event{
		Type: t, At: e.CreatedAt, Tenant: w.Tenant, Meter: w.Meter, Subject: w.Subject,
		Data: events.Level{
			Threshold: level, Used: used(s), Limit: s.Limit(), Remaining: s.Remaining(), Held: s.Held, Plan: w.Plan, PeriodStart: w.Start.UTC(),
			PeriodEnd: endOf(w.End),
		},
		Once: &events.Once{Start: w.Start, End: w.End, Mark: mark},
	}
}
