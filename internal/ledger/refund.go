package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// ReturnPolicy says where units go that come back to a grant which has ended meanwhile.
type ReturnPolicy string

// The policies. Forfeit is the default: what would have been lost unused stays lost.
const (
	ReturnForfeit ReturnPolicy = "forfeit" // they expire at once
	// ReturnRegrant issues them anew, as a grant of source refund with the priority and cost basis of the old one: until the
	// period's end where they were part of an allowance, without an end otherwise.
	ReturnRegrant ReturnPolicy = "regrant"
)

func validReturn(p ReturnPolicy) *Error {
	if p != "" && p != ReturnForfeit && p != ReturnRegrant {
		return errorf(CodeInvalidArgument, "on_expired", "must be forfeit or regrant")
	}
	return nil
}

// Refund takes back a debit or a capture, in whole or in part.
type Refund struct {
	Tenant      string
	Key         string
	OperationID string       // of the debit or capture
	Meter       string       // item to refund; '' = all, or the only one
	Amount      int64        // in the item's units; 0 = all that was not refunded yet
	Return      ReturnPolicy // '' = ReturnForfeit
	Reason      string
}

// RefundItem is the answer for one item.
type RefundItem struct {
	Meter     string    `json:"meter"`
	Refunded  int64     `json:"refunded"`
	Draws     []Draw    `json:"draws"`     // where the units went back to; Grant '' for overage and for what was forfeited
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

// refundDetail is what refund lines remember; the first also carries the answer.
type refundDetail struct {
	RefundOf string          `json:"refund_of"`
	Line     int32           `json:"refund_line"`
	From     string          `json:"from,omitempty"`
	Policy   ReturnPolicy    `json:"policy,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// refundKey names a line that can be refunded.
type refundKey struct {
	opKey
	line int32
}

// refundSum is how much of a line was refunded.
type refundSum struct {
	amount int64
	dirty  bool
}

func (r *Refund) call() *call {
	h := hasher{buf: make([]byte, 0, 192)}
	h.text("refund/1").text(r.Tenant).text(r.OperationID).text(r.Meter).number(r.Amount).text(string(r.Return)).text(r.Reason)
	return &call{id: opKey{r.Tenant, r.Key}, kind: KindRefund, print: h.sum(), req: r}
}

func (r *Refund) validate() error {
	if e := firstOf(validKey(r.Key), validID("tenant", r.Tenant), validKeyIn("operation_id", r.OperationID), validReturn(r.Return),
		validFreeText("reason", r.Reason)); e != nil {
		return e
	}
	if r.Amount != 0 {
		if e := validAmount("amount", r.Amount); e != nil {
			return e
		}
	}
	if r.Meter != "" {
		return firstOf(validID("meter", r.Meter))
	}
	return nil
}

func (r *Refund) target() opKey { return opKey{r.Tenant, r.OperationID} }

func (r *Refund) needs(f *found) []need {
	var keys []key
	for i := range f.debits[r.target()] {
		keys = append(keys, f.debits[r.target()][i].key)
	}
	slices.SortFunc(keys, compareKeys)
	var out []need
	for _, k := range slices.Compact(keys) {
		out = append(out, need{k, needAll})
	}
	return out
}

// refundable is one item of the operation to be refunded.
type refundable struct {
	meter string
	lines []line // what was drawn, in order
	units int64  // of the item, that can still be refunded
	// paid is what of that the overflow meter paid, in its units, by price: a hold and what was captured beyond it may have
	// different ones.
	paid map[int64]int64
}

func (r *Refund) decide(m *machine, c *call) error {
	items, failed := r.items(m)
	if failed != nil {
		c.fail(failed)
		return nil
	}
	total := int64(0)
	for _, it := range items {
		total += it.units
	}
	switch {
	case r.Amount > 0 && len(items) > 1:
		failed = errorf(CodeInvalidArgument, "meter", "operation %q has %d items: name the meter that amount is of", r.OperationID, len(items))
	case r.Amount == 0 && total == 0:
		failed = errorf(CodeRefundExceedsDebit, "operation_id", "nothing can be refunded any more of operation %q", r.OperationID)
	case r.Amount > total:
		failed = errorf(CodeRefundExceedsDebit, "amount", "%d can still be refunded of operation %q", total, r.OperationID)
	}
	if failed != nil {
		c.fail(failed)
		return nil
	}
	first := len(m.journal.lines)
	result := &RefundResult{OperationID: r.Key, RefundOf: r.OperationID, Tenant: r.Tenant}
	for _, it := range items {
		amount := it.units
		if r.Amount > 0 {
			amount = r.Amount
		}
		if amount > 0 {
			result.Items = append(result.Items, r.refundItem(m, it, amount))
		}
	}
	m.seal(c, first, opMeta{})
	result.AsOf = m.journal.lines[first].createdAt
	m.journal.lines[first].detail = mustJSON(refundDetail{RefundOf: r.OperationID, Reason: r.Reason, Answer: mustJSON(result)})
	c.result = result
	return nil
}

// items gathers what can be refunded of the target.
func (r *Refund) items(m *machine) ([]refundable, *Error) {
	lines := m.found.debits[r.target()]
	if m.found.debits == nil || len(lines) == 0 {
		return nil, errorf(CodeOperationNotFound, "operation_id", "tenant %q has no operation %q", r.Tenant, r.OperationID)
	}
	var items []refundable
	for i := range lines {
		l := lines[i]
		if l.kind != lineDebit && l.kind != lineCapture && l.kind != lineOverage {
			continue
		}
		for int(l.item) >= len(items) {
			items = append(items, refundable{})
		}
		it := &items[l.item]
		it.lines = append(it.lines, l)
		if l.Subject != "" {
			continue
		}
		left := l.amount - m.refunded(r.target(), l.line)
		it.meter = l.Meter
		if o := overflowOf(&l); o != nil {
			it.meter = o.For
			if it.paid == nil {
				it.paid = map[int64]int64{}
			}
			it.paid[o.Price] += left
			continue
		}
		it.units += left
	}
	for i := range items {
		for price, cost := range items[i].paid {
			items[i].units += cost / price
		}
	}
	items = slices.DeleteFunc(items, func(it refundable) bool { return len(it.lines) == 0 || r.Meter != "" && it.meter != r.Meter })
	switch {
	case len(items) == 0 && r.Meter != "":
		return nil, errorf(CodeInvalidArgument, "meter", "operation %q has no item of meter %q", r.OperationID, r.Meter)
	case len(items) == 0:
		return nil, errorf(CodeInvalidArgument, "operation_id", "operation %q is a %s: only debits and captures can be refunded", r.OperationID, lines[0].kind)
	}
	return items, nil
}

// overflowOf tells what a line on an overflow meter paid for; nil for other lines. A line of a hold's change has it beside the
// hold's own facts.
func overflowOf(l *line) *overflowDetail {
	if l.kind != lineDebit && l.kind != lineCapture || l.detail == nil {
		return nil
	}
	var d struct {
		overflowDetail

		Overflow *overflowDetail `json:"overflow"`
	}
	switch err := json.Unmarshal(l.detail, &d); {
	case err != nil:
		return nil
	case d.Overflow != nil:
		return d.Overflow
	case d.Price > 0:
		return &d.overflowDetail
	}
	return nil
}

func (m *machine) refunded(op opKey, line int32) int64 {
	if s := m.refunds[refundKey{op, line}]; s != nil {
		return s.amount
	}
	return 0
}

// refundItem returns units of one item, the last line first: overage, then what the overflow meter paid, then own grants. The
// subject's account of the same use shrinks with it.
func (r *Refund) refundItem(m *machine, it refundable, units int64) RefundItem {
	out := RefundItem{Meter: it.meter, Refunded: units}
	tenant, subject := units, units
	costs := map[int64]int64{} // by price: what is still to be returned of what overflow lines paid
	for i := len(it.lines) - 1; i >= 0; i-- {
		l := &it.lines[i]
		left := l.amount - m.refunded(r.target(), l.line)
		switch o := overflowOf(l); {
		case l.Subject != "":
			subject -= r.refundLine(m, l, min(left, subject), nil)
		case o != nil:
			if _, begun := costs[o.Price]; !begun {
				whole := min(tenant, it.paid[o.Price]/o.Price)
				costs[o.Price] = whole * o.Price
				tenant -= whole
			}
			costs[o.Price] -= r.refundLine(m, l, min(left, costs[o.Price]), &out)
		default:
			tenant -= r.refundLine(m, l, min(left, tenant), &out)
		}
	}
	p := m.position(key{r.Tenant, it.meter, ""})
	out.Remaining, out.Limit, out.ResetAt = p.Remaining, p.Limit, p.ResetAt
	return out
}

// refundLine returns n of what line l drew and records it.
func (r *Refund) refundLine(m *machine, l *line, n int64, out *RefundItem) int64 {
	if n == 0 {
		return 0
	}
	b := m.books[l.key]
	k := refundKey{r.target(), l.line}
	if m.refunds[k] == nil {
		m.refunds[k] = &refundSum{}
	}
	m.refunds[k].amount += n
	m.refunds[k].dirty = true
	b.dirty = true
	if l.kind == lineOverage {
		n = r.refundOverage(m, b, l, n, out)
	} else {
		r.giveBack(m, b, line{kind: lineRefund, grantID: l.grantID, source: l.source, item: l.item, line: l.line}, n, out)
	}
	b.settle()
	return n
}

// giveBack returns n units to the grant that entry names, or where the policy says, and enters it: entry.line is the line that is
// refunded.
func (r *Refund) giveBack(m *machine, b *book, entry line, n int64, out *RefundItem) {
	d := refundDetail{RefundOf: r.OperationID, Line: entry.line}
	anew := fmt.Sprint("refund/", r.Key, "/", entry.line)
	if entry.kind == lineUnsettle {
		anew += "/settled" // one line of overage may come back in two parts
	}
	to := b.restore(entry.grantID, entry.source, n, r.Return, derivedID(prefixRegrant, anew), m.now)
	if to.policy != "" {
		d.From, d.Policy = entry.grantID, to.policy
	}
	b.refunded += n
	entry.line, entry.grantID, entry.source, entry.amount, entry.detail = 0, to.grantID, to.source, n, mustJSON(d)
	m.journal.add(b, m.now, entry)
	if to.policy == ReturnForfeit {
		b.expired += n
		entry.kind = lineExpire
		m.journal.add(b, m.now, entry)
	}
	if out != nil {
		if to.policy == ReturnForfeit {
			out.Forfeited += n
		}
		out.Draws = append(out.Draws, Draw{Grant: to.grantID, Source: to.source, Meter: b.Meter, Amount: n})
	}
}

// returned says where restored units went. policy is ” when their own grant took them back.
type returned struct {
	grantID string
	source  Source
	policy  ReturnPolicy
}

// lives says whether units can return to g. One of the plan's ends with its period, which a plan change may have cut short
// after the grant was used up. An active one has not ended: advance comes first, and where a hold and its grant end at the same
// instant, the hold does.
func (b *book) lives(g *grant, now time.Time) bool {
	if g.fromPlan() && g.EffectiveAt.Before(b.start) {
		return false
	}
	return g.Status == GrantActive || g.Status == GrantExhausted && g.ExpiresAt.After(now)
}

// restore puts n units back on the grant they came from, or where policy says when that grant has ended. It changes grants
// only; the caller moves the balance's sums and writes the line.
func (b *book) restore(grantID string, source Source, n int64, policy ReturnPolicy, newID string, now time.Time) returned {
	anew := GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: newID, Source: SourceRefund, Amount: n, Remaining: n,
		Priority: PriorityTopup, EffectiveAt: now, ExpiresAt: period.Forever, Status: GrantActive, OperationID: newID, CreatedAt: now,
	}
	if source == SourceAllowance || source == SourceRollover {
		anew.Priority, anew.ExpiresAt = PriorityAllowance, b.end
	}
	for _, g := range b.grants {
		if g.ID != grantID {
			continue
		}
		if b.lives(g, now) {
			if g.Status == GrantExhausted {
				g.Status, g.dirty = GrantActive, true
			}
			b.setRemaining(g, g.Remaining+n)
			return returned{grantID: g.ID, source: g.Source}
		}
		anew.Priority, anew.CostBasis = g.Priority, g.CostBasis
	}
	if policy != ReturnRegrant {
		return returned{grantID: grantID, source: source, policy: ReturnForfeit}
	}
	b.addGrant(&grant{isNew: true, GrantRecord: anew})
	return returned{grantID: newID, source: SourceRefund, policy: ReturnRegrant}
}

func (r *Refund) replay(m *machine, c *call, stored []line) {
	var d refundDetail
	result := &RefundResult{Replayed: true}
	err := json.Unmarshal(stored[0].detail, &d)
	if err == nil {
		err = json.Unmarshal(d.Answer, result)
	}
	if err != nil {
		c.fail(&Error{Code: CodeInternal, Detail: "the stored answer cannot be read", cause: err})
		return
	}
	for i := range result.Items {
		p := m.position(key{r.Tenant, result.Items[i].Meter, ""})
		result.Items[i].Limit, result.Items[i].ResetAt = p.Limit, p.ResetAt
	}
	c.result = result
}
