package ledger

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// Refund takes back a debit or a capture, in whole or in part.
type Refund struct {
	Tenant      string
	Key         string
	OperationID string       // id of the debit or capture
	At          time.Time    // selects the newest operation with this id at or before At; zero: the newest of all
	Meter       string       // item to refund; empty: all items, or the only item if Amount is set
	Amount      int64        // in the item's units; 0 = all units that were not yet refunded
	Return      ReturnPolicy // empty: ReturnForfeit
	Reason      string
}

// RefundItem is the answer for one item.
type RefundItem struct {
	Meter     string    `json:"meter"`
	Refunded  int64     `json:"refunded"`
	Draws     []Draw    `json:"draws"`     // grants to which units returned; no Grant: overage
	Forfeited int64     `json:"forfeited"` // refunded units that expired at once, in units of the meter that was drawn
	Remaining int64     `json:"remaining"`
	Limit     int64     `json:"-"`
	ResetAt   time.Time `json:"-"`
}

// RefundResult is the answer to a refund.
type RefundResult struct {
	OperationID string       `json:"operation_id"`
	RefundOf    string       `json:"refund_of"`
	RefundOfAt  time.Time    `json:"refund_of_at"` // instant of the refunded operation; zero in old answers
	Tenant      string       `json:"tenant"`
	Items       []RefundItem `json:"items"`
	AsOf        time.Time    `json:"as_of"`
	Replayed    bool         `json:"-"`
}

