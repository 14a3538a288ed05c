package ledger

import (
	"encoding/json"
	"slices"
	"time"
)

// Bounds of a hold's life.
const (
	HoldTTLDefault = time.Hour
	HoldTTLMax     = 24 * time.Hour
)

// HoldStatus is where a hold stands.
type HoldStatus string

// The states of a hold: active -> captured | released | expired. A hold of which a part was captured before the rest was
// released counts as captured; one of which the rest expired, as expired.
const (
	HoldActive   HoldStatus = "active"
	HoldCaptured HoldStatus = "captured"
	HoldReleased HoldStatus = "released"
	HoldExpired  HoldStatus = "expired"
)

// Hold asks to reserve units. They leave remaining at once and come back to the grants they were taken from unless captured.
type Hold struct {
	Tenant    string
	Key       string
	HoldID    string // the client's; names the hold in later calls
	Subject   string
	Items     []Item
	TTL       time.Duration // 1 s..HoldTTLMax; 0 = HoldTTLDefault
	Metadata  []byte
	Suspended bool
}

// HoldItem is one item of a hold.
type HoldItem struct {
	Meter     string    `json:"meter"`
	Amount    int64     `json:"amount"` // reserved at first
	Captured  int64     `json:"captured"`
	Held      int64     `json:"held"` // still reserved
	Draws     []Draw    `json:"draws"`
	Remaining int64     `json:"remaining"`
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
	// Items says what to capture of each meter; nil = all that is held. More than is held is decided like a debit.
	Items []Item
	// Final releases what a capture leaves. A capture without Items always does.
	Final bool
	TTL   time.Duration // of an extension: from now, 1 s..HoldTTLMax
	// Return says where released units go whose grant has ended; '' = ReturnForfeit.
	Return ReturnPolicy
	// Suspended makes the ledger refuse what a capture asks beyond the hold.
	Suspended bool
}

type holdKey struct{ tenant, id string }

// holdRow is the part of a hold that is not on any balance.
type holdRow struct {
	holdKey
	subject   string
	status    HoldStatus
	items     []HoldItem // Meter, Amount, Captured
	createdAt time.Time
	expiresAt time.Time
	isNew     bool
	dirty     bool
}

// holdLine is what a hold reserves of one grant. Lines whose reservation is used up or given back are closed.
type holdLine struct {
	holdID    string
	line      int32
	item      int32
	grantID   string
	source    Source
	price     int64 // units of this line for one unit of the item's meter; 1 but on an overflow meter
	amount    int64
	captured  int64
	returned  int64
	expiresAt time.Time
	isNew     bool
	dirty     bool
}

func (h *holdLine) open() int64 { return h.amount - h.captured - h.returned }

