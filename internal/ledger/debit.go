package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// Limits on one operation or one call.
const (
	ItemsMax = 16   // items of one debit: each item locks a row and adds an object to the response
	BatchMax = 1000 // debits of one DebitBatch call
)

// Item requests an amount of one meter.
type Item struct {
	Meter  string
	Amount int64 // 1..MaxAmount, in the meter's smallest unit
	// StoreDenial stores a denial of this item under the operation's key (the meter's denial_replay).
	StoreDenial bool
}

// Debit requests to use units. In mode normal, all items succeed or none does.
type Debit struct {
	Tenant   string
	Key      string // Idempotency-Key, 1..bound.MaxKey visible ASCII bytes; also the operation id
	Subject  string // recorded with the entries, and charged where the plan caps subjects; empty: none
	Items    []Item // 1..ItemsMax, each meter once
	Mode     Mode   // empty: ModeNormal
	Metadata []byte // JSON object or nil, kept with the entries
	// Suspended means that the tenant is suspended: the debit is refused unless it is a replay.
	Suspended bool
	// Scope distinguishes endpoints that share the tenant's Idempotency-Keys. It is part of the fingerprint.
	Scope string
}

// Draw is the part of an item that one grant paid, or that is overage.
type Draw struct {
	Grant  string // empty for overage
	Source Source
	Meter  string // the item's meter, or its overflow meter
	Amount int64  // in Meter's units
}

// ItemResult is the answer to one item.
type ItemResult struct {
	Meter     string
	Requested int64
	Charged   int64
	Shortfall int64 // requested - charged
	Draws     []Draw
	Overflow  *price.Payment // payment by the draws of the overflow meter; nil: no such draws
	Cap       *Position      // position of the subject's cap; nil: no cap, or unknown
	Position
}

// DebitResult is the answer to a debit that was made, now or earlier.
type DebitResult struct {
	OperationID string
	Tenant      string
	Items       []ItemResult
	AsOf        time.Time // instant of the decision, by PostgreSQL's clock
	Replayed    bool

	subject string // of a replay
}

// ID implements Operation.
func (d *Debit) ID() OperationID { return OperationID{d.Tenant, d.Key} }

// Kind implements Operation.
func (d *Debit) Kind() Kind { return KindDebit }

// Targets implements Operation. It adds nothing, because a debit names all its balances.
func (d *Debit) Targets(*Targets) {}

// Validate implements Operation.
func (d *Debit) Validate() error {
	if e := validSpending(d.Key, d.Tenant, d.Subject, d.Items); e != nil {
		return e
	}
	switch d.Mode {
	case "", ModeNormal, ModeBestEffort, ModeDrain:
		return nil
	}
	return errcode.Errorf(errcode.InvalidArgument, "mode", "must be one of: normal, best_effort, drain")
}

func (d *Debit) fingerprint() [16]byte {
	h := appendTexts(make([]byte, 0, 256), "debit/1", d.Scope, d.Tenant, d.Subject, string(d.Metadata))
	h = appendItems(h, d.Items)
	if d.Mode != "" && d.Mode != ModeNormal {
		h = appendTexts(h, string(d.Mode))
	}
	return fingerprintOf(h)
}

// Demand implements Operation.
func (d *Debit) Demand(*Located) []Demand {
	out := make([]Demand, len(d.Items))
	for i := range d.Items {
		out[i] = Demand{BalanceKey{d.Tenant, d.Items[i].Meter, ""}, d.Items[i].Amount}
	}
	return out
}

// Spends returns the items that the debit draws. The store uses them to predict which balances it needs.
func (d *Debit) Spends() (tenant, subject string, items []Item) { return d.Tenant, d.Subject, d.Items }

func (d *Debit) answers(*DebitResult) {}

func (d *Debit) decide(b *Batch, c *Call) error {
	if _, refused := b.Book(BalanceKey{d.Tenant, d.Items[0].Meter, ""}); refused != nil {
		return c.refuse(inItem(refused, 0))
	}
	if d.Suspended {
		return c.refuse(suspended(d.Tenant))
	}
	first := len(b.journal)
	result := &DebitResult{OperationID: d.Key, Tenant: d.Tenant, Items: make([]ItemResult, len(d.Items))}
	for i := range d.Items {
		if b.skips(i) {
			continue
		}
		refused, err := d.decideItem(b, i, &result.Items[i])
		switch {
		case err == nil && refused == nil, b.goesOn(refused):
			continue
		}
		b.rollBack(first)
		if err != nil {
			return err
		}
		return b.refuseItems(c, d.Items, d.Subject, d.Metadata, refused)
	}
	if b.trial {
		return nil
	}
	result.AsOf = b.finish(c, first, d.Subject, d.Metadata).CreatedAt
	c.Answer = result
	return nil
}

