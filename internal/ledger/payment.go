package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// payment has the lines of the overflow meter, open or closed, with which a hold pays for one item at one price. It
// exists only if the price is not a whole number. After each capture, release, expiry or refund, the lines have paid
// the cost of the units that stay captured, rounded up once:
//
//	taken = cost(used), minus the deferred unit while the hold is open
//
// While units of the item stay reserved, one unit of the overflow meter stays reserved with them, because a hold is
// active only while a line is open. A capture that would take this last unit defers it. The end of the hold captures
// the deferred unit and returns the others.
type payment struct {
	row   *HoldRow
	item  int
	lines []*HoldLine // by number
}

// paymentOf returns the payment of an item from the book of the overflow meter. It has no lines if the hold pays
// nothing at this price, or if an older version wrote the lines.
func paymentOf(row *HoldRow, item int, payer *Book, r price.Ratio) *payment {
	p := &payment{row: row, item: item}
	for _, l := range payer.Holds {
		if l.HoldID == row.ID && int(l.Item) == item && l.PaysFor != "" && l.ratio() == r {
			p.lines = append(p.lines, l)
		}
	}
	slices.SortFunc(p.lines, func(a, b *HoldLine) int { return int(a.Line - b.Line) })
	return p
}

// paymentFor returns the payment to which the entry e of a capture belongs, nil if e belongs to none.
func (b *Batch) paymentFor(e *Entry, paid *price.Payment) *payment {
	row := b.Targets.Holds[HoldKey{e.Tenant, holdOf(e)}]
	if row == nil || e.Kind != EntryCapture { // older versions wrote debits for units beyond the hold
		return nil
	}
	if p := paymentOf(row, int(e.Item), b.Books[e.BalanceKey], paid.Ratio()); len(p.lines) > 0 {
		return p
	}
	return nil
}

// adopt completes a hold's lines if an older version of the service wrote or changed them.
func (b *Batch) adopt(row *HoldRow) {
	for _, book := range b.Books {
		for _, l := range book.Holds {
			if book.Tenant != row.Tenant || l.HoldID != row.ID || l.Per == 1 {
				continue
			}
			if l.PaysFor == "" {
				l.PaysFor, l.changed = row.Items[l.Item].Meter, true
			}
			paymentOf(row, int(l.Item), book, l.ratio()).deferRest()
		}
	}
}

// captured returns how many of the units that the hold reserved at this price were captured. It includes captured units
// that were refunded.
func (p *payment) captured() int64 {
	it, reserved := &p.row.Items[p.item], p.lines[0].Paid
	return max(0, min(it.Amount, it.Captured)-(it.Amount-reserved))
}

// used returns the units of the item that were captured at this price and not refunded.
func (p *payment) used() int64 {
	if p == nil || len(p.lines) == 0 {
		return 0
	}
	return max(0, p.captured()+p.lines[0].Beyond)
}

// taken returns the units of the overflow meter that were captured and not refunded.
func (p *payment) taken() int64 {
	sum := int64(0)
	if p != nil {
		for _, l := range p.lines {
			sum += l.Captured - l.Refunded
		}
	}
	return sum
}

// open returns the units of the overflow meter that are reserved.
func (p *payment) open() int64 {
	sum := int64(0)
	for _, l := range p.lines {
		sum += l.Open()
	}
	return sum
}

// deferRest defers the unit by which fewer units were taken than the used units cost, if there is one.
func (p *payment) deferRest() {
	p.defers(min(1, max(0, p.lines[0].ratio().Cost(p.used())-p.taken())))
}

// defers sets the deferred unit: n is 0 or 1. The last open line keeps it.
func (p *payment) defers(n int64) {
	for i := len(p.lines) - 1; i >= 0; i-- {
		l, here := p.lines[i], int64(0)
		if l.Open() > 0 {
			here, n = n, 0
		}
		if l.Deferred != here {
			l.Deferred, l.changed = here, true
		}
	}
}

// capturePayment captures units of an item at a price that is not a whole number. If refunds have returned units that
// the remaining captures need, the missing units are drawn like those of a debit.
func (h *HoldChange) capturePayment(b *Batch, p *payment, units int64) (*errcode.Error, error) {
	if units == 0 {
		return nil, nil
	}
	first, keep := p.lines[0], int64(0)
	if left := first.Paid - p.captured() - units; left > 0 && !h.Final {
		keep = 1
	}
	due := max(0, first.ratio().Cost(p.used()+units)-p.taken())
	take := min(due, max(0, p.open()-keep))
	deferred := min(due-take, keep)
	paid := b.paysFor(first.ratio(), BalanceKey{p.row.Tenant, first.PaysFor, ""}, units)
	rest := take
	for _, l := range p.lines {
		if n := b.captureLine(l, min(rest, l.Open()), paid); n > 0 {
			rest -= n
			paid.Units = 0
		}
	}
	p.defers(deferred)
	if missing := due - take - deferred; missing > 0 {
		return b.payMore(p, b.Books[first.BalanceKey], missing, paid)
	}
	b.stateUnits(p, paid)
	return nil, nil
}

// paysFor returns the payment for units of the balance `of`.
func (b *Batch) paysFor(r price.Ratio, of BalanceKey, units int64) *price.Payment {
	paid := price.Payment{For: of.Meter, Units: units}.At(r)
	if own := b.Books[of]; own != nil && units > 0 { // nil: the meter was deleted
		paid.Period = own.Start
	}
	return &paid
}

