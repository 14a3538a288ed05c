package ledger

import (
	"encoding/json"
	"time"
)

// Limits on one operation.
const (
	ItemsMax = 16 // items of one debit: each is a locked row and a response object
	KeyMax   = 255
	BatchMax = 1000 // debits of one DebitBatch call
)

// Item asks for an amount of one meter.
type Item struct {
	Meter  string
	Amount int64 // 1..MaxAmount, in the meter's smallest unit
	// StoreDenial keeps a denial of this item under the operation's key (the meter's denial_replay).
	StoreDenial bool
}

// Debit asks to use units. In mode normal all items succeed or none does.
type Debit struct {
	Tenant   string
	Key      string // Idempotency-Key, 1..KeyMax visible ASCII bytes; also the operation id
	Subject  string // recorded with the entries, and charged where the plan caps subjects; '' = none
	Items    []Item // 1..ItemsMax, each meter once
	Mode     Mode   // '' = normal
	Metadata []byte // JSON object or nil, kept with the entries
	// Suspended makes the ledger refuse the debit unless it is a replay.
	Suspended bool
	// Scope tells endpoints apart that share a key space; it is part of the fingerprint.
	Scope string
}

// Draw is the part of an item that one grant paid, or overage.
type Draw struct {
	Grant  string // '' for overage
	Source Source
	Meter  string // the item's, or its overflow meter
	Amount int64  // in Meter's units
}

// ItemResult is the answer to one item.
type ItemResult struct {
	Meter     string
	Requested int64
	Charged   int64
	Shortfall int64 // requested - charged
	Draws     []Draw
	Position
}

// DebitResult is the answer to a debit that was made, now or earlier.
type DebitResult struct {
	OperationID string
	Tenant      string
	Items       []ItemResult
	AsOf        time.Time // when it was decided, by PostgreSQL's clock
	Replayed    bool
}

func (d *Debit) call() *call {
	return &call{id: opKey{d.Tenant, d.Key}, kind: KindDebit, print: d.fingerprint(), req: d}
}

func (d *Debit) fingerprint() fingerprint {
	h := hasher{buf: make([]byte, 0, 192)}
	h.text("debit/1").text(d.Scope).text(d.Tenant).text(d.Subject).text(string(d.Metadata)).items(d.Items)
	if d.Mode != "" && d.Mode != ModeNormal {
		h.text(string(d.Mode))
	}
	return h.sum()
}

func (d *Debit) validate() error {
	if e := firstOf(validKey(d.Key), validID("tenant", d.Tenant), validSubject(d.Subject)); e != nil {
		return e
	}
	switch d.Mode {
	case "", ModeNormal, ModeBestEffort, ModeDrain:
	default:
		return errorf(CodeInvalidArgument, "mode", "must be normal, best_effort or drain")
	}
	return validItems(d.Items)
}

func (d *Debit) needs(*found) []need {
	out := make([]need, len(d.Items))
	for i := range d.Items {
		out[i] = need{key{d.Tenant, d.Items[i].Meter, ""}, d.Items[i].Amount}
	}
	return out
}

func (d *Debit) decide(m *machine, c *call) error {
	if _, failed := m.book(key{d.Tenant, d.Items[0].Meter, ""}, itemField(0, "meter")); failed != nil {
		c.fail(failed)
		return nil
	}
	if d.Suspended {
		c.fail(errorf(CodeTenantSuspended, "tenant", "tenant %q is suspended", d.Tenant))
		return nil
	}
	first := len(m.journal.lines)
	result := &DebitResult{OperationID: d.Key, Tenant: d.Tenant, Items: make([]ItemResult, len(d.Items)), AsOf: m.now}
	for i := range d.Items {
		denied, err := m.debitItem(d, i, &result.Items[i])
		if denied != nil || err != nil {
			m.rollback(first)
		}
		if err != nil {
			return err
		}
		if denied != nil {
			c.fail(denied)
			if d.Items[i].StoreDenial && denied.Denial != nil {
				m.storeDenial(c, opMeta{d.Subject, d.Metadata}, denied)
			}
			return nil
		}
	}
	m.seal(c, first, opMeta{d.Subject, d.Metadata})
	result.AsOf = m.journal.lines[first].createdAt
	c.result = result
	return nil
}