// decideItem decides and charges one item. If another item may still be refused, it saves the books before it changes
// them.
func (d *Debit) decideItem(b *Batch, i int, out *ItemResult) (*errcode.Error, error) {
	item := &d.Items[i]
	s, refused, err := b.sourcesOf(d.Tenant, item.Meter, d.Subject, item.Amount)
	if refused != nil || err != nil {
		return inItem(refused, i), err
	}
	if d.Mode == ModeDrain {
		s.overage, s.drains = 0, true // a drain records all use beyond the grants as its shortfall, regardless of caps
	}
	a := s.allocate(item.Amount)
	short := item.Amount - a.units
	if short > 0 && (d.Mode == "" || d.Mode == ModeNormal || s.own.Unknown()) {
		return s.deny(b, i, item.Amount), nil
	}
	if d.Mode == ModeDrain {
		a.drained = short
	}
	if a.drained > MaxAmount-s.own.Overage || s.drains && s.subject != nil && item.Amount > MaxAmount-s.subject.Overage {
		return errcode.Errorf(errcode.InvalidArgument, itemField(i, "amount"), "would raise the overage of meter %q above %d", item.Meter, MaxAmount), nil
	}
	if !s.canDraw(&a) {
		return nil, errNotLoaded
	}
	if len(d.Items) > 1 {
		b.save(s.own, s.overflow, s.subject)
	}
	*out = ItemResult{Meter: item.Meter, Requested: item.Amount, Charged: a.units, Shortfall: short}
	if a.overflow > 0 {
		out.Overflow = s.paid(&a)
	}
	out.Draws = b.charge(s, &a, int32(i), item.Amount)
	out.Position, out.Cap = s.own.Position(), b.capOf(s.own.BalanceKey, d.Subject)
	return nil, nil
}

// rebuild rebuilds the answer from the stored entries. It takes the requested amounts from d, because the
// fingerprints are equal.
func (d *Debit) rebuild(stored []Entry) (answer, error) {
	result := &DebitResult{
		OperationID: d.Key, Tenant: d.Tenant, AsOf: stored[0].CreatedAt, Items: make([]ItemResult, len(d.Items)), subject: d.Subject,
	}
	for i := range d.Items {
		result.Items[i].Meter, result.Items[i].Requested = d.Items[i].Meter, d.Items[i].Amount
	}
	for i := range stored {
		result.Items[stored[i].Item].add(&stored[i], d.Mode)
	}
	for i := range result.Items {
		result.Items[i].Shortfall = result.Items[i].Requested - result.Items[i].Charged
	}
	return result, nil
}

// add adds one stored entry to the item it belongs to.
func (item *ItemResult) add(e *Entry, mode Mode) {
	if e.Subject != "" { // the subject's entry for the same use
		item.Cap = &Position{Remaining: e.RemainingAfter}
		return
	}
	draw := Draw{Grant: e.Grant, Source: e.Source, Meter: e.Meter, Amount: e.Amount}
	switch {
	case e.Meter != item.Meter:
		if o := overflowOf(e); o != nil && o.Units > 0 {
			item.Charged, item.Overflow = item.Charged+o.Units, o
		}
	case e.Kind == EntryOverage && mode == ModeDrain:
		item.Remaining = e.RemainingAfter
		draw.Amount = 0 // the shortfall of a drain
	default:
		item.Remaining = e.RemainingAfter
		item.Charged += e.Amount
	}
	if draw.Amount > 0 {
		item.Draws = append(item.Draws, draw)
	}
}

func (r *DebitResult) replay(b *Batch) {
	r.Replayed = true
	for i := range r.Items {
		item := &r.Items[i]
		own := BalanceKey{r.Tenant, item.Meter, ""}
		p := b.position(own)
		item.Limit, item.ResetAt = p.Limit, p.ResetAt
		limit := b.capOf(own, r.subject)
		switch {
		case item.Cap == nil:
			item.Cap = limit // the debit charged nothing, so that no entry has what remained
		case limit != nil:
			item.Cap.Limit, item.Cap.ResetAt = limit.Limit, limit.ResetAt
		}
	}
}

// capOf returns the position of a subject's cap on the balance own. It returns nil if the plan has no such cap, or if
// the batch has not read the cap.
func (b *Batch) capOf(own BalanceKey, subject string) *Position {
	book := b.Books[own]
	if subject == "" || book == nil || book.Terms == nil || book.Terms.PerSubject == nil {
		return nil
	}
	capped := b.Books[BalanceKey{own.Tenant, own.Meter, subject}]
	if capped == nil {
		return nil
	}
	p := capped.Position()
	return &p
}
