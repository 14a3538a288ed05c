package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Refund takes back a debit or a capture, in whole or in part.
type Refund struct {
	Tenant      string
	Key         string
	OperationID string       // of the debit or capture
	Meter       string       // item to refund; empty: all, or the only one
	Amount      int64        // in the item's units; 0 = all that was not refunded yet
	Return      ReturnPolicy // empty: ReturnForfeit
	Reason      string
}

// RefundItem is the answer for one item.
type RefundItem struct {
	Meter     string    `json:"meter"`
	Refunded  int64     `json:"refunded"`
	Draws     []Draw    `json:"draws"`     // where the units went back to; Grant is empty for overage and for what was forfeited
	Forfeited int64     `json:"forfeited"` // part of Refunded, in the units of what was drawn, that expired at once
	Remaining int64     `json:"remaining"`
	Limit     int64     `json:"-"`
	ResetAt   time.Time `json:"-"`
}

// RefundResult is the answer to a refund.
type RefundResult struct {
	OperationID string       `json:"operation_id"`
	RefundOf    string       `json:"refund_of"`
	Tenant      string       `json:"tenant"`
	Items       []RefundItem `json:"items"`
	AsOf        time.Time    `json:"as_of"`
	Replayed    bool         `json:"-"`
}

// refundDetail is what the entries of a refund remember. The first entry also carries the answer.
type refundDetail struct {
	RefundOf string          `json:"refund_of"`
	Line     int32           `json:"refund_line"`
	From     string          `json:"from,omitempty"`
	Policy   ReturnPolicy    `json:"policy,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// ID implements Operation.
func (r *Refund) ID() OperationID { return OperationID{r.Tenant, r.Key} }

// Kind implements Operation.
func (r *Refund) Kind() Kind { return KindRefund }

// Targets implements Operation: the operation to be refunded.
func (r *Refund) Targets(t *Targets) { t.Operations = append(t.Operations, r.target()) }

func (r *Refund) target() OperationID { return OperationID{r.Tenant, r.OperationID} }

// Demand implements Operation: the balances of the target's entries.
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
	return fingerprintOf(appendTexts(appendNumber(h, r.Amount), string(r.Return), r.Reason))
}

// Validate implements Operation.
func (r *Refund) Validate() error {
	if e := FirstOf(validKey(r.Key), ValidateID("tenant", r.Tenant), validKeyIn("operation_id", r.OperationID), validReturn(r.Return),
		validFreeText("reason", r.Reason)); e != nil {
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
	switch {
	case r.Amount > 0 && len(items) > 1:
		return c.refuse(Errorf(CodeInvalidArgument, "meter", "operation %q has %d items: name the meter that amount is of", r.OperationID, len(items)))
	case r.Amount == 0 && total == 0:
		return c.refuse(Errorf(CodeRefundExceedsDebit, "operation_id", "all of operation %q was refunded before", r.OperationID))
	case r.Amount > total:
		return c.refuse(Errorf(CodeRefundExceedsDebit, "amount", "%d can still be refunded of operation %q", total, r.OperationID))
	}
	first := len(b.journal)
	result := &RefundResult{OperationID: r.Key, RefundOf: r.OperationID, Tenant: r.Tenant}
	for _, it := range items {
		amount := it.units
		if r.Amount > 0 {
			amount = r.Amount
		}
		if amount > 0 {
			result.Items = append(result.Items, r.refundItem(b, it, amount))
		}
	}
	entry := b.finish(c, first, "", nil)
	result.AsOf = entry.CreatedAt
	entry.Detail = mustJSON(refundDetail{RefundOf: r.OperationID, Reason: r.Reason, Answer: mustJSON(result)})
	c.Answer = result
	return nil
}

// refundable is one item of the operation to be refunded.
type refundable struct {
	meter   string
	entries []Entry // what was drawn, in order
	units   int64   // of the item, that can still be refunded
	// paid is what of that the overflow meter paid, in its units, by price. A hold, and what was captured beyond it, may have
	// different prices.
	paid map[int64]int64
}

// items lists what can be refunded of the target.
func (r *Refund) items(b *Batch) ([]refundable, *Error) {
	entries := b.Located.Operations[r.target()]
	if len(entries) == 0 {
		return nil, Errorf(CodeOperationNotFound, "operation_id", "tenant %q has no operation %q", r.Tenant, r.OperationID)
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
		items[e.Item].add(e, b.left(r.target(), e))
	}
	for i := range items {
		for price, cost := range items[i].paid {
			items[i].units += cost / price
		}
	}
	items = slices.DeleteFunc(items, func(it refundable) bool { return len(it.entries) == 0 || r.Meter != "" && it.meter != r.Meter })
	switch {
	case len(items) == 0 && r.Meter != "":
		return nil, Errorf(CodeInvalidArgument, "meter", "operation %q has no item of meter %q", r.OperationID, r.Meter)
	case len(items) == 0:
		return nil, Errorf(CodeInvalidArgument, "operation_id", "operation %q is a %s: only debits and captures can be refunded", r.OperationID, entries[0].Kind)
	}
	return items, nil
}

// add adds an entry of the item, of which left can still be refunded.
func (it *refundable) add(e *Entry, left int64) {
	it.entries = append(it.entries, *e)
	if e.Subject != "" {
		return // the subject's account of the same use
	}
	it.meter = e.Meter
	if o := overflowOf(e); o != nil {
		it.meter = o.For
		if it.paid == nil {
			it.paid = map[int64]int64{}
		}
		it.paid[o.Price] += left
		return
	}
	it.units += left
}

// left returns how much of an entry of operation op can still be refunded.
func (b *Batch) left(op OperationID, e *Entry) int64 {
	if s := b.Targets.Refunds[EntryKey{op, e.Line}]; s != nil {
		return e.Amount - s.Amount
	}
	return e.Amount
}

// refundItem returns units of one item, the last entry first: overage, then what the overflow meter paid, then own grants. The
// subject's account of the same use shrinks with it.
func (r *Refund) refundItem(b *Batch, it refundable, units int64) RefundItem {
	out := RefundItem{Meter: it.meter, Refunded: units}
	tenant, subject := units, units
	costs := map[int64]int64{} // by price: what is still to be returned of what overflow entries paid
	for i := len(it.entries) - 1; i >= 0; i-- {
		e := &it.entries[i]
		left := b.left(r.target(), e)
		switch o := overflowOf(e); {
		case e.Subject != "":
			subject -= r.refundEntry(b, e, min(left, subject), nil)
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

// refundEntry returns n of what e drew, records it, and returns n. Where out is nil, the answer leaves it out.
func (r *Refund) refundEntry(b *Batch, e *Entry, n int64, out *RefundItem) int64 {
	if n == 0 {
		return 0
	}
	book := b.Books[e.BalanceKey]
	k := EntryKey{r.target(), e.Line}
	if b.Targets.Refunds[k] == nil {
		b.Targets.Refunds[k] = &RefundSum{}
	}
	b.Targets.Refunds[k].Amount += n
	b.Targets.Refunds[k].changed = true
	book.changed = true
	if e.Kind == EntryOverage {
		r.refundOverage(b, book, e, n, out)
	} else {
		r.giveBack(b, book, Entry{Kind: EntryRefund, Grant: e.Grant, Source: e.Source, Item: e.Item, Line: e.Line}, n, out)
	}
	book.refresh()
	return n
}

// giveBack credits n units to the grant that e names, or as r.Return says if that grant has ended, and enters e. e.Line is the line of
// the refunded entry.
func (r *Refund) giveBack(b *Batch, book *Book, e Entry, n int64, out *RefundItem) {
	d := refundDetail{RefundOf: r.OperationID, Line: e.Line}
	anew := fmt.Sprint("refund/", r.Key, "/", e.Line)
	if e.Kind == EntryRefundPaid {
		anew += "/settled" // one entry of overage may come back in several parts
		if e.Source == SourceRollover {
			anew += "-by-rollover"
		}
	}
	to := book.restore(e.Grant, e.Source, n, r.Return, derivedID(prefixRegrant, anew), b.Now)
	if to.policy != "" {
		d.From, d.Policy = e.Grant, to.policy
	}
	e.Line, e.Grant, e.Source, e.Amount, e.Detail = 0, to.grant, to.source, n, mustJSON(d)
	b.enter(book, e)
	if to.policy == ReturnForfeit {
		e.Kind = EntryExpire
		b.enter(book, e)
	}
	if out != nil {
		if to.policy == ReturnForfeit {
			out.Forfeited += n
		}
		out.Draws = append(out.Draws, Draw{Grant: to.grant, Source: to.source, Meter: book.Meter, Amount: n})
	}
}

func (r *Refund) rebuild(stored []Entry) (answer, error) { return storedAnswer[RefundResult](stored) }

func (r *RefundResult) replay(b *Batch) {
	r.Replayed = true
	for i := range r.Items {
		p := b.position(BalanceKey{r.Tenant, r.Items[i].Meter, ""})
		r.Items[i].Limit, r.Items[i].ResetAt = p.Limit, p.ResetAt
	}
}
