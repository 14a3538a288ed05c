package notice

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// Prefixes of the ids of operations that the ledger makes by itself.
const (
	holdExpires = "§hold-expire/"
	holdTakes   = "§hold-capture/"
	opens       = "§allowance/"
	opensOnce   = "§once/"
)

// notices collects the events of a batch.
type notices struct {
	events.Emitted

	causes  []int                              // by event: the index of the entry that caused it
	books   map[ledger.BalanceKey]*ledger.Book // for data that entries lack; nil until it is needed
	changes *ledger.Changes
	watched map[ledger.BalanceKey]*watched // balances that may have crossed a threshold; nil: there are none
	holds   map[holdOf]int                 // indices in Emitted.Events
	issued  map[ledger.GrantKey]int        // indices of the entries that issued the new grants; nil: there are none
}

type holdOf struct {
	ledger.BalanceKey
	id string
}

// Of returns the events of changes, in the order of their causes.
func Of(c *ledger.Changes) events.Emitted {
	n := notices{changes: c}
	for _, b := range c.Books {
		n.watch(b)
	}
	n.findIssued()
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Kind != ledger.EntryDebit {
			n.entered(i, e)
		}
		if n.watched != nil {
			if w := n.watched[e.BalanceKey]; w != nil {
				w.see(i, e)
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
	for _, b := range c.Books {
		for _, open := range b.NearLimit {
			n.add(len(c.Entries)-1, events.Event{
				Type: events.GrantsNearLimit, At: b.UpdatedAt, Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject,
				Data: events.Grants{Open: open, Most: ledger.GrantsOpenMax},
			})
		}
		if w := n.watched[b.BalanceKey]; w != nil {
			w.examine(&n)
		}
	}
	n.sort()
	return n.Emitted
}

// add adds the event that the entry with index cause has caused.
func (n *notices) add(cause int, e events.Event) {
	n.Events, n.causes = append(n.Events, e), append(n.causes, cause)
}

// sort orders the events by their causes.
func (n *notices) sort() {
	if slices.IsSorted(n.causes) {
		return
	}
	order := make([]int, len(n.Events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n.causes[a], n.causes[b]) })
	sorted := make([]events.Event, len(order))
	for i, at := range order {
		sorted[i] = n.Events[at]
	}
	n.Events = sorted
}

// findIssued finds the first entry of each new grant.
func (n *notices) findIssued() {
	if len(n.changes.NewGrants) == 0 {
		return
	}
	n.issued = make(map[ledger.GrantKey]int, len(n.changes.NewGrants))
	for _, g := range n.changes.NewGrants {
		n.issued[keyOf(g)] = 0
	}
	for i := range slices.Backward(n.changes.Entries) {
		e := &n.changes.Entries[i]
		k := ledger.GrantKey{BalanceKey: e.BalanceKey, ID: e.Grant}
		if _, isNew := n.issued[k]; isNew {
			n.issued[k] = i
		}
	}
}

func keyOf(g *ledger.OpenGrant) ledger.GrantKey {
	return ledger.GrantKey{BalanceKey: ledger.BalanceKey{Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject}, ID: g.ID}
}

// entered adds an event if the entry e alone, which has index i, causes an event.
func (n *notices) entered(i int, e *ledger.Entry) {
	switch {
	case e.Kind == ledger.EntryExpire && e.EffectiveAt.IsZero():
		// A refund or a release came too late: there was already an event when the grant ended.
	case e.Kind == ledger.EntryExpire && !strings.HasPrefix(e.OperationID, holdExpires) && !n.endsWithPeriod(e):
		n.add(i, events.Event{
			Type: events.GrantExpired, At: e.CreatedAt, Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject,
			Data: events.Grant{Grant: e.Grant, Source: string(e.Source), Amount: e.Amount, ExpiresAt: endOf(e.EffectiveAt)},
		})
	case e.Kind == ledger.EntryRelease && strings.HasPrefix(e.OperationID, holdExpires):
		n.holdExpired(i, holdExpires, e.Amount)
	case e.Kind == ledger.EntryCapture && strings.HasPrefix(e.OperationID, holdTakes):
		n.holdExpired(i, holdTakes, 0)
	case e.Kind == ledger.EntryGrant && e.Source == ledger.SourceAllowance &&
		(strings.HasPrefix(e.OperationID, opens) || strings.HasPrefix(e.OperationID, opensOnce) && e.EffectiveAt.Equal(e.PeriodStart)):
		n.opened(i, e)
	}
}

// endsWithPeriod reports whether the entry's grant ends with its period, as periodic allowances and rollovers do, or by
// a change of terms.
func (n *notices) endsWithPeriod(e *ledger.Entry) bool {
	if e.Source != ledger.SourceAllowance && e.Source != ledger.SourceRollover {
		return false
	}
	book := n.book(e.BalanceKey)
	return book == nil || e.ByChange() || slices.ContainsFunc(book.Closed, func(p ledger.PeriodRow) bool { return p.End.Equal(e.EffectiveAt) })
}

// holdExpired adds units that an expired hold line returned to the event of the hold on this balance. The first line
// creates the event. prefix is that of the operation of the entry with index cause.
func (n *notices) holdExpired(cause int, prefix string, units int64) {
	e := &n.changes.Entries[cause]
	rest := strings.TrimPrefix(e.OperationID, prefix+bound.Join(e.Meter, e.Subject, ""))
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
	n.add(cause, events.Event{
		Type: events.HoldExpired, At: e.CreatedAt, Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject,
		Data: events.Hold{Hold: key.id, Amount: units, ExpiredAt: e.EffectiveAt.UTC()},
	})
}

// opened adds an event for an opened period that is still open. If several periods were missed, only the last period
// has an event.
func (n *notices) opened(i int, e *ledger.Entry) {
	book := n.book(e.BalanceKey)
	if book == nil || !book.Start.Equal(e.PeriodStart) || book.Subject != "" {
		return
	}
	n.add(i, events.Event{
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
		n.add(n.issued[keyOf(g)], events.Event{
			Type: events.GrantCreated, At: g.CreatedAt, Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject,
			Data: events.Grant{Grant: g.ID, Source: string(g.Source), Amount: g.Amount, EffectiveAt: &effective, ExpiresAt: endOf(g.ExpiresAt)},
		})
	}
	switch book := n.book(keyOf(g).BalanceKey); {
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
