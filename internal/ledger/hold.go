package ledger

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// The default and the longest time after which a hold expires.
const (
	HoldTTLDefault = time.Hour
	HoldTTLMax     = 24 * time.Hour
)

// HoldStatus is the state of a hold.
type HoldStatus string

// The states of a hold: active -> captured | released | expired. A hold that was captured in part and then released
// is captured. A hold that was captured in part and then expired is expired.
const (
	HoldActive   HoldStatus = "active"
	HoldCaptured HoldStatus = "captured"
	HoldReleased HoldStatus = "released"
	HoldExpired  HoldStatus = "expired"
)

// Hold requests to reserve units. Remaining decreases at once. Units that are not captured return to the grants from
// which they were taken.
type Hold struct {
	Tenant    string
	Key       string
	HoldID    string // chosen by the client; names the hold in later calls
	Subject   string
	Items     []Item
	TTL       time.Duration // 1 s..HoldTTLMax; 0 = HoldTTLDefault
	Metadata  []byte
	Suspended bool
}

// HoldItem is one item of a hold.
type HoldItem struct {
	Meter     string    `json:"meter"`
	Amount    int64     `json:"amount"` // units reserved at first
	Captured  int64     `json:"captured"`
	Held      int64     `json:"held"` // units still reserved
	Draws     []Draw    `json:"draws"`
	Remaining int64     `json:"remaining"`
	Cap       *Position `json:"cap,omitempty"` // position of the subject's cap; nil: no cap
	Limit     int64     `json:"-"`
	ResetAt   time.Time `json:"-"`
}

// HoldResult is the answer to every operation on a hold.
type HoldResult struct {
	OperationID string     `json:"operation_id"`
	HoldID      string     `json:"hold_id"`
	Tenant      string     `json:"tenant"`
	Status      HoldStatus `json:"status"`
	Items       []HoldItem `json:"items"`
	ExpiresAt   time.Time  `json:"expires_at"`
	AsOf        time.Time  `json:"as_of"`
	Replayed    bool       `json:"-"`
}

// HoldKey names a hold.
type HoldKey struct{ Tenant, ID string }

// HoldRow is a row of the table holds: the data of a hold that belong to no balance.
type HoldRow struct {
	HoldKey

	Subject   string
	Status    HoldStatus
	Items     []HoldItem // only Meter, Amount and Captured are stored
	CreatedAt time.Time
	ExpiresAt time.Time

	changed bool
	isNew   bool // this batch creates the hold
}

// HoldLine is the part of one grant that a hold reserves, as it is stored. A line is closed when all its units were
// captured or returned.
type HoldLine struct {
	BalanceKey

	HoldID    string
	Line      int32 // number within the hold, from 1
	Item      int32
	Grant     string
	Source    Source
	Price     int64 // units of this line that pay for Per units of the item's meter; 1 except on an overflow meter
	Per       int64 // 1 except on an overflow meter whose price is not a whole number
	Paid      int64 // if Per is not 1: units of the item's meter that the hold's lines of this meter pay for together
	Amount    int64
	Captured  int64
	Returned  int64
	ExpiresAt time.Time

	// The fields below are used only if Per is not 1. See payment. Lines that an older version wrote have no PaysFor.
	PaysFor  string // the item's meter
	Deferred int64  // reserved units, 0 or 1, that captures have used; the end of the hold captures them
	Refunded int64  // captured units that refunds gave back
	Beyond   int64  // on a payment's first line: units of the item captured beyond the hold, minus refunded units

	isNew   bool
	changed bool
}

// Open returns the units that are still reserved.
func (h *HoldLine) Open() int64 { return h.Amount - h.Captured - h.Returned }

// Free returns the units that come back if the hold ends without further captures.
func (h *HoldLine) Free() int64 { return h.Open() - h.Deferred }