// refundDetail is the detail of a refund's entries. The first entry also carries the answer.
type refundDetail struct {
	RefundOf string          `json:"refund_of"`
	Month    string          `json:"refund_month,omitempty"` // refunded operation's month: 2026-11; "" in old entries
	Line     int32           `json:"refund_line"`            // refunded entry's line; 0 in first entries of old refunds
	From     string          `json:"from,omitempty"`
	Policy   ReturnPolicy    `json:"policy,omitempty"`
	Paid     bool            `json:"paid,omitempty"`         // an allowance or a rollover of a closed period had paid the overage
	Units    int64           `json:"refund_units,omitempty"` // item's refunded units, if the price is no whole number
	Reason   string          `json:"reason,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// ID implements Operation.
func (r *Refund) ID() OperationID { return OperationID{r.Tenant, r.Key} }

// Kind implements Operation.
func (r *Refund) Kind() Kind { return KindRefund }

// Targets implements Operation. It adds the operation to be refunded.
func (r *Refund) Targets(t *Targets) { t.Operations = append(t.Operations, r.target()) }

func (r *Refund) target() OperationRef {
	return OperationRef{OperationID{r.Tenant, r.OperationID}, r.At}
}

// Demand implements Operation. It returns the balances of the target's entries.
func (r *Refund) Demand(found *Located) []Demand {
	entries := found.Operations[r.target()]
	keys := make([]BalanceKey, len(entries))
	for i := range entries {
		keys[i] = entries[i].BalanceKey
	}
	slices.SortFunc(keys, CompareKeys)
	var out []Demand
	for _, k := range slices.Compact(keys) {
		out = append(out, Demand{k, DemandAll})
	}
	return out
}

func (r *Refund) answers(*RefundResult) {}

func (r *Refund) fingerprint() [16]byte {
	h := appendTexts(nil, "refund/1", r.Tenant, r.OperationID, r.Meter)
	h = appendTexts(binary.AppendVarint(h, r.Amount), string(r.Return), r.Reason)
	if !r.At.IsZero() { // a request without At keeps the fingerprint of older versions
		h = appendInstant(h, r.At)
	}
	return fingerprintOf(h)
}

// Validate implements Operation.
func (r *Refund) Validate() error {
	if e := FirstOf(validKey(r.Key), ValidateName("tenant", r.Tenant), validKeyIn("operation_id", r.OperationID), validReturn(r.Return),
		validFreeText("reason", r.Reason), ValidateInstant("at", r.At)); e != nil {
		return e
	}
	if r.Amount != 0 {
		if e := validAmount("amount", r.Amount); e != nil {
			return e
		}
	}
	if r.Meter != "" {
		return FirstOf(ValidateID("meter", r.Meter))
	}
	return nil
}

func (r *Refund) decide(b *Batch, c *Call) error {
	items, refused := r.items(b)
	if refused != nil {
		return c.refuse(refused)
	}
	total := int64(0)
	for _, it := range items {
		total += it.units
	}
	taken := r.taken(b)
	switch {
	case r.Amount > 0 && len(items) > 1:
		return c.refuse(errcode.Errorf(errcode.InvalidArgument, "meter", "operation %q has %d items: name the meter that amount is of", r.OperationID, len(items)))
	case r.Amount == 0 && total == 0:
		return c.refuse(errcode.Errorf(errcode.RefundExceedsDebit, "operation_id", "all of operation %q was refunded before", r.OperationID))
	case taken != "":
		// The key is no longer remembered, but the grant that it created still exists.
		return c.refuse(errcode.Errorf(errcode.Conflict, "Idempotency-Key", "was used for grant %q, longer ago than keys are remembered: use a new one", taken))
	case r.Amount > total:
		return c.refuse(errcode.Errorf(errcode.RefundExceedsDebit, "amount", "%d can still be refunded of operation %q", total, r.OperationID))
	}
	first, undo := len(b.journal), r.save(b)
	result := &RefundResult{OperationID: r.Key, RefundOf: r.OperationID, RefundOfAt: items[0].entries[0].CreatedAt, Tenant: r.Tenant}
	for _, it := range items {
		amount := it.units
		if r.Amount > 0 {
			amount = r.Amount
		}
		if amount > 0 {
			result.Items = append(result.Items, r.refundItem(b, it, amount))
		}
	}
	if refused := r.outOfRange(b); refused != nil {
		b.rollBack(first)
		undo()
		return c.refuse(refused)
	}
	entry := b.finish(c, first, "", nil)
	result.AsOf = entry.CreatedAt
	entry.Detail = withAnswer(entry.Detail, r.Reason, result)
	c.Answer = result
	return nil
}

// save copies the balances of the operation to be refunded, and the sums of the batch's refunds. rollBack restores
// the balances, and the returned function restores the sums.
func (r *Refund) save(b *Batch) (undo func()) {
	sums := map[EntryKey]RefundSum{}
	for _, e := range b.Located.Operations[r.target()] {
		b.save(b.Books[e.BalanceKey])
	}
	for k, s := range b.Targets.Refunds {
		sums[k] = *s
	}
	return func() {
		for k, s := range b.Targets.Refunds {
			if before, known := sums[k]; known {
				*s = before
			} else {
				delete(b.Targets.Refunds, k)
			}
		}
	}
}

// outOfRange returns the error if a balance of the refunded operation is out of range after the refund, nil
// otherwise.
func (r *Refund) outOfRange(b *Batch) *errcode.Error {
	for _, e := range b.Located.Operations[r.target()] {
		book := b.Books[e.BalanceKey]
		if book.Refunded > RefundedMax {
			return errcode.Errorf(errcode.AmountOutOfRange, "amount", "would raise what was refunded of meter %q in this period above %d", book.Meter, RefundedMax)
		}
		if have := bound.SaturatingAdd(book.Remaining(), book.Held); have > MaxAmount {
			return errcode.Errorf(errcode.AmountOutOfRange, "amount", "would raise what meter %q has to %d, above %d", book.Meter, have, MaxAmount)
		}
	}
	return nil
}

// withAnswer returns the detail of a refund's entry with the answer, for the first entry.
func withAnswer(detail []byte, reason string, answer *RefundResult) []byte {
	var d refundDetail
	if err := json.Unmarshal(detail, &d); err != nil {
		panic("ledger: detail of an entry of this batch: " + err.Error())
	}
	d.Reason, d.Answer = reason, mustJSON(answer)
	return mustJSON(d)
}

// refundable is one item of the operation to be refunded.
type refundable struct {
	meter   string
	entries []Entry // entries of its draws, in order
	units   int64   // units of the item that can still be refunded
	// paid has the units of the overflow meter that can still be refunded, by price, for prices that are whole
	// numbers. A hold and the capture beyond it may have different prices.
	paid map[int64]int64
	// priced has the charges at a price that is not a whole number. Each entry that records the number of paid units
	// begins a charge. An entry without this number belongs to the charge before it.
	priced []pricedEntry
}

// pricedEntry is one charge to an overflow meter. The cost of its units is rounded once, even if several grants pay it.
type pricedEntry struct {
	at    int      // index of its first entry in refundable.entries
	units int64    // units of the item that can still be refunded
	left  int64    // units of the overflow meter that were not refunded
	hold  *payment // payment of the hold, if a capture made the charge; then left is not used
}

// items lists the items of the operation that can be refunded.
func (r *Refund) items(b *Batch) ([]refundable, *errcode.Error) {
	entries := b.Located.Operations[r.target()]
	if len(entries) == 0 {
		return nil, r.target().NotFound()
	}
	var items []refundable
	for i := range entries {
		e := &entries[i]
		if e.Kind != EntryDebit && e.Kind != EntryCapture && e.Kind != EntryOverage {
			continue
		}
		for int(e.Item) >= len(items) {
			items = append(items, refundable{})
		}
		items[e.Item].add(b, e)
	}
	for i := range items {
		for price, cost := range items[i].paid {
			items[i].units += cost / price
		}
	}
	items = slices.DeleteFunc(items, func(it refundable) bool { return len(it.entries) == 0 || r.Meter != "" && it.meter != r.Meter })
	switch {
	case len(items) == 0 && r.Meter != "":
		return nil, errcode.Errorf(errcode.InvalidArgument, "meter", "operation %q has no item of meter %q", r.OperationID, r.Meter)
	case len(items) == 0 && entries[0].Kind == EntryCapture:
		return nil, errcode.Errorf(errcode.InvalidArgument, "operation_id", "operation %q ended a hold: refund the captures of the hold", r.OperationID)
	case len(items) == 0:
		return nil, errcode.Errorf(errcode.InvalidArgument, "operation_id", "operation %q is a %s: only debits and captures can be refunded", r.OperationID, entries[0].Kind)
	}
	return items, nil
}

// add adds an entry to the item.
func (it *refundable) add(b *Batch, e *Entry) {
	left, o := b.left(e), overflowOf(e)
	if o != nil && o.Per > 1 && o.Units == 0 && len(it.priced) == 0 {
		return // the unit that earlier captures had put off
	}
	it.entries = append(it.entries, *e)
	if e.Subject != "" {
		return // the subject's entry for the same use
	}
	it.meter = e.Meter
	if o != nil {
		it.meter = o.For
		if o.Per > 1 {
			it.addPriced(o.Units, b.Targets.Refunds[e.key()])
			priced := &it.priced[len(it.priced)-1]
			priced.left += left
			priced.hold = b.paymentFor(e, o)
			return
		}
		if it.paid == nil {
			it.paid = map[int64]int64{}
		}
		it.paid[o.Price] += left
		return
	}
	it.units += left
}

// addPriced begins a pricedEntry if the entry that was added last records the number of units that it pays for. sum has
// the earlier refunds of that entry.
func (it *refundable) addPriced(units int64, sum *RefundSum) {
	if units == 0 && len(it.priced) > 0 {
		return
	}
	if sum != nil {
		units -= sum.Units
	}
	it.priced = append(it.priced, pricedEntry{at: len(it.entries) - 1, units: units})
	it.units += units
}

// nextPriced removes the last pricedEntry and returns the part of it to refund. This part has at most the given
// units, and the units of the overflow meter that return for them. The cost of the units that are not refunded,
// rounded up, is kept. So partial refunds add up to a whole refund, and never exceed the units that were taken.
func (it *refundable) nextPriced(r price.Ratio, units int64) *pricedEntry {
	p := it.priced[len(it.priced)-1]
	it.priced = it.priced[:len(it.priced)-1]
	units = min(units, p.units)
	return &pricedEntry{at: p.at, units: units, left: max(0, p.left-r.Cost(p.units-units)), hold: p.hold}
}

// refundUnits records that units of the item for which e paid are refunded. The refund may return no unit of e itself.
func (r *Refund) refundUnits(b *Batch, e *Entry, units int64) {
	if units == 0 {
		return
	}
	book, k, d := b.Books[e.BalanceKey], e.key(), r.detailOf(e)
	if b.Targets.Refunds[k] == nil {
		b.Targets.Refunds[k] = &RefundSum{}
	}
	b.Targets.Refunds[k].Units += units
	b.Targets.Refunds[k].changed, book.changed = true, true
	d.Units = units
	b.enter(book, Entry{Kind: EntryRefund, Grant: e.Grant, Source: e.Source, Item: e.Item, Detail: mustJSON(d)})
}

// left returns how much of an entry can still be refunded.
func (b *Batch) left(e *Entry) int64 {
	if s := b.Targets.Refunds[e.key()]; s != nil {
		return max(0, e.Amount-s.Amount) // a refund of one capture may return units that another one took
	}
	return e.Amount
}

// refundItem gives back units of one item, beginning with the last entry. The order is: overage, then units that the
// overflow meter paid, then units of own grants. The subject's entries for the same use are refunded as well.
func (r *Refund) refundItem(b *Batch, it refundable, units int64) RefundItem {
	out := RefundItem{Meter: it.meter, Refunded: units}
	tenant, subject := units, units
	costs := map[int64]int64{} // by price: units of the overflow meter still to be returned
	var now *pricedEntry       // part of it.priced that is being refunded
	for i := len(it.entries) - 1; i >= 0; i-- {
		e := &it.entries[i]
		left := b.left(e)
		switch o := overflowOf(e); {
		case e.Subject != "":
			subject -= r.refundEntry(b, e, min(left, subject), nil)
		case o != nil && o.Per > 1:
			if now == nil {
				now = it.nextPriced(o.Ratio(), tenant)
				tenant -= now.units
			}
			if now.hold == nil {
				now.left -= r.refundEntry(b, e, min(left, now.left), &out)
			}
			if now.at == i {
				r.refundUnits(b, e, now.units)
				r.refundPayment(b, e, now, &out)
				now = nil
			}
		case o != nil:
			if _, begun := costs[o.Price]; !begun {
				whole := min(tenant, it.paid[o.Price]/o.Price)
				costs[o.Price] = whole * o.Price
				tenant -= whole
			}
			costs[o.Price] -= r.refundEntry(b, e, min(left, costs[o.Price]), &out)
		default:
			tenant -= r.refundEntry(b, e, min(left, tenant), &out)
		}
	}
	p := b.position(BalanceKey{r.Tenant, it.meter, ""})
	out.Remaining, out.Limit, out.ResetAt = p.Remaining, p.Limit, p.ResetAt
	return out
}

// refundEntry gives back n of the units that e drew, records this refund, and returns n. If out is nil, the answer
// does not contain this refund.
func (r *Refund) refundEntry(b *Batch, e *Entry, n int64, out *RefundItem) int64 {
	if n == 0 {
		return 0
	}
	book := b.Books[e.BalanceKey]
	k := e.key()
	if b.Targets.Refunds[k] == nil {
		b.Targets.Refunds[k] = &RefundSum{}
	}
	b.Targets.Refunds[k].Amount += n
	b.Targets.Refunds[k].changed = true
	book.changed = true
	if e.Kind == EntryOverage {
		r.refundOverage(b, book, e, n, out)
	} else {
		r.giveBack(b, book, Entry{Kind: EntryRefund, Grant: e.Grant, Source: e.Source, Item: e.Item}, e, n, out)
	}
	book.refresh()
	return n
}

// giveBack gives n units of the refunded entry `of` back to the grant that e names, and writes e. If that grant has
// ended, r.Return decides where the units go.
func (r *Refund) giveBack(b *Batch, book *Book, e Entry, of *Entry, n int64, out *RefundItem) {
	drawn := of.CreatedAt
	if g := book.grant(e.Grant); g != nil && of.Kind == EntryCapture && !drawn.Before(book.Start) {
		drawn = g.lastInstant() // it was held when the period began
	}
	for _, to := range book.restore(restored{
		grant: e.Grant, source: e.Source, units: n, policy: r.Return, newID: r.regrantID(of.Line, payerOf(&e)), drawn: drawn,
	}, b.Now, b.Now) {
		part, d := e, r.detailOf(of)
		if to.policy != "" {
			d.From, d.Policy = e.Grant, to.policy
		}
		part.Grant, part.Source, part.Amount, part.Detail = to.grant, to.source, to.units, mustJSON(d)
		b.enter(book, part)
		book.payShort(&b.journal, b.Now, &to, part)
		if to.policy == ReturnForfeit {
			part.Kind = EntryExpire
			b.enter(book, part)
		}
		if out != nil {
			if to.policy == ReturnForfeit {
				out.Forfeited += to.units
			}
			out.Draws = append(out.Draws, Draw{Grant: to.grant, Source: to.source, Meter: book.Meter, Amount: to.units})
		}
	}
}

// detailOf returns the detail that names the refunded entry.
func (r *Refund) detailOf(of *Entry) refundDetail {
	return refundDetail{RefundOf: r.OperationID, Month: monthText(of.CreatedAt), Line: of.Line}
}

func monthText(t time.Time) string { return t.UTC().Format("2006-01") }

// regrantID returns the id of the grant that issues units of a refunded entry anew. line is the line of that entry.
// An entry of overage may return in several parts. payer is the source of the grant that had paid the part, or empty
// if no grant had paid it.
func (r *Refund) regrantID(line int32, payer Source) string {
	from := fmt.Sprint("refund/", r.Key, "/", line)
	switch payer {
	case SourceAllowance:
		from += "/settled"
	case SourceRollover:
		from += "/settled-by-rollover"
	default:
	}
	return derivedID(prefixRegrant, from)
}

// payerOf returns the source of the grant that had paid the overage which e takes back, and "" for other entries.
func payerOf(e *Entry) Source {
	if e.Kind == EntryRefundPaid {
		return e.Source
	}
	return ""
}

// regrants lists the grants that the refund would issue if every grant of the operation to be refunded had ended.
func (r *Refund) regrants(found *Located) []GrantKey {
	var out []GrantKey
	for _, e := range found.Operations[r.target()] {
		out = append(out, GrantKey{e.BalanceKey, r.regrantID(e.Line, "")})
		if e.Kind == EntryOverage {
			out = append(out, GrantKey{e.BalanceKey, r.regrantID(e.Line, SourceAllowance)}, GrantKey{e.BalanceKey, r.regrantID(e.Line, SourceRollover)})
		}
	}
	return out
}

// taken returns the id of a grant that an earlier refund with the same key has issued, or "" if there is none.
func (r *Refund) taken(b *Batch) string {
	if r.Return != ReturnRegrant {
		return ""
	}
	for _, g := range r.regrants(&b.Located) {
		if b.Targets.Taken[g] {
			return g.ID
		}
	}
	return ""
}

func (r *Refund) rebuild(stored []Entry) (answer, error) { return storedAnswer[RefundResult](stored) }

func (r *RefundResult) replay(b *Batch) {
	r.Replayed = true
	for i := range r.Items {
		p := b.position(BalanceKey{r.Tenant, r.Items[i].Meter, ""})
		r.Items[i].Limit, r.Items[i].ResetAt = p.Limit, p.ResetAt
	}
}