// holdDetail is what the lines of hold operations remember; the first line also carries the answer, for replays.
type holdDetail struct {
	Hold   string          `json:"hold"`
	From   string          `json:"from,omitempty"` // the grant the units were held on, where they went to another
	Policy ReturnPolicy    `json:"policy,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	// Overflow is set where units of an overflow meter were used for the item's.
	Overflow *overflowDetail `json:"overflow,omitempty"`
}

func (h *Hold) call() *call {
	f := hasher{buf: make([]byte, 0, 192)}
	f.text("hold/1").text(h.Tenant).text(h.HoldID).text(h.Subject).text(string(h.Metadata)).number(int64(h.TTL)).items(h.Items)
	return &call{id: opKey{h.Tenant, h.Key}, kind: KindHold, print: f.sum(), req: h}
}

func (h *HoldChange) call() *call {
	f := hasher{buf: make([]byte, 0, 192)}
	f.text("hold-" + string(h.Action) + "/1").text(h.Tenant).text(h.HoldID).number(int64(h.TTL)).flag(h.Final).text(string(h.Return)).items(h.Items)
	kind := map[HoldAction]Kind{ActionCapture: KindCapture, ActionRelease: KindRelease, ActionExtend: KindExtend}[h.Action]
	return &call{id: opKey{h.Tenant, h.Key}, kind: kind, print: f.sum(), req: h}
}

func (h *Hold) validate() error {
	if e := firstOf(validKey(h.Key), validID("tenant", h.Tenant), validID("hold_id", h.HoldID), validSubject(h.Subject)); e != nil {
		return e
	}
	if h.TTL == 0 {
		h.TTL = HoldTTLDefault
	}
	if e := firstOf(validTTL(h.TTL)); e != nil {
		return e
	}
	return validItems(h.Items)
}

func (h *HoldChange) validate() error {
	if e := firstOf(validKey(h.Key), validID("tenant", h.Tenant), validID("hold_id", h.HoldID)); e != nil {
		return e
	}
	if e := firstOf(validReturn(h.Return)); e != nil {
		return e
	}
	switch {
	case h.Action == ActionExtend:
		return firstOf(validTTL(h.TTL))
	case h.Action == ActionCapture && len(h.Items) > 0:
		return validItems(h.Items)
	}
	return nil
}

func validTTL(ttl time.Duration) *Error {
	if ttl < time.Second || ttl > HoldTTLMax {
		return errorf(CodeInvalidArgument, "ttl_seconds", "must be an integer from 1 to %d", int(HoldTTLMax.Seconds()))
	}
	return nil
}

func (h *Hold) needs(*found) []need {
	out := make([]need, len(h.Items))
	for i := range h.Items {
		out[i] = need{key{h.Tenant, h.Items[i].Meter, ""}, needAll}
	}
	return out
}

func (h *Hold) decide(m *machine, c *call) error {
	if _, failed := m.book(key{h.Tenant, h.Items[0].Meter, ""}, itemField(0, "meter")); failed != nil {
		c.fail(failed)
		return nil
	}
	if h.Suspended {
		c.fail(errorf(CodeTenantSuspended, "tenant", "tenant %q is suspended", h.Tenant))
		return nil
	}
	if m.holds[holdKey{h.Tenant, h.HoldID}] != nil {
		c.fail(errorf(CodeConflict, "hold_id", "hold %q exists already with another Idempotency-Key", h.HoldID))
		return nil
	}
	row := &holdRow{
		holdKey: holdKey{h.Tenant, h.HoldID}, subject: h.Subject, status: HoldActive, isNew: true,
		createdAt: m.now, expiresAt: m.now.Add(h.TTL), items: make([]HoldItem, len(h.Items)),
	}
	first, lines := len(m.journal.lines), int32(0)
	for i, item := range h.Items {
		row.items[i] = HoldItem{Meter: item.Meter, Amount: item.Amount}
		failed, err := m.holdItem(h, i, row, &lines)
		if failed != nil || err != nil {
			m.rollback(first)
		}
		if err != nil {
			return err
		}
		if failed != nil {
			c.fail(failed)
			if item.StoreDenial && failed.Denial != nil {
				m.storeDenial(c, opMeta{h.Subject, h.Metadata}, failed)
			}
			return nil
		}
	}
	m.holds[row.holdKey] = row
	m.answerHold(c, row, first, row.draws(m), opMeta{h.Subject, h.Metadata})
	return nil
}

// holdItem reserves one item on its well: own grants first, then the overflow meter's. Overage cannot be reserved.
func (m *machine) holdItem(h *Hold, i int, row *holdRow, lines *int32) (*Error, error) {
	item := h.Items[i]
	w, failed, err := m.wellOf(h.Tenant, item.Meter, h.Subject, item.Amount, itemField(i, "meter"))
	if failed != nil || err != nil {
		return failed, err
	}
	w.overage = 0
	s := w.split(item.Amount)
	if s.units() < item.Amount {
		return w.deny(i, item.Amount, later(m.now, w.own.updatedAt))
	}
	for _, b := range []*book{w.own, w.overflow, w.subject} {
		if b != nil && !b.loaded {
			return nil, errNotLoaded
		}
	}
	w.remember(m)
	m.reserve(w.own, row, i, s.own, 1, item.Amount, lines)
	if s.cost > 0 {
		m.reserve(w.overflow, row, i, s.cost, w.price, 0, lines)
	}
	if w.subject != nil {
		m.reserve(w.subject, row, i, s.units(), 1, 0, lines)
	}
	return nil, nil
}

// reserve moves amount from remaining to held on b, grant by grant in burn order.
func (m *machine) reserve(b *book, row *holdRow, item int, amount, price, requested int64, lines *int32) {
	for _, g := range b.grants {
		if amount == 0 {
			break
		}
		if g.Status != GrantActive || g.Remaining == 0 {
			continue
		}
		part := min(amount, g.Remaining)
		amount -= part
		b.setRemaining(g, g.Remaining-part)
		g.Held, g.dirty = g.Held+part, true
		b.held += part
		*lines++
		b.holds = append(b.holds, &holdLine{
			holdID: row.id, line: *lines, item: int32(item), grantID: g.ID, source: g.Source, price: price, amount: part,
			expiresAt: row.expiresAt, isNew: true,
		})
		l := line{kind: lineHold, grantID: g.ID, source: g.Source, amount: part, item: int32(item), detail: mustJSON(holdDetail{Hold: row.id})}
		if requested > 0 {
			l.requested = &requested
			requested = 0
		}
		m.journal.add(b, m.now, l)
	}
	b.settle()
}

// heldLines lists a hold's open lines on all books of the batch, with their books, in line order.
func (m *machine) heldLines(k holdKey) []heldLine {
	var out []heldLine
	for _, b := range m.books {
		if b.Tenant != k.tenant {
			continue
		}
		for _, h := range b.holds {
			if h.holdID == k.id && h.open() > 0 {
				out = append(out, heldLine{b, h})
			}
		}
	}
	slices.SortFunc(out, func(a, b heldLine) int { return int(a.line - b.line) })
	return out
}

// heldUnits is how many units of item i are reserved. Lines on an overflow meter may each hold a part of a unit.
func heldUnits(lines []heldLine, i int) int64 {
	own, cost, price := int64(0), int64(0), int64(1)
	for _, l := range lines {
		switch {
		case int(l.item) != i || l.book.Subject != "":
		case l.price == 1:
			own += l.open()
		default:
			cost, price = cost+l.open(), l.price
		}
	}
	return own + cost/price
}

type heldLine struct {
	book *book
	*holdLine
}

// draws shows, per item, what is reserved where.
func (row *holdRow) draws(m *machine) [][]Draw {
	out := make([][]Draw, len(row.items))
	for _, h := range m.heldLines(row.holdKey) {
		if h.book.Subject == "" {
			out[h.item] = append(out[h.item], Draw{Grant: h.grantID, Source: h.source, Meter: h.book.Meter, Amount: h.open()})
		}
	}
	return out
}

// answerHold completes the operation: the answer, and its copy on the first line for replays.
func (m *machine) answerHold(c *call, row *holdRow, first int, draws [][]Draw, meta opMeta) {
	m.seal(c, first, meta)
	at := m.journal.lines[first].createdAt
	result := &HoldResult{
		OperationID: c.id.id, HoldID: row.id, Tenant: row.tenant, Status: row.status, ExpiresAt: row.expiresAt, AsOf: at,
		Items: slices.Clone(row.items),
	}
	lines := m.heldLines(row.holdKey)
	for i := range result.Items {
		item := &result.Items[i]
		p := m.position(key{row.tenant, item.Meter, ""})
		item.Held, item.Draws, item.Remaining, item.Limit, item.ResetAt = heldUnits(lines, i), draws[i], p.Remaining, p.Limit, p.ResetAt
	}
	m.journal.lines[first].detail = mustJSON(holdDetail{Hold: row.id, Answer: mustJSON(result), Overflow: overflowOf(&m.journal.lines[first])})
	c.result = result
}

func (h *Hold) replay(m *machine, c *call, stored []line)       { replayHold(m, c, stored) }
func (h *HoldChange) replay(m *machine, c *call, stored []line) { replayHold(m, c, stored) }

func replayHold(m *machine, c *call, stored []line) {
	var d holdDetail
	result := &HoldResult{}
	if err := json.Unmarshal(stored[0].detail, &d); err == nil {
		err = json.Unmarshal(d.Answer, result)
		if err == nil {
			result.Replayed = true
			for i := range result.Items {
				p := m.position(key{c.id.tenant, result.Items[i].Meter, ""})
				result.Items[i].Limit, result.Items[i].ResetAt = p.Limit, p.ResetAt
			}
			c.result = result
			return
		}
	}
	c.fail(&Error{Code: CodeInternal, Detail: "the stored answer cannot be read"})
}
