package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// HoldAction is what a HoldChange does.
type HoldAction string

// The actions on a hold.
const (
	ActionCapture HoldAction = "capture"
	ActionRelease HoldAction = "release"
	ActionExtend  HoldAction = "extend"
)

// HoldChange captures, releases or extends a hold.
type HoldChange struct {
	Tenant string
	Key    string
	HoldID string
	Action HoldAction
	// Items has the amounts to capture by meter; nil: all held units. Units that exceed the hold are decided like a
	// debit.
	Items []Item
	// Final releases the remaining units after a capture. A capture without Items always releases them.
	Final bool
	TTL   time.Duration // extension: time from now until the new end, 1 s..HoldTTLMax
	// Return selects where released units go if their grant has ended; empty: ReturnForfeit.
	Return ReturnPolicy
	// Suspended means that the tenant is suspended: a capture that exceeds the hold is refused.
	Suspended bool
}

// ID implements Operation.
func (h *HoldChange) ID() OperationID { return OperationID{h.Tenant, h.Key} }

// Kind implements Operation.
func (h *HoldChange) Kind() Kind {
	return map[HoldAction]Kind{ActionCapture: KindCapture, ActionRelease: KindRelease, ActionExtend: KindExtend}[h.Action]
}

// Targets implements Operation. It adds the hold to be changed.
func (h *HoldChange) Targets(t *Targets) { t.Holds = append(t.Holds, HoldKey{h.Tenant, h.HoldID}) }

// Demand implements Operation. It returns the balances on which the hold has lines.
func (h *HoldChange) Demand(found *Located) []Demand {
	var out []Demand
	for _, k := range found.Holds[HoldKey{h.Tenant, h.HoldID}] {
		out = append(out, Demand{k, DemandAll})
	}
	return out
}

func (h *HoldChange) answers(*HoldResult) {}

func (h *HoldChange) fingerprint() [16]byte {
	f := appendTexts(nil, "hold-"+string(h.Action)+"/1", h.Tenant, h.HoldID)
	f = appendFlag(binary.AppendVarint(f, int64(h.TTL)), h.Final)
	return fingerprintOf(appendItems(appendTexts(f, string(h.Return)), h.Items))
}

// Validate implements Operation.
func (h *HoldChange) Validate() error {
	if e := FirstOf(validKey(h.Key), ValidateName("tenant", h.Tenant), ValidateName("hold_id", h.HoldID), validReturn(h.Return)); e != nil {
		return e
	}
	switch {
	case h.Action == ActionExtend:
		return FirstOf(validTTL(h.TTL))
	case h.Action == ActionCapture && len(h.Items) > 0:
		return ValidateItems(h.Items)
	}
	return nil
}

func (h *HoldChange) decide(b *Batch, c *Call) error {
	row := b.Targets.Holds[HoldKey{h.Tenant, h.HoldID}]
	// A hold may be created after this batch has looked for its balances. It does not exist for the batch.
	if row == nil || !row.isNew && len(b.Located.Holds[row.HoldKey]) == 0 {
		return c.refuse(errcode.Errorf(errcode.HoldNotFound, "hold_id", "tenant %q has no hold %q", h.Tenant, h.HoldID))
	}
	// The units of a hold may all come from meters other than the meters of its items. The answer shows the balances
	// of the items' meters in every case, so the batch must have read these balances.
	own := make([]BalanceKey, len(row.Items))
	for i := range row.Items {
		own[i] = BalanceKey{row.Tenant, row.Items[i].Meter, ""}
	}
	if err := b.require(own...); err != nil {
		return err
	}
	lines := b.heldLines(row.HoldKey)
	if row.Status == HoldActive && len(lines) == 0 {
		row.Status, row.changed = HoldExpired, true
	}
	if row.Status != HoldActive {
		return c.refuse(errcode.Errorf(errcode.HoldNotActive, "hold_id", "hold %q is %s", h.HoldID, row.Status))
	}
	first := len(b.journal)
	before := *row
	before.Items = slices.Clone(row.Items)
	refused, err := h.apply(b, row, lines)
	if refused != nil || err != nil {
		b.rollBack(first)
		*row = before
	}
	if err != nil {
		return err
	}
	if refused != nil {
		return b.refuseItems(c, h.asked(row), row.Subject, nil, refused)
	}
	if b.trial {
		return nil
	}
	row.changed = true
	b.answerHold(c, row, first, h.draws(b, row, first), nil)
	return nil
}

// asked returns the items of the hold as the request has them.
func (h *HoldChange) asked(row *HoldRow) []Item {
	out := make([]Item, len(row.Items))
	for i := range row.Items {
		at := slices.IndexFunc(h.Items, func(it Item) bool { return it.Meter == row.Items[i].Meter })
		if at >= 0 {
			out[i] = h.Items[at]
		}
	}
	return out
}

