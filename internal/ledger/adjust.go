package ledger

import (
	"encoding/json"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// Adjust corrects a balance by hand: up by a grant of source adjustment, down by drawing in burn order.
type Adjust struct {
	Tenant  string
	Key     string
	Meter   string
	Subject string
	Amount  int64  // not 0; -MaxAmount..MaxAmount
	Reason  string // required
	// IfSeq, when not nil, refuses the adjustment unless the balance's newest entry has this seq.
	IfSeq *int64
}

// Void takes back what is left of a grant. What was drawn from it stays drawn, what is held on it stays held.
type Void struct {
	Tenant  string
	Key     string
	GrantID string
	Meter   string // needed only where several meters have a grant of this id; '' = any
	Reason  string // required
}

// Change is the answer to an adjustment or a void.
type Change struct {
	OperationID string    `json:"operation_id"`
	Tenant      string    `json:"tenant"`
	Meter       string    `json:"meter"`
	Subject     string    `json:"subject,omitempty"`
	Grant       string    `json:"grant,omitempty"` // voided, or issued by an adjustment
	Amount      int64     `json:"amount"`          // by which remaining changed
	Before      int64     `json:"before"`          // remaining
	Remaining   int64     `json:"remaining"`
	Seq         int64     `json:"seq"`
	AsOf        time.Time `json:"as_of"`
	Limit       int64     `json:"-"`
	ResetAt     time.Time `json:"-"`
	Replayed    bool      `json:"-"`
}

type changeDetail struct {
	Reason string          `json:"reason"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

func validReason(s string) *Error {
	if s == "" {
		return errorf(CodeInvalidArgument, "reason", "must have 1 to %d bytes", TextMax)
	}
	return validFreeText("reason", s)
}

func (a *Adjust) validate() error {
	if a.Amount == 0 || a.Amount < -MaxAmount || a.Amount > MaxAmount {
		return errorf(CodeInvalidArgument, "amount", "must be an integer from -%d to %d, not 0", MaxAmount, MaxAmount)
	}
	return firstOf(validKey(a.Key), validID("tenant", a.Tenant), validID("meter", a.Meter), validSubject(a.Subject), validReason(a.Reason))
}

func (v *Void) validate() error {
	if v.Meter != "" {
		if e := validID("meter", v.Meter); e != nil {
			return e
		}
	}
	return firstOf(validKey(v.Key), validID("tenant", v.Tenant), validID("grant_id", v.GrantID), validReason(v.Reason))
}

func (a *Adjust) call() *call {
	h := hasher{}
	h.text("adjust/1").text(a.Tenant).text(a.Meter).text(a.Subject).number(a.Amount).text(a.Reason)
	return &call{id: opKey{a.Tenant, a.Key}, kind: KindAdjust, print: h.sum(), req: a}
}

func (v *Void) call() *call {
	h := hasher{}
	h.text("void/1").text(v.Tenant).text(v.GrantID).text(v.Meter).text(v.Reason)
	return &call{id: opKey{v.Tenant, v.Key}, kind: KindVoid, print: h.sum(), req: v}
}

func (a *Adjust) needs(*found) []need { return []need{{key{a.Tenant, a.Meter, a.Subject}, needAll}} }

func (a *Adjust) decide(m *machine, c *call) error {
	b, failed := m.book(key{a.Tenant, a.Meter, a.Subject}, "meter")
	if failed != nil {
		c.fail(failed)
		return nil
	}
	if !b.loaded {
		return errNotLoaded
	}
	out := Change{OperationID: a.Key, Tenant: a.Tenant, Meter: a.Meter, Subject: a.Subject, Amount: a.Amount, Before: b.remaining()}
	switch {
	case a.IfSeq != nil && *a.IfSeq != b.seq:
		failed = errorf(CodeConflict, "If-Match", "the balance has seq %d by now", b.seq)
	case a.Amount > 0 && m.taken[grantKey{b.key, a.grantID()}]:
		// The key is older than keys are remembered; the grant it was used for is still there.
		failed = errorf(CodeConflict, "Idempotency-Key", "was used for grant %q, longer ago than keys are remembered: use a new one", a.grantID())
	case a.Amount > 0:
		failed = b.roomForGrant(a.Amount)
	case -a.Amount > b.remaining():
		failed = errorf(CodeConflict, "amount", "%d are left of meter %q, less than is to be taken off", b.remaining(), a.Meter)
	}
	if failed != nil {
		c.fail(failed)
		return nil
	}
	first := len(m.journal.lines)
	if a.Amount > 0 {
		out.Grant = a.grantID()
		a.up(m, b, out.Grant)
		m.taken[grantKey{b.key, out.Grant}] = true
	} else {
		b.takeAs(-a.Amount, func(grantID string, source Source, part int64) {
			b.adjusted -= part
			m.journal.add(b, m.now, line{kind: lineAdjustDown, grantID: grantID, source: source, amount: part})
		})
	}
	m.answerChange(c, b, first, &out, a.Reason)
	return nil
}

// grantID names the grant of an adjustment upwards.
func (a *Adjust) grantID() string { return derivedID(prefixAdjustment, a.Key) }

func (a *Adjust) up(m *machine, b *book, id string) {
	now := later(m.now, b.updatedAt)
	b.addGrant(&grant{isNew: true, GrantRecord: GrantRecord{
		Tenant: a.Tenant, Meter: a.Meter, Subject: a.Subject, ID: id, Source: SourceAdjustment, Amount: a.Amount,
		Remaining: a.Amount, Priority: PriorityTopup, EffectiveAt: now, ExpiresAt: period.Forever, Reason: a.Reason,
		Status: GrantActive, OperationID: a.Key, CreatedAt: now,
	}})
	b.adjusted += a.Amount
	b.settle()
	m.journal.add(b, now, line{kind: lineAdjustUp, grantID: id, source: SourceAdjustment, amount: a.Amount})
}

// answerChange completes the operation: the answer, and its copy on the first line for replays.
func (m *machine) answerChange(c *call, b *book, first int, out *Change, reason string) {
	m.seal(c, first, opMeta{})
	p := b.position()
	out.Remaining, out.Limit, out.ResetAt, out.Seq, out.AsOf = p.Remaining, p.Limit, p.ResetAt, b.seq, m.journal.lines[first].createdAt
	m.journal.lines[first].detail = mustJSON(changeDetail{Reason: reason, Answer: mustJSON(out)})
	c.result = out
}

func (a *Adjust) replay(m *machine, c *call, stored []line) { replayChange(m, c, stored) }
func (v *Void) replay(m *machine, c *call, stored []line)   { replayChange(m, c, stored) }

func replayChange(m *machine, c *call, stored []line) {
	var d changeDetail
	out := &Change{Replayed: true}
	err := json.Unmarshal(stored[0].detail, &d)
	if err == nil {
		err = json.Unmarshal(d.Answer, out)
	}
	if err != nil {
		c.fail(&Error{Code: CodeInternal, Detail: "the stored answer cannot be read", cause: err})
		return
	}
	p := m.position(stored[0].key)
	out.Limit, out.ResetAt = p.Limit, p.ResetAt
	c.result = out
}

// homeKey names a grant without saying whose balance it is on.
type homeKey struct{ tenant, grantID string }

func (v *Void) homes(f *found) []key {
	var out []key
	for _, k := range f.grants[homeKey{v.Tenant, v.GrantID}] {
		if v.Meter == "" || k.Meter == v.Meter {
			out = append(out, k)
		}
	}
	return out
}

func (v *Void) needs(f *found) []need {
	var out []need
	for _, k := range v.homes(f) {
		out = append(out, need{k, needAll})
	}
	return out
}

func (v *Void) decide(m *machine, c *call) error {
	homes := v.homes(&m.found)
	switch len(homes) {
	case 0:
		c.fail(errorf(CodeGrantNotFound, "grant_id", "tenant %q has no grant %q", v.Tenant, v.GrantID))
		return nil
	case 1:
	default:
		c.fail(errorf(CodeInvalidArgument, "meter", "%d balances have a grant %q: name the meter", len(homes), v.GrantID))
		return nil
	}
	b, failed := m.book(homes[0], "grant_id")
	if failed != nil {
		c.fail(failed)
		return nil
	}
	if !b.loaded {
		return errNotLoaded
	}
	for _, g := range b.grants {
		if g.ID == v.GrantID && (g.Status == GrantActive || g.Status == GrantPending) && (g.Remaining > 0 || g.Status == GrantPending || g.Held > 0) {
			v.void(m, c, b, g)
			return nil
		}
	}
	c.fail(errorf(CodeConflict, "grant_id", "nothing is left of grant %q to take back", v.GrantID))
	return nil
}

func (v *Void) void(m *machine, c *call, b *book, g *grant) {
	left := g.Remaining
	out := Change{OperationID: v.Key, Tenant: v.Tenant, Meter: b.Meter, Subject: b.Subject, Grant: g.ID, Amount: -left, Before: b.remaining()}
	first := len(m.journal.lines)
	b.setRemaining(g, 0)
	g.Status, g.dirty = GrantVoided, true
	b.adjusted -= left
	b.settle()
	m.journal.add(b, m.now, line{kind: lineVoid, grantID: g.ID, source: g.Source, amount: left})
	m.answerChange(c, b, first, &out, v.Reason)
}