// takeDeferred makes the deferred unit of a line a captured unit. It returns the entry, which the caller writes.
func (b *Book) takeDeferred(l *HoldLine) Entry {
	n := l.Deferred
	l.Deferred = 0
	b.takeLine(l, n)
	paid := price.Payment{For: l.PaysFor}.At(l.ratio())
	return captureEntry(l, n, &paid)
}

// stateUnits writes an entry with the amount 0 that records the paid units, unless another entry has recorded them.
// Earlier captures or the end of the hold pay for these units.
func (b *Batch) stateUnits(p *payment, paid *price.Payment) {
	if paid.Units == 0 {
		return
	}
	l := p.lines[0]
	if i := slices.IndexFunc(p.lines, func(l *HoldLine) bool { return l.Open() > 0 }); i >= 0 {
		l = p.lines[i]
	}
	b.enter(b.Books[l.BalanceKey], captureEntry(l, 0, paid))
	paid.Units = 0
}

// payMore draws further units of the overflow meter, which the hold has not reserved. Their number is `cost`. They
// become new lines of the hold, which are captured at once. payMore returns a denial if the meter has fewer units.
func (b *Batch) payMore(p *payment, payer *Book, cost int64, paid *price.Payment) (*errcode.Error, error) {
	if payer.Remaining() < cost {
		s := &sources{own: payer}
		return s.deny(b, p.item, cost), nil
	}
	if !payer.loaded {
		return nil, errNotLoaded
	}
	b.save(payer)
	last := int32(0)
	for _, book := range b.Books {
		for _, l := range book.Holds {
			if book.Tenant == p.row.Tenant && l.HoldID == p.row.ID {
				last = max(last, l.Line)
			}
		}
	}
	before := len(payer.Holds)
	b.reserve(payer, p.row, lineAt(p.item, paid.For, paid.Ratio()), cost, &last)
	for _, l := range payer.Holds[before:] {
		b.captureLine(l, l.Amount, paid)
		paid.Units = 0
		p.lines = append(p.lines, l)
	}
	payer.refresh()
	return nil, nil
}

// lineAt returns a line of an overflow meter that pays for a hold's item.
func lineAt(item int, meter string, r price.Ratio) HoldLine {
	l := HoldLine{Item: int32(item), Price: r.Units, Per: r.Per}
	if !r.IsWhole() {
		l.PaysFor = meter
	}
	return l
}

// endLine ends the line of a hold that expired: it captures the deferred unit and returns the others.
func (b *Book) endLine(j *[]Entry, h *HoldLine, due, now time.Time) {
	which := fmt.Sprint(h.HoldID, "/", h.Line)
	if h.Deferred > 0 {
		e := b.takeDeferred(h)
		e.OperationID, e.Line, e.EffectiveAt = systemID("hold-capture", b.BalanceKey, which), 1, due
		b.enter(j, now, e)
	}
	if n := h.Open(); n > 0 {
		b.giveBack(j, h, n, ReturnForfeit, systemID("hold-expire", b.BalanceKey, which), due, now)
	}
}

// captureOverflow charges the overflow meter if a capture exceeds the hold. It adds a.cost units to the payment of the
// hold. The first line of the payment counts the additional units of the item.
func (b *Batch) captureOverflow(s *sources, a *allocation) {
	p, paid := s.hold, s.paid(a)
	if a.cost > 0 {
		if refused, err := b.payMore(p, s.overflow, a.cost, paid); refused != nil || err != nil {
			panic("ledger: units that were allocated are missing")
		}
	}
	b.stateUnits(p, paid)
	p.lines[0].Beyond, p.lines[0].changed = p.lines[0].Beyond+a.overflow, true
}

// refundPayment gives back the units of the overflow meter that are not needed to pay for the hold's other captured
// units. It begins with the last line of the hold, no matter which capture drew it. Units whose grants have ended are
// given back together, under the Return policy.
func (r *Refund) refundPayment(b *Batch, e *Entry, now *pricedEntry, out *RefundItem) {
	p := now.hold
	if p == nil || now.units == 0 {
		return
	}
	book := b.Books[e.BalanceKey]
	p.lines[0].Beyond, p.lines[0].changed = p.lines[0].Beyond-now.units, true
	back := max(0, p.taken()-p.lines[0].ratio().Cost(p.used()))
	p.deferRest()
	entry := Entry{Kind: EntryRefund, Item: e.Item}
	ended := entry
	for _, l := range slices.Backward(p.lines) {
		n, g := min(back, l.Captured-l.Refunded), book.grant(l.Grant)
		takes := g != nil && book.takesReturns(g, b.Now)
		if takes {
			n = min(n, g.Amount-g.Remaining-g.Held) // less only if an older version has refunded of this line
		}
		if n == 0 {
			continue
		}
		back -= n
		l.Refunded, l.changed = l.Refunded+n, true
		b.Targets.Refunds[e.key()].Amount += n
		entry.Grant, entry.Source = l.Grant, l.Source
		if takes {
			r.giveBack(b, book, entry, e, n, out)
			continue
		}
		if ended.Amount == 0 {
			ended.Grant, ended.Source = l.Grant, l.Source
		}
		ended.Amount += n
	}
	if ended.Amount > 0 {
		r.giveBack(b, book, ended, e, ended.Amount, out)
	}
	book.refresh()
}