// draws returns the draws of a capture. For the other actions it returns the units that are still reserved.
func (h *HoldChange) draws(b *Batch, row *HoldRow, first int) [][]Draw {
	if h.Action != ActionCapture {
		return row.draws(b)
	}
	out := make([][]Draw, len(row.Items))
	for _, e := range b.journal[first:] {
		if e.Subject == "" && (e.Kind == EntryCapture || e.Kind == EntryDebit || e.Kind == EntryOverage) && e.Amount > 0 {
			out[e.Item] = append(out[e.Item], Draw{Grant: e.Grant, Source: e.Source, Meter: e.Meter, Amount: e.Amount})
		}
	}
	return out
}

func (h *HoldChange) apply(b *Batch, row *HoldRow, lines []*HoldLine) (*errcode.Error, error) {
	for _, l := range lines {
		b.save(b.Books[l.BalanceKey])
	}
	b.adopt(row)
	switch h.Action {
	case ActionExtend:
		b.endAfter(row, lines, h.TTL)
		b.enter(b.Books[lines[0].BalanceKey], Entry{Kind: EntryExtend, Item: lines[0].Item})
		return nil, nil
	case ActionRelease:
		b.release(lines, h.Return)
		row.Status = HoldReleased
		if row.captured() > 0 {
			row.Status = HoldCaptured
		}
		return nil, nil
	case ActionCapture:
		return h.capture(b, row, lines)
	}
	return errcode.Errorf(errcode.InvalidArgument, "action", "must be capture, release or extend"), nil
}

// captured returns how much of the hold was captured, over all items.
func (row *HoldRow) captured() int64 {
	sum := int64(0)
	for i := range row.Items {
		sum += row.Items[i].Captured
	}
	return sum
}

// release captures the deferred units of the lines, and gives the other reserved units back to the grants.
func (b *Batch) release(lines []*HoldLine, policy ReturnPolicy) {
	for _, l := range lines {
		if book := b.Books[l.BalanceKey]; l.Deferred > 0 {
			b.enter(book, book.takeDeferred(l))
		}
		if n := l.Open(); n > 0 {
			b.Books[l.BalanceKey].giveBack(&b.journal, l, n, policy, "", b.Now, b.Now)
		}
	}
	for _, l := range lines {
		b.Books[l.BalanceKey].refresh()
	}
}

// capture turns held units into used units, item by item. Units that exceed the hold are decided like a debit.
func (h *HoldChange) capture(b *Batch, row *HoldRow, lines []*HoldLine) (*errcode.Error, error) {
	for i := range row.Items {
		amount, asked := h.amountFor(row, i, lines)
		if !asked || b.skips(i) {
			continue
		}
		part := min(amount, row.heldUnits(lines, i))
		if refused, err := h.captureItem(b, row, i, part, lines); refused != nil && !b.goesOn(refused) || err != nil {
			return refused, err
		}
		row.Items[i].Captured += amount
		if extra := amount - part; extra > 0 {
			if refused, err := h.captureBeyond(b, row, i, extra); refused != nil && !b.goesOn(refused) || err != nil {
				return refused, err
			}
		}
	}
	for i := range h.Items {
		if !slices.ContainsFunc(row.Items, func(it HoldItem) bool { return it.Meter == h.Items[i].Meter }) {
			return errcode.Errorf(errcode.InvalidArgument, itemField(i, "meter"), "hold %q has no item of meter %q", row.ID, h.Items[i].Meter), nil
		}
	}
	b.release(h.ended(row, lines), h.Return)
	left := int64(0)
	for _, l := range lines {
		left += l.Open()
		b.Books[l.BalanceKey].refresh()
	}
	if left == 0 {
		row.Status = HoldCaptured
	}
	return nil, nil
}

// ended returns the lines that end with this capture: all lines if it is final, otherwise those of items of which no
// unit is reserved. After a refund, a line at a price that is not a whole number may still reserve units then.
func (h *HoldChange) ended(row *HoldRow, lines []*HoldLine) []*HoldLine {
	if h.Final || len(h.Items) == 0 {
		return lines
	}
	goesOn := func(l *HoldLine) bool { return row.heldUnits(lines, int(l.Item)) > 0 }
	return slices.DeleteFunc(slices.Clone(lines), goesOn)
}

// amountFor returns how many units of item i the request captures, and false if it captures none.
func (h *HoldChange) amountFor(row *HoldRow, i int, lines []*HoldLine) (int64, bool) {
	if len(h.Items) == 0 {
		held := row.heldUnits(lines, i)
		return held, held > 0
	}
	for _, item := range h.Items {
		if item.Meter == row.Items[i].Meter {
			return item.Amount, true
		}
	}
	return 0, false
}

