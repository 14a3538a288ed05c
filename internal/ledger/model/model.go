package model

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Model is one tenant's ledger. All its periods are hours or days from the tenant's anchor, or have no end.
type Model struct {
	Now       time.Time
	Suspended bool
	Changes   []PlanChange // in the order of their instants; the first change is the sign-up
	anchor    time.Time
	plans     map[string][]planVersion
	balances  map[ledger.BalanceKey]*balance
	reserves  []reservation
	holds     map[string]*hold
	ops       map[string]*operation
	trial     *trial    // nil: requests are carried out
	known     *timeline // see timeline
	foresees  time.Time // the instant from which on this copy of the model looks ahead; zero: it is no copy
}

type balance struct {
	start, end time.Time
	plan       string // empty: the plan has no such meter
	terms      Terms

	opening, granted, amended, refunded, used, expired, adjusted, overage int64

	overflow        int64       // units that other meters paid for
	owed            int64       // part of overage that earlier periods left
	paid            int64       // old overage paid by this period
	paidByRollover  int64       // part of paid that rollovers paid
	agreed          time.Time   // changes up to this instant have acted, or wait for the end of the period
	allowances      []allowance // all that it has had; the first is a placeholder
	current         int         // index of the open period's allowance; 0: it has none
	gift            int         // index of the once-only allowance in force; 0: there is none
	carried         int64       // units that earlier draws and holds take off the allowance, less those that came back
	carriedFrom     time.Time   // draws from this instant on are in carried
	nominal         time.Time   // overage from here on counts against the cap, and holds on what ends later are in carried
	uses            []use       // all draws from grants
	excess, paidOff []excess    // all overage, and all payments of overage
	before          int64       // overage of earlier periods that counts against the cap
	forgot          bool        // what a once-only allowance was short of was forgotten
	forgiven        time.Time   // overage before this instant is not owed
	acted           []acted
	entries         int
	grants          []grant
	closed          []string // its closed periods, as text
}

// grant is a grant. Its field `of` is the index of the allowance to which it belongs, 0 if it belongs to none.
type grant struct {
	id, source         string
	of                 int
	amount, left, held int64
	priority           int32
	from, until        time.Time
	state              string // pending, active or gone
}

type hold struct {
	state    string
	meters   []string
	captured []int64
	asked    []int64
	bought   []int64 // by item: units that the overflow meter pays for
	tabs     []tab
	subject  string
	until    time.Time
}

// reservation is the part of one grant that a hold reserves.
type reservation struct {
	hold    string
	line    int
	item    int
	subject bool
	balance ledger.BalanceKey
	grant   string
	price   int64 // negative on an overflow meter: its -price units pay for `per` units of the item
	per     int64
	left    int64
	until   time.Time
}

// operation is an operation that was done, or a denial that was stored.
type operation struct {
	body, answer string
	parts        []usedPart
	refundable   bool
	items        int // number of items of a debit
	groups       []group
}

// group is one charge to an overflow meter at a price that is not a whole number. If a capture made the charge, the
// hold's tab was charged.
type group struct {
	item, units, back int64
	hold              string
	tab               int
	at                time.Time
}

// usedPart is a part of a debit or capture that can be refunded.
type usedPart struct {
	item         int
	meter        string // meter of the item
	balance      ledger.BalanceKey
	grant        string
	price, per   int64 // as in reservation
	group        int   // index of the group whose parts were rounded together, if per is not 1
	amount, back int64
	overage      bool
	held         bool      // units that were captured from a hold
	at           time.Time // instant of the debit or capture
	start        time.Time // start of the period in which the use counts
}

func newModel(anchor, now time.Time) *Model {
	return &Model{
		anchor: anchor, Now: now, plans: map[string][]planVersion{}, balances: map[ledger.BalanceKey]*balance{},
		holds: map[string]*hold{}, ops: map[string]*operation{},
	}
}

func (m *Model) clone() *Model {
	c := *m
	c.balances, c.holds = map[ledger.BalanceKey]*balance{}, map[string]*hold{}
	c.ops = maps.Clone(m.ops) // refund copies the operation that it changes
	for k, b := range m.balances {
		copied := *b
		copied.grants, copied.closed, copied.uses = slices.Clone(b.grants), slices.Clip(b.closed), slices.Clip(b.uses)
		copied.allowances, copied.excess = slices.Clone(b.allowances), slices.Clone(b.excess)
		copied.paidOff = slices.Clip(b.paidOff)
		c.balances[k] = &copied
	}
	for id, h := range m.holds {
		copied := *h
		copied.captured, copied.asked, copied.bought = slices.Clone(h.captured), slices.Clone(h.asked), slices.Clone(h.bought)
		copied.tabs = slices.Clone(h.tabs)
		for i := range copied.tabs {
			copied.tabs[i].paid = slices.Clone(h.tabs[i].paid)
		}
		c.holds[id] = &copied
	}
	c.reserves = slices.Clone(m.reserves)
	return &c
}

// Keys lists the balances in order.
func (m *Model) Keys() []ledger.BalanceKey {
	return slices.SortedFunc(maps.Keys(m.balances), ledger.CompareKeys)
}

// ClosedPeriods returns the closed periods of k, oldest first, as PeriodText renders them.
func (m *Model) ClosedPeriods(k ledger.BalanceKey) []string { return m.touch(k).closed }

// Empty reports whether every amount of k has been 0 in every period.
func (m *Model) Empty(k ledger.BalanceKey) bool {
	b := m.touch(k)
	if b.opening|b.granted|b.amended|b.refunded|b.used|b.expired|b.adjusted|b.overage|b.overflow != 0 {
		return false
	}
	return !slices.ContainsFunc(b.closed, func(closed string) bool {
		return strings.ContainsAny(closed[strings.Index(closed, "opening"):], "123456789")
	})
}
