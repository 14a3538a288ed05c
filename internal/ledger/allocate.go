package ledger

import (
	"encoding/json"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// Mode selects what happens when a debit requests more than is available.
type Mode string

// The modes of a debit.
const (
	ModeNormal     Mode = "normal"      // all or nothing
	ModeBestEffort Mode = "best_effort" // charge the available units, report the rest as shortfall
	ModeDrain      Mode = "drain"       // the work is done: charge the available units, record the rest as overage
)

// SourceOverage marks draws that no grant paid.
const SourceOverage Source = "overage"

// sources are the balances that one item can draw from. The order is: the grants of its own balance, the overflow
// meter's grants at their price, overage up to its cap. If the plan caps subjects, the subject's balance bounds the
// sum and is charged the same units. The cap does not bound a drain: use beyond the cap is overage of the subject's
// balance.
type sources struct {
	own      *Book
	overflow *Book       // nil: there is none, or it is not needed
	price    price.Ratio // price of units of the item's meter, in units of the overflow meter
	hold     *payment    // payment so far of the hold to be captured; nil: no hold, or the price is a whole number
	subject  *Book       // nil: no cap
	overage  int64       // units of overage that are still allowed
	drains   bool        // the item is drained
}

// allocation says how an item's amount is divided among its sources.
type allocation struct {
	units    int64 // units of the item's meter that are charged: own + overflow + overage
	own      int64 // units from own grants
	overflow int64 // units of the item's meter that the overflow meter pays for
	cost     int64 // units that the overflow meter pays: see sources.cost
	overage  int64
	drained  int64 // use beyond all sources that a drain records as overage
}

// sourcesOf finds the balances that an item can draw from. It includes the overflow meter only if amount exceeds the
// balance's own grants. Otherwise the overflow meter's row need not be locked.
func (b *Batch) sourcesOf(tenant, meter, subject string, amount int64) (*sources, *errcode.Error, error) {
	own, refused := b.Book(BalanceKey{tenant, meter, ""})
	if refused != nil {
		return nil, refused, nil
	}
	if full := own.full(); full != nil {
		return nil, full, nil
	}
	s := &sources{own: own}
	if own.Plan == "" {
		return s, nil, nil
	}
	t := own.Terms
	if t == nil {
		return nil, nil, errNotLoaded
	}
	if t.OverageAllowed {
		s.overage = MaxAmount - own.Overage
		if t.OverageCap != nil {
			s.overage = max(0, *t.OverageCap-own.Overage-own.OverageBefore)
		}
	}
	capped, overflows := subject != "" && t.PerSubject != nil, t.OverflowMeter != "" && amount > own.Remaining()
	if !capped && !overflows {
		return s, nil, nil
	}
	refused, err := b.addSources(s, subject, capped, overflows)
	return s, refused, err
}

// addSources adds the balances of the subject and of the overflow meter to s.
func (b *Batch) addSources(s *sources, subject string, capped, overflows bool) (refused *errcode.Error, err error) {
	var keys []BalanceKey
	if capped {
		keys = append(keys, BalanceKey{s.own.Tenant, s.own.Meter, subject})
	}
	if overflows {
		keys = append(keys, BalanceKey{s.own.Tenant, s.own.Terms.OverflowMeter, ""})
	}
	if err := b.require(keys...); err != nil {
		return nil, err
	}
	if capped {
		if s.subject, refused = b.Book(keys[0]); refused != nil {
			return refused, nil
		}
	}
	if overflows {
		s.price = s.own.Terms.OverflowPrice
		s.overflow, refused = b.Book(keys[len(keys)-1])
	}
	for _, book := range []*Book{s.subject, s.overflow} {
		if refused == nil && book != nil {
			refused = book.full()
		}
	}
	return refused, nil
}

// allocate divides amount among the sources, up to the units that they have. The number of units that the overflow
// meter can still pay for is rounded down.
func (s *sources) allocate(amount int64) allocation {
	var a allocation
	if s.subject != nil && !s.drains {
		amount = min(amount, s.subject.Remaining())
	}
	a.own = min(amount, s.own.Remaining())
	rest := amount - a.own
	if s.overflow != nil {
		a.overflow = min(rest, s.price.MaxUnits(s.overflow.Remaining()+s.hold.taken())-s.hold.used())
		a.cost = s.cost(a.overflow)
		rest -= a.overflow
	}
	a.overage = min(rest, s.overage)
	a.units = a.own + a.overflow + a.overage
	return a
}

// cost returns the number of units of the overflow meter that pay for n units of the item. This is the price of all
// units that the overflow meter pays for, rounded up once to a whole unit, minus the units that a hold has paid before.
func (s *sources) cost(n int64) int64 {
	if n == 0 {
		return 0
	}
	return max(0, s.price.Cost(s.hold.used()+n)-s.hold.taken())
}

// available returns the most units of the item's meter that could be charged now.
func (s *sources) available() int64 { return s.allocate(MaxAmount).units }

// canDraw reports whether the books contain the grants from which the allocation a draws.
func (s *sources) canDraw(a *allocation) bool {
	amounts := [...]int64{a.own, a.cost, a.units + a.drained}
	for i, book := range s.books() {
		if book != nil && !book.canDraw(amounts[i]) {
			return false
		}
	}
	return true
}

// books returns the books of the sources in the order own, overflow, subject. Books that are not needed are nil.
func (s *sources) books() [3]*Book { return [...]*Book{s.own, s.overflow, s.subject} }

// charge draws the allocation a for an item, writes its entries and returns the draws. The first entry carries the
// requested amount.
func (b *Batch) charge(s *sources, a *allocation, item int32, requested int64) []Draw {
	first := len(b.journal)
	draws := s.own.draw(&b.journal, b.Now, a.own, Entry{Kind: EntryDebit, Item: item})
	switch {
	case a.overflow > 0 && s.hold != nil:
		b.captureOverflow(s, a)
	case a.overflow > 0:
		draws = append(draws, b.chargeOverflow(s, a, item)...)
	}
	if a.overage+a.drained > 0 {
		draws = append(draws, b.chargeOverage(s, a, item)...)
	}
	if s.subject != nil {
		b.chargeSubject(s.subject, a.units+a.drained, item)
	}
	if len(b.journal) == first { // nothing was drawn: this entry still records the operation
		b.enter(s.own, Entry{Kind: EntryDebit, Item: item})
	}
	b.journal[first].Requested = requested
	return draws
}

// chargeOverflow draws the cost from the overflow meter. Only the first entry that it writes has the number of units of
// the item that the cost pays for.
func (b *Batch) chargeOverflow(s *sources, a *allocation, item int32) []Draw {
	first := len(b.journal)
	detail := price.Payment{For: s.own.Meter}.At(s.price)
	draws := s.overflow.draw(&b.journal, b.Now, a.cost, Entry{Kind: EntryDebit, Item: item, Detail: mustJSON(detail)})
	b.journal[first].Detail = mustJSON(s.paid(a))
	return draws
}

// paid returns the payment of the overflow meter. a.overflow must be more than 0.
func (s *sources) paid(a *allocation) *price.Payment {
	paid := price.Payment{For: s.own.Meter, Units: a.overflow, Period: s.own.Start}.At(s.price)
	return &paid
}

// chargeOverage writes an entry for the units that no grant pays. Units that a drain records beyond all sources are
// not returned as a draw.
func (b *Batch) chargeOverage(s *sources, a *allocation, item int32) []Draw {
	b.enter(s.own, Entry{Kind: EntryOverage, Source: SourceOverage, Amount: a.overage + a.drained, Item: item})
	if a.overage == 0 {
		return nil
	}
	return []Draw{{Source: SourceOverage, Meter: s.own.Meter, Amount: a.overage}}
}

// chargeSubject charges the subject's balance for the tenant's use, up to the cap. A drain may use more: that is
// overage of the subject's balance.
func (b *Batch) chargeSubject(subject *Book, units int64, item int32) {
	within := min(units, subject.Remaining())
	subject.draw(&b.journal, b.Now, within, Entry{Kind: EntryDebit, Item: item})
	if beyond := units - within; beyond > 0 {
		b.enter(subject, Entry{Kind: EntryOverage, Source: SourceOverage, Amount: beyond, Item: item})
	}
}

// overflowOf returns the payment that an entry on an overflow meter made. It returns nil for other entries. The
// detail of a debit is the payment itself. The detail of a capture has the payment in the field overflow.
func overflowOf(e *Entry) *price.Payment {
	if e.Kind != EntryDebit && e.Kind != EntryCapture || e.Detail == nil {
		return nil
	}
	var d struct {
		price.Payment

		Overflow *price.Payment `json:"overflow"`
	}
	switch err := json.Unmarshal(e.Detail, &d); {
	case err != nil:
		return nil
	case d.Overflow != nil:
		return d.Overflow
	case d.Price > 0:
		return &d.Payment
	}
	return nil
}

// mustJSON encodes a struct of plain fields as JSON. This cannot fail.
func mustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("ledger: encode detail of an entry: " + err.Error())
	}
	return out
}