// holdDetail is the detail of the entries of hold operations. The first entry also carries the answer.
type holdDetail struct {
	Hold   string          `json:"hold"`
	From   string          `json:"from,omitempty"` // the grant from which the units were taken, if that grant has ended
	Policy ReturnPolicy    `json:"policy,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	// Overflow is set on entries of an overflow meter.
	Overflow *price.Payment `json:"overflow,omitempty"`
}

// holdOf returns the id of the hold that the detail of an entry names. It returns "" if the detail names no hold.
func holdOf(e *Entry) string {
	var d holdDetail
	if e.Detail == nil || json.Unmarshal(e.Detail, &d) != nil {
		return ""
	}
	return d.Hold
}

// ID implements Operation.
func (h *Hold) ID() OperationID { return OperationID{h.Tenant, h.Key} }

// Kind implements Operation.
func (h *Hold) Kind() Kind { return KindHold }

// Targets implements Operation. It adds the hold to be created.
func (h *Hold) Targets(t *Targets) { t.NewHolds = append(t.NewHolds, HoldKey{h.Tenant, h.HoldID}) }

// Demand implements Operation.
func (h *Hold) Demand(*Located) []Demand {
	out := make([]Demand, len(h.Items))
	for i := range h.Items {
		out[i] = Demand{BalanceKey{h.Tenant, h.Items[i].Meter, ""}, DemandAll}
	}
	return out
}

// Spends returns the items that the hold draws. The store uses them to predict which balances it needs.
func (h *Hold) Spends() (tenant, subject string, items []Item) { return h.Tenant, h.Subject, h.Items }

func (h *Hold) answers(*HoldResult) {}

func (h *Hold) fingerprint() [16]byte {
	f := appendTexts(nil, "hold/1", h.Tenant, h.HoldID, h.Subject, string(h.Metadata))
	return fingerprintOf(appendItems(binary.AppendVarint(f, int64(h.TTL)), h.Items))
}

// Validate implements Operation.
func (h *Hold) Validate() error {
	h.TTL = cmp.Or(h.TTL, HoldTTLDefault)
	if e := validSpending(h.Key, h.Tenant, h.Subject, h.Items); e != nil {
		return e
	}
	return FirstOf(ValidateName("hold_id", h.HoldID), validTTL(h.TTL))
}

func validTTL(ttl time.Duration) *errcode.Error {
	if ttl < time.Second || ttl > HoldTTLMax {
		return errcode.Errorf(errcode.InvalidArgument, "ttl_seconds", "must be an integer from 1 to %d", int(HoldTTLMax.Seconds()))
	}
	return nil
}

func (h *Hold) decide(b *Batch, c *Call) error {
	key := HoldKey{h.Tenant, h.HoldID}
	_, refused := b.Book(BalanceKey{h.Tenant, h.Items[0].Meter, ""})
	switch {
	case refused != nil:
		return c.refuse(inItem(refused, 0))
	case h.Suspended:
		return c.refuse(suspended(h.Tenant))
	case b.Targets.Holds[key] != nil:
		return c.refuse(errcode.Errorf(errcode.Conflict, "hold_id", "hold %q exists already with another Idempotency-Key", h.HoldID))
	}
	row := &HoldRow{
		HoldKey: key, Subject: h.Subject, Status: HoldActive, changed: true, isNew: true,
		CreatedAt: b.Now, ExpiresAt: b.Now.Add(h.TTL), Items: make([]HoldItem, len(h.Items)),
	}
	first, lines := len(b.journal), int32(0)
	for i, item := range h.Items {
		if b.skips(i) {
			continue
		}
		row.Items[i] = HoldItem{Meter: item.Meter, Amount: item.Amount}
		refused, err := h.reserveItem(b, i, row, &lines)
		switch {
		case err == nil && refused == nil, b.goesOn(refused):
			continue
		}
		b.rollBack(first)
		if err != nil {
			return err
		}
		return b.refuseItems(c, h.Items, h.Subject, h.Metadata, refused)
	}
	if b.trial {
		return nil
	}
	b.Targets.Holds[key] = row
	for i := first; i < len(b.journal); i++ {
		if b.journal[i].CreatedAt.After(b.Now) { // the clock is behind an earlier entry
			b.endAfter(row, b.heldLines(key), h.TTL)
			break
		}
	}
	b.answerHold(c, row, first, row.draws(b), h.Metadata)
	return nil
}

// reserveItem reserves one item: units of its own grants first, then units of the overflow meter's grants. Overage
// cannot be reserved.
func (h *Hold) reserveItem(b *Batch, i int, row *HoldRow, lines *int32) (*errcode.Error, error) {
	item := &h.Items[i]
	s, refused, err := b.sourcesOf(h.Tenant, item.Meter, h.Subject, item.Amount)
	if refused != nil || err != nil {
		return inItem(refused, i), err
	}
	s.overage = 0
	a := s.allocate(item.Amount)
	if a.units < item.Amount {
		return s.deny(b, i, item.Amount), nil
	}
	for _, book := range s.books() {
		if book != nil && !book.loaded {
			return nil, errNotLoaded
		}
	}
	b.save(s.own, s.overflow, s.subject)
	first := len(b.journal)
	b.reserve(s.own, row, HoldLine{Item: int32(i), Price: 1, Per: 1}, a.own, lines)
	if a.cost > 0 {
		l := lineAt(i, item.Meter, s.price)
		if !s.price.IsWhole() {
			l.Paid = a.overflow
		}
		b.reserve(s.overflow, row, l, a.cost, lines)
	}
	if s.subject != nil {
		b.reserve(s.subject, row, HoldLine{Item: int32(i), Price: 1, Per: 1}, a.units, lines)
	}
	if a.own > 0 {
		b.journal[first].Requested = item.Amount
	}
	return nil, nil
}

// reserve moves amount from remaining to held on book, grant by grant in burn order. Each part becomes a hold line.
// The other fields of these lines are copied from l.
func (b *Batch) reserve(book *Book, row *HoldRow, l HoldLine, amount int64, lines *int32) {
	for _, part := range book.take(amount) {
		book.holdOn(part.Grant, part.Amount)
		*lines++
		line := l
		line.BalanceKey, line.HoldID, line.Line, line.Grant, line.Source = book.BalanceKey, row.ID, *lines, part.Grant, part.Source
		line.Amount, line.ExpiresAt, line.isNew = part.Amount, row.ExpiresAt, true
		book.Holds = append(book.Holds, &line)
		b.enter(book, Entry{
			Kind: EntryHold, Grant: part.Grant, Source: part.Source, Amount: part.Amount, Item: l.Item, Detail: mustJSON(holdDetail{Hold: row.ID}),
		})
	}
	book.refresh()
}

// endAfter sets the end of a hold to ttl from now, unless the hold already ends later. If the clock is behind the
// newest entry of one of the hold's balances, ttl counts from that entry. Otherwise the hold could end at once.
func (b *Batch) endAfter(row *HoldRow, lines []*HoldLine, ttl time.Duration) {
	now := b.Now
	for _, l := range lines {
		now = period.Later(now, b.Books[l.BalanceKey].UpdatedAt)
	}
	until := period.Later(row.ExpiresAt, now.Add(ttl))
	if until.Equal(row.ExpiresAt) {
		return
	}
	row.ExpiresAt = until
	for _, l := range lines {
		book := b.Books[l.BalanceKey]
		l.ExpiresAt, l.changed = until, true
		book.changed = true
		book.refresh()
	}
}

// holdOn adds n to the held units of a grant. n may be negative.
func (b *Book) holdOn(grantID string, n int64) {
	if g := b.grant(grantID); g != nil {
		g.Held, g.changed = g.Held+n, true
	}
}

// heldLines lists a hold's open lines on all books of the batch, in line order.
func (b *Batch) heldLines(k HoldKey) []*HoldLine {
	var out []*HoldLine
	for _, book := range b.Books {
		if book.Tenant != k.Tenant {
			continue
		}
		for _, h := range book.Holds {
			if h.HoldID == k.ID && h.Open() > 0 {
				out = append(out, h)
			}
		}
	}
	slices.SortFunc(out, func(a, b *HoldLine) int { return int(a.Line - b.Line) })
	return out
}

// heldUnits returns how many units of item i are reserved. Lines on an overflow meter are summed first, because one
// line may pay for only a part of a unit. If a line has a price that is not a whole number, the lines do not determine
// the result. Then the result is the item's amount minus its captured units.
func (row *HoldRow) heldUnits(lines []*HoldLine, i int) int64 {
	own, cost, price := int64(0), int64(0), int64(1)
	for _, l := range lines {
		switch {
		case int(l.Item) != i || l.Subject != "":
		case l.Per > 1:
			return max(0, row.Items[i].Amount-row.Items[i].Captured)
		case l.Price == 1:
			own += l.Open()
		default:
			cost, price = cost+l.Open(), l.Price
		}
	}
	return own + cost/price
}

// draws returns, per item, the reserved units by grant.
func (row *HoldRow) draws(b *Batch) [][]Draw {
	out := make([][]Draw, len(row.Items))
	for _, h := range b.heldLines(row.HoldKey) {
		if h.Subject == "" {
			out[h.Item] = append(out[h.Item], Draw{Grant: h.Grant, Source: h.Source, Meter: h.Meter, Amount: h.Open()})
		}
	}
	return out
}

// answerHold answers c, and stores the answer in the operation's first entry, for retries.
func (b *Batch) answerHold(c *Call, row *HoldRow, first int, draws [][]Draw, metadata []byte) {
	entry := b.finish(c, first, row.Subject, metadata)
	result := &HoldResult{
		OperationID: c.ID.Key, HoldID: row.ID, Tenant: row.Tenant, Status: row.Status, ExpiresAt: row.ExpiresAt, AsOf: entry.CreatedAt,
		Items: slices.Clone(row.Items),
	}
	lines := b.heldLines(row.HoldKey)
	for i := range result.Items {
		item := &result.Items[i]
		own := BalanceKey{row.Tenant, item.Meter, ""}
		p := b.position(own)
		item.Cap = b.capOf(own, row.Subject)
		item.Held, item.Draws, item.Remaining, item.Limit, item.ResetAt = row.heldUnits(lines, i), draws[i], p.Remaining, p.Limit, p.ResetAt
	}
	detail := holdDetail{Hold: row.ID, Answer: mustJSON(result), Overflow: overflowOf(entry)}
	if entry.Kind == EntryRelease {
		var released holdDetail
		if json.Unmarshal(entry.Detail, &released) == nil {
			detail.From, detail.Policy = released.From, released.Policy
		}
	}
	entry.Detail = mustJSON(detail)
	c.Answer = result
}

func (h *Hold) rebuild(stored []Entry) (answer, error) { return storedAnswer[HoldResult](stored) }

func (r *HoldResult) replay(b *Batch) {
	r.Replayed = true
	for i := range r.Items {
		p := b.position(BalanceKey{r.Tenant, r.Items[i].Meter, ""})
		r.Items[i].Limit, r.Items[i].ResetAt = p.Limit, p.ResetAt
	}
}