// captureItem captures units of item i from the tenant's lines, in the order in which the lines were reserved. It
// captures the same number of units from the subject's lines.
func (h *HoldChange) captureItem(b *Batch, row *HoldRow, i int, units int64, lines []*HoldLine) (*errcode.Error, error) {
	meter := row.Items[i].Meter
	tenant, subject, cost := units, units, int64(-1)
	for _, l := range lines {
		if int(l.Item) != i {
			continue
		}
		switch {
		case l.Subject != "":
			subject -= b.captureLine(l, min(subject, l.Open()), nil)
		case l.Meter == meter:
			tenant -= b.captureLine(l, min(tenant, l.Open()), nil)
		case l.Per > 1:
			p := paymentOf(row, i, b.Books[l.BalanceKey], l.ratio())
			if refused, err := h.capturePayment(b, p, tenant); refused != nil || err != nil {
				return inItem(refused, i), err
			}
			tenant = 0
		default:
			paid := price.Payment{For: meter}.At(l.ratio())
			if cost < 0 {
				cost = l.ratio().Cost(tenant)
				paid = *b.paysFor(l.ratio(), BalanceKey{row.Tenant, meter, ""}, tenant) // only the first of several lines records the units
			}
			cost -= b.captureLine(l, min(cost, l.Open()), &paid)
		}
	}
	return nil, nil
}

// ratio returns the price of a line.
func (h *HoldLine) ratio() price.Ratio { return price.Ratio{Units: h.Price, Per: h.Per} }

// captureEntry returns the entry of n captured units of a line.
func captureEntry(l *HoldLine, n int64, paid *price.Payment) Entry {
	return Entry{
		Kind: EntryCapture, Grant: l.Grant, Source: l.Source, Amount: n, Item: l.Item,
		Detail: mustJSON(holdDetail{Hold: l.HoldID, Overflow: paid}),
	}
}

// captureLine captures n units of a line and returns n. On an overflow meter, the payment says what the units pay for.
func (b *Batch) captureLine(l *HoldLine, n int64, paid *price.Payment) int64 {
	if n == 0 {
		return 0
	}
	book := b.Books[l.BalanceKey]
	book.takeLine(l, n)
	b.enter(book, captureEntry(l, n, paid))
	return n
}

// takeLine turns n reserved units of a line into captured units. The caller writes the entry.
func (b *Book) takeLine(l *HoldLine, n int64) {
	l.Captured, l.changed = l.Captured+n, true
	b.holdOn(l.Grant, -n)
}

// captureBeyond charges the units of a capture that exceed the held units, as a debit does.
func (h *HoldChange) captureBeyond(b *Batch, row *HoldRow, i int, extra int64) (*errcode.Error, error) {
	if h.Suspended {
		return errcode.Errorf(errcode.TenantSuspended, "tenant",
			"tenant %q is suspended: no more than what is held can be captured", row.Tenant), nil
	}
	s, refused, err := b.sourcesOf(row.Tenant, row.Items[i].Meter, row.Subject, extra)
	if refused != nil || err != nil {
		return inItem(refused, i), err
	}
	if s.overflow != nil && !s.price.IsWhole() {
		if !s.overflow.loaded {
			return nil, errNotLoaded
		}
		s.hold = paymentOf(row, i, s.overflow, s.price)
	}
	b.save(s.own, s.overflow, s.subject)
	a := s.allocate(extra)
	if a.units < extra {
		return s.deny(b, i, extra), nil
	}
	if !s.canDraw(&a) {
		return nil, errNotLoaded
	}
	b.charge(s, &a, int32(i), extra)
	return nil, nil
}

// giveBack gives n held units back to the grant from which they were taken. If that grant has ended, policy decides
// where the units go. id is set only for an operation that the ledger makes by itself; due is the instant at which
// that operation was due.
func (b *Book) giveBack(j *[]Entry, h *HoldLine, n int64, policy ReturnPolicy, id string, due, now time.Time) {
	h.Returned, h.changed = h.Returned+n, true
	b.holdOn(h.Grant, -n)
	regrant := ""
	if policy == ReturnRegrant {
		regrant = derivedID(prefixRegrant, fmt.Sprint("hold/", h.HoldID, "/", h.Line, "/", h.Returned))
	}
	r := restored{grant: h.Grant, source: h.Source, units: n, policy: policy, newID: regrant}
	if g := b.grant(h.Grant); g != nil {
		r.drawn = g.lastInstant()
	}
	line := int32(1)
	for _, to := range b.restore(r, due, now) {
		e := Entry{Kind: EntryRelease, OperationID: id, Line: line, Grant: to.grant, Source: to.source, Amount: to.units, Item: h.Item}
		if j != nil {
			detail := holdDetail{Hold: h.HoldID}
			if to.policy != "" {
				detail.From, detail.Policy = h.Grant, to.policy
			}
			e.Detail = mustJSON(detail)
		}
		if id != "" {
			e.EffectiveAt = due
		}
		b.enter(j, now, e)
		b.payShort(j, now, &to, e)
		if line += 2; to.policy == ReturnForfeit {
			e.Kind, e.Line = EntryExpire, e.Line+1
			b.enter(j, now, e)
		}
	}
}

func (h *HoldChange) rebuild(stored []Entry) (answer, error) { return storedAnswer[HoldResult](stored) }
