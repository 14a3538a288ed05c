package ledger

import (
	"encoding/json"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// GrantsOpenMax bounds the open grants of one balance: they are read and sorted whenever the head changes.
const GrantsOpenMax = 1000

// opKey identifies an operation.
type opKey struct{ tenant, id string }

// call is one operation on its way through a batch: the request, and then the answer.
type call struct {
	debit *Debit
	grant *Grant
	print fingerprint

	debitResult *DebitResult
	grantResult *GrantResult
	err         error
}

func (c *call) opKey() opKey {
	if c.grant != nil {
		return opKey{c.grant.Tenant, c.grant.Key}
	}
	return opKey{c.debit.Tenant, c.debit.Key}
}

// keys lists the balances the operation touches.
func (c *call) keys(out []key) []key {
	if c.grant != nil {
		return append(out, key{c.grant.Tenant, c.grant.Meter, c.grant.Subject})
	}
	for i := range c.debit.Items {
		out = append(out, key{c.debit.Tenant, c.debit.Items[i].Meter, ""})
	}
	return out
}

// reset forgets an answer, before the batch is decided again.
func (c *call) reset() { c.debitResult, c.grantResult, c.err = nil, nil, nil }

// missing says why a balance row could not be made.
type missing int

const (
	missingTenant missing = iota + 1
	missingMeter
)

// machine decides a batch. It performs no I/O: books, stored lines and now are read before, what changed is written after.
type machine struct {
	now     time.Time
	books   map[key]*book
	absent  map[key]missing
	stored  map[opKey][]line // what the journal knows of the batch's keys; grows with what the batch decides
	taken   map[grantKey]bool
	journal journal
}

type grantKey struct {
	key
	id string
}

// advanceAll brings every book to now. more = true: write what there is, commit, and read the batch again.
func (m *machine) advanceAll() (more bool, err error) {
	for _, b := range m.books {
		mark := len(m.journal.lines)
		again, err := b.advance(later(m.now, b.updatedAt), &m.journal)
		switch {
		case err == errNotLoaded:
			return false, err
		case err != nil:
			m.journal.lines = m.journal.lines[:mark]
			b.broken = err
		}
		more = more || again
	}
	return more, nil
}

// decide answers c. A denied or failed call leaves no trace in any book.
func (m *machine) decide(c *call) error {
	c.reset()
	if lines, ok := m.stored[c.opKey()]; ok {
		m.replay(c, lines)
		return nil
	}
	if c.grant != nil {
		return m.decideGrant(c)
	}
	return m.decideDebit(c)
}

// book returns the book of k, or why the operation cannot have it.
func (m *machine) book(k key, field string) (*book, *Error) {
	if b, ok := m.books[k]; ok {
		if b.broken != nil {
			return nil, &Error{Code: CodeInternal, Detail: "the balance's next period cannot be computed", cause: b.broken}
		}
		return b, nil
	}
	if m.absent[k] == missingMeter {
		return nil, errorf(CodeNotFound, field, "meter %q does not exist", k.Meter)
	}
	return nil, errorf(CodeTenantNotFound, "tenant", "tenant %q does not exist", k.Tenant)
}

func (m *machine) decideDebit(c *call) error {
	d := c.debit
	books := make([]*book, len(d.Items))
	for i := range d.Items {
		b, err := m.book(key{d.Tenant, d.Items[i].Meter, ""}, itemField(i, "meter"))
		if err != nil {
			c.err = err
			return nil
		}
		books[i] = b
	}
	if d.Suspended {
		c.err = errorf(CodeTenantSuspended, "tenant", "tenant %q is suspended", d.Tenant)
		return nil
	}
	// Meters of one debit differ, so its items touch different books and can all be checked before any is changed.
	for i, b := range books {
		denied, err := b.check(i, d.Items[i].Amount, later(m.now, b.updatedAt))
		if err != nil {
			return err
		}
		if denied != nil {
			denied.AsOf = later(m.now, b.updatedAt)
			c.err = denied
			if d.Items[i].StoreDenial && denied.Denial != nil {
				m.storeDenial(c, b, denied)
			}
			return nil
		}
	}
	for i, b := range books {
		if !b.canDraw(d.Items[i].Amount) {
			return errNotLoaded
		}
	}
	c.debitResult = m.draw(c, books)
	return nil
}

// draw takes the items from their books. It cannot fail: everything was checked.
func (m *machine) draw(c *call, books []*book) *DebitResult {
	d := c.debit
	first := len(m.journal.lines)
	result := &DebitResult{OperationID: d.Key, Tenant: d.Tenant, Items: make([]ItemResult, len(d.Items)), AsOf: m.now}
	for i, b := range books {
		amount := d.Items[i].Amount
		item := ItemResult{Meter: d.Items[i].Meter, Requested: amount, Charged: amount}
		at := len(m.journal.lines)
		b.take(amount, func(grantID string, source Source, part int64) {
			item.Draws = append(item.Draws, Draw{Grant: grantID, Source: source, Meter: b.Meter, Amount: part})
			m.journal.add(b, m.now, line{
				operationID: d.Key, line: int32(len(m.journal.lines)-first) + 1, kind: lineDebit,
				grantID: grantID, source: source, amount: part, item: int32(i),
			})
		})
		m.journal.lines[at].requested = &d.Items[i].Amount
		result.AsOf = later(result.AsOf, b.updatedAt)
		item.Position = b.position()
		result.Items[i] = item
	}
	m.seal(c, first)
	return result
}

// seal marks the lines from first on as one operation of c and remembers them for followers in the same batch.
func (m *machine) seal(c *call, first int) {
	lines := m.journal.lines[first:]
	lines[0].fingerprint = c.print[:]
	at := lines[0].createdAt
	for i := range lines {
		at = later(at, lines[i].createdAt)
	}
	for i := range lines {
		// One operation, one instant: the latest of its balances' clocks.
		lines[i].createdAt = at
		if c.debit != nil {
			lines[i].metadata = c.debit.Metadata
			if c.debit.Subject != "" {
				lines[i].opSubject = &c.debit.Subject
			}
		}
		if b := m.books[lines[i].key]; b.updatedAt.Before(at) {
			b.updatedAt = at
		}
	}
	m.stored[c.opKey()] = lines
}

func (m *machine) storeDenial(c *call, b *book, e *Error) {
	first := len(m.journal.lines)
	dn := e.Denial
	m.journal.add(b, m.now, line{
		operationID: c.debit.Key, line: 1, kind: lineDenial, item: int32(dn.Item), requested: &dn.Required,
		detail: mustJSON(denialDetail{
			Code: e.Code, Item: dn.Item, Kind: dn.Limiting.Kind, Level: dn.Limiting.Level, Required: dn.Required,
			Available: dn.Available, Limit: dn.Limit, ResetAt: pointerTo(dn.ResetAt), WouldSucceedAt: pointerTo(dn.WouldSucceedAt),
		}),
	})
	m.seal(c, first)
}

func (m *machine) decideGrant(c *call) error {
	g := c.grant
	b, failed := m.book(key{g.Tenant, g.Meter, g.Subject}, "meter")
	if failed != nil {
		c.err = failed
		return nil
	}
	if !b.loaded {
		return errNotLoaded
	}
	now := later(m.now, b.updatedAt)
	rec, failed := b.newGrant(g, now)
	if failed == nil && m.taken[grantKey{b.key, rec.ID}] {
		failed = errorf(CodeConflict, "grant_id", "grant %q exists already with another Idempotency-Key", rec.ID)
	}
	if failed != nil {
		c.err = failed
		return nil
	}
	first := len(m.journal.lines)
	kind := lineGrant
	if rec.Status == GrantPending {
		kind = lineSchedule
	} else {
		b.granted += rec.Amount
	}
	b.addGrant(&grant{GrantRecord: rec, isNew: true})
	b.settle()
	m.taken[grantKey{b.key, rec.ID}] = true
	m.journal.add(b, now, line{
		operationID: g.Key, line: 1, kind: kind, grantID: rec.ID, source: rec.Source, amount: rec.Amount,
		detail: mustJSON(grantDetail{
			Priority: rec.Priority, EffectiveAt: rec.EffectiveAt, ExpiresAt: pointerTo(rec.ExpiresAt),
			CostBasis: rec.CostBasis, Reason: rec.Reason,
		}),
	})
	m.seal(c, first)
	c.grantResult = &GrantResult{Grant: rec.public(), Position: b.position(), AsOf: b.updatedAt}
	return nil
}

// newGrant turns a request into a grant, or says why it cannot be issued.
func (b *book) newGrant(g *Grant, now time.Time) (GrantRecord, *Error) {
	rec := GrantRecord{
		Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject, ID: g.id(), Source: g.Source, Amount: g.Amount,
		Remaining: g.Amount, Priority: PriorityTopup, EffectiveAt: g.EffectiveAt, ExpiresAt: g.ExpiresAt,
		CostBasis: g.CostBasis, Reason: g.Reason, Status: GrantActive, OperationID: g.Key, CreatedAt: now,
	}
	switch {
	case g.Priority != nil:
		rec.Priority = *g.Priority
	case g.Source == SourcePromo:
		rec.Priority = PriorityPromo
	}
	if rec.ExpiresAt.IsZero() {
		rec.ExpiresAt = period.Forever
	}
	if rec.EffectiveAt.IsZero() || !rec.EffectiveAt.After(now) {
		rec.EffectiveAt = now
	} else {
		rec.Status = GrantPending
		rec.Remaining = 0
	}
	if !rec.ExpiresAt.After(now) || !rec.ExpiresAt.After(rec.EffectiveAt) {
		return rec, errorf(CodeInvalidArgument, "expires_at", "must be later than now and than effective_at")
	}
	open, total := 0, b.opening+b.granted
	for _, o := range b.grants {
		if o.Status == GrantActive || o.Status == GrantPending {
			open++
		}
		if o.Status == GrantPending {
			total = saturatingAdd(total, o.Amount)
		}
	}
	if open >= GrantsOpenMax {
		return rec, errorf(CodeConflict, "meter", "a balance has at most %d open grants", GrantsOpenMax)
	}
	if _, ok := addAmounts(total, g.Amount); !ok {
		return rec, errorf(CodeInvalidArgument, "amount", "would raise what the balance was granted above %d", MaxAmount)
	}
	return rec, nil
}

// public returns the record as callers see it: no sentinel for "never".
func (g GrantRecord) public() GrantRecord {
	if !g.ExpiresAt.Before(period.Forever) {
		g.ExpiresAt = time.Time{}
	}
	return g
}

// replay answers c from what is stored under its key.
func (m *machine) replay(c *call, lines []line) {
	if len(lines) == 0 || string(lines[0].fingerprint) != string(c.print[:]) {
		c.err = errorf(CodeIdempotencyKeyReused, "Idempotency-Key", "this key was used for another request of tenant %q", c.opKey().tenant)
		return
	}
	switch {
	case c.grant != nil:
		c.grantResult = m.replayGrant(&lines[0])
	case lines[0].kind == lineDenial:
		c.err = m.replayDenial(&lines[0])
	default:
		c.debitResult = m.replayDebit(c.debit, lines)
	}
}

func (m *machine) replayDebit(d *Debit, lines []line) *DebitResult {
	result := &DebitResult{OperationID: d.Key, Tenant: d.Tenant, AsOf: lines[0].createdAt, Replayed: true}
	for i := range lines {
		l := &lines[i]
		if int(l.item) == len(result.Items) {
			item := ItemResult{Meter: l.Meter}
			if l.requested != nil {
				item.Requested = *l.requested
			}
			if b, ok := m.books[key{d.Tenant, l.Meter, ""}]; ok {
				item.Position = b.position()
			}
			result.Items = append(result.Items, item)
		}
		item := &result.Items[len(result.Items)-1]
		item.Charged += l.amount
		item.Shortfall = item.Requested - item.Charged
		item.Draws = append(item.Draws, Draw{Grant: l.grantID, Source: l.source, Meter: l.Meter, Amount: l.amount})
		item.Remaining = l.remainingAfter
	}
	return result
}

func (m *machine) replayDenial(l *line) *Error {
	var stored denialDetail
	if err := json.Unmarshal(l.detail, &stored); err != nil {
		return &Error{Code: CodeInternal, Detail: "stored denial cannot be read", cause: err}
	}
	e := &Error{Code: stored.Code, Field: itemField(stored.Item, "amount"), Replayed: true, AsOf: l.createdAt, Denial: &Denial{
		Item: stored.Item, Required: stored.Required, Available: stored.Available, Limit: stored.Limit,
		Limiting: Limiting{Kind: stored.Kind, Meter: l.Meter, Subject: l.Subject, Level: stored.Level},
		ResetAt:  orZero(stored.ResetAt), WouldSucceedAt: orZero(stored.WouldSucceedAt),
	}}
	e.Detail = e.Denial.text()
	if !e.Denial.ResetAt.IsZero() {
		e.RetryAfter = max(e.Denial.ResetAt.Sub(m.now), time.Second)
	}
	return e
}

func (m *machine) replayGrant(l *line) *GrantResult {
	var facts grantDetail
	result := &GrantResult{AsOf: l.createdAt, Replayed: true}
	if err := json.Unmarshal(l.detail, &facts); err != nil {
		facts = grantDetail{}
	}
	rec := GrantRecord{
		Tenant: l.Tenant, Meter: l.Meter, Subject: l.Subject, ID: l.grantID, Source: l.source, Amount: l.amount,
		Remaining: l.amount, Priority: facts.Priority, EffectiveAt: facts.EffectiveAt, ExpiresAt: orZero(facts.ExpiresAt),
		CostBasis: facts.CostBasis, Reason: facts.Reason, Status: GrantActive, OperationID: l.operationID, CreatedAt: l.createdAt,
	}
	if l.kind == lineSchedule {
		rec.Status, rec.Remaining = GrantPending, 0
	}
	result.Grant = rec.public()
	if b, ok := m.books[l.key]; ok {
		result.Position = b.position()
	}
	result.Position.Remaining = l.remainingAfter
	return result
}