// debitItem decides and charges one item. Books it changes are remembered first when another item may still fail.
func (m *machine) debitItem(d *Debit, i int, out *ItemResult) (*Error, error) {
	item := d.Items[i]
	w, failed, err := m.wellOf(d.Tenant, item.Meter, d.Subject, item.Amount, itemField(i, "meter"))
	if failed != nil || err != nil {
		return failed, err
	}
	if d.Mode == ModeDrain {
		w.overage = 0 // everything beyond grants is the shortfall, which a drain records whatever the cap
	}
	s := w.split(item.Amount)
	short := item.Amount - s.units()
	if short > 0 && (d.Mode == "" || d.Mode == ModeNormal || w.own.unknown()) {
		return w.deny(i, item.Amount, later(m.now, w.own.updatedAt))
	}
	drained := int64(0)
	if d.Mode == ModeDrain {
		drained = short
	}
	if drained > MaxAmount-w.own.overage {
		return errorf(CodeInvalidArgument, itemField(i, "amount"), "would raise the overage of meter %q above %d", item.Meter, MaxAmount), nil
	}
	if !w.loaded(s, drained) {
		return nil, errNotLoaded
	}
	if len(d.Items) > 1 {
		w.remember(m)
	}
	*out = ItemResult{Meter: item.Meter, Requested: item.Amount, Charged: s.units(), Shortfall: short}
	out.Draws = m.charge(w, i, item.Amount, s, drained)
	out.Position = w.own.position()
	return nil, nil
}

// storeDenial keeps a denial under its key.
func (m *machine) storeDenial(c *call, meta opMeta, e *Error) {
	dn := e.Denial
	first := len(m.journal.lines)
	m.journal.add(m.books[key{c.id.tenant, dn.Limiting.Meter, ""}], m.now, line{
		kind: lineDenial, item: int32(dn.Item), requested: &dn.Required,
		detail: mustJSON(denialDetail{
			Code: e.Code, Item: dn.Item, Kind: dn.Limiting.Kind, Level: dn.Limiting.Level, Subject: dn.Limiting.Subject,
			Required: dn.Required, Available: dn.Available, Remaining: dn.Remaining, Limit: dn.Limit,
			ResetAt: pointerTo(dn.ResetAt), WouldSucceedAt: pointerTo(dn.WouldSucceedAt),
		}),
	})
	m.seal(c, first, meta)
}

// replay rebuilds the answer. The fingerprint has matched, so what was asked is in d itself.
func (d *Debit) replay(m *machine, c *call, stored []line) {
	result := &DebitResult{OperationID: d.Key, Tenant: d.Tenant, AsOf: stored[0].createdAt, Replayed: true, Items: make([]ItemResult, len(d.Items))}
	for i := range d.Items {
		item := &result.Items[i]
		item.Meter, item.Requested = d.Items[i].Meter, d.Items[i].Amount
		item.Position = m.position(key{d.Tenant, item.Meter, ""})
		item.Remaining = 0
	}
	for i := range stored {
		result.Items[stored[i].item].replay(&stored[i], d.Mode)
	}
	for i := range result.Items {
		result.Items[i].Shortfall = result.Items[i].Requested - result.Items[i].Charged
	}
	c.result = result
}

// replay adds one stored line to the item it belongs to.
func (item *ItemResult) replay(l *line, mode Mode) {
	if l.Subject != "" {
		return // the cap's own account of the same use
	}
	draw := Draw{Grant: l.grantID, Source: l.source, Meter: l.Meter, Amount: l.amount}
	switch {
	case l.Meter != item.Meter:
		var o overflowDetail
		if json.Unmarshal(l.detail, &o) == nil {
			item.Charged += o.Units
		}
	case l.kind == lineOverage && mode == ModeDrain:
		item.Remaining = l.remainingAfter
		draw.Amount = 0 // the shortfall of a drain
	default:
		item.Remaining = l.remainingAfter
		item.Charged += l.amount
	}
	if draw.Amount > 0 {
		item.Draws = append(item.Draws, draw)
	}
}
