package ledger

import (
	"encoding/json"
	"time"
)

// Kinds of lines, and what their amount moves.
const (
	lineGrant        = "grant"         // -> remaining: a grant took effect
	lineDebit        = "debit"         // remaining -> used
	lineOverage      = "overage"       // -> overage: use that no grant pays
	lineRefund       = "refund"        // -> remaining: a debit is taken back
	lineUnoverage    = "unoverage"     // overage ->: overage is taken back
	lineForgive      = "forgive"       // nothing: what the period's overage came to is forgiven with its end
	lineOwe          = "owe"           // -> overage, owed: overage of earlier periods that is still owed
	lineSettle       = "settle"        // remaining -> used, overage and owed ->: the new allowance pays what was owed
	lineUnowe        = "unowe"         // overage and owed ->: overage of an earlier period is taken back before it is paid
	lineUnsettle     = "unsettle"      // -> remaining, refunded: and after
	lineClosedRefund = "closed_refund" // nothing: overage of a closed period is taken back that nobody owes any more
	lineExpire       = "expire"        // remaining -> expired: what was left of a grant
	lineVoid         = "void"          // remaining ->, adjusted: a grant was taken back
	lineAdjustUp     = "adjust_up"     // -> remaining, adjusted
	lineAdjustDown   = "adjust_down"   // remaining ->, adjusted
	lineHold         = "hold"          // remaining -> held
	lineCapture      = "capture"       // held -> used
	lineRelease      = "release"       // held -> remaining: released, expired, or not captured
	lineRolloverOut  = "rollover_out"  // nothing: units leave a closing period's grant
	lineRolloverIn   = "rollover_in"   // nothing: for one of the next period
	lineSchedule     = "schedule"      // nothing: a grant was issued that takes effect later
	lineExtend       = "extend"        // nothing: a hold lasts longer
	lineDenial       = "denial"        // nothing: a denial stored for its key
)

// EntryKinds lists the kinds of entries.
func EntryKinds() []string {
	return []string{
		lineGrant, lineDebit, lineOverage, lineRefund, lineUnoverage, lineForgive, lineOwe, lineSettle,
		lineUnowe, lineUnsettle, lineClosedRefund, lineExpire, lineVoid, lineAdjustUp, lineAdjustDown, lineHold,
		lineCapture, lineRelease, lineRolloverOut, lineRolloverIn, lineSchedule, lineExtend, lineDenial,
	}
}

// line is one row of entries.
type line struct {
	key
	operationID    string
	line           int32
	seq            int64
	kind           string
	periodStart    time.Time
	grantID        string
	source         Source
	amount         int64
	remainingAfter int64
	item           int32
	requested      *int64
	fingerprint    []byte
	createdAt      time.Time
	effectiveAt    *time.Time
	opSubject      *string
	detail         []byte
	metadata       []byte
}

// journal collects the lines of a batch in order.
type journal struct{ lines []line }

// add appends l as the book's next line. The caller has applied the amount already: remaining_after is read here.
func (j *journal) add(b *book, now time.Time, l line) {
	b.seq++
	b.updatedAt = later(b.updatedAt, now)
	b.dirty = true
	l.key = b.key
	l.seq = b.seq
	l.periodStart = b.start
	l.remainingAfter = b.remaining()
	l.createdAt = b.updatedAt
	j.lines = append(j.lines, l)
}

// system appends a line of the ledger's own, due at due.
func (j *journal) system(b *book, kind, operationID string, number int32, g *grant, amount int64, due, now time.Time) {
	effective := due
	j.add(b, now, line{
		operationID: operationID, line: number, kind: kind,
		grantID: g.ID, source: g.Source, amount: amount, effectiveAt: &effective,
	})
}

// grantDetail is what the line of an issued grant remembers, so that a replay needs no other table.
type grantDetail struct {
	Priority    int32      `json:"priority"`
	EffectiveAt time.Time  `json:"effective_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	CostBasis   string     `json:"cost_basis,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Limit       int64      `json:"limit"` // Position.Limit and ResetAt of the answer
	ResetAt     *time.Time `json:"reset_at,omitempty"`
}

// denialDetail is what a stored denial remembers.
type denialDetail struct {
	Code           Code       `json:"code"`
	Item           int        `json:"item"`
	Kind           string     `json:"kind"`
	Level          string     `json:"level"`
	Subject        string     `json:"subject,omitempty"`
	Required       int64      `json:"required"`
	Available      int64      `json:"available"`
	Remaining      int64      `json:"remaining"`
	Limit          int64      `json:"limit"`
	ResetAt        *time.Time `json:"reset_at,omitempty"`
	WouldSucceedAt *time.Time `json:"would_succeed_at,omitempty"`
}

// mustJSON encodes a struct of plain fields, which cannot fail.
func mustJSON(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic("ledger: encode journal detail: " + err.Error())
	}
	return out
}

func pointerTo(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func replayDenial(l *line, now time.Time) *Error {
	var stored denialDetail
	if err := json.Unmarshal(l.detail, &stored); err != nil {
		return &Error{Code: CodeInternal, Detail: "stored denial cannot be read", cause: err}
	}
	e := &Error{Code: stored.Code, Field: itemField(stored.Item, "amount"), Replayed: true, AsOf: l.createdAt, Denial: &Denial{
		Item: stored.Item, Required: stored.Required, Available: stored.Available, Remaining: stored.Remaining, Limit: stored.Limit,
		Limiting: Limiting{Kind: stored.Kind, Meter: l.Meter, Subject: stored.Subject, Level: stored.Level},
		ResetAt:  orZero(stored.ResetAt), WouldSucceedAt: orZero(stored.WouldSucceedAt),
	}}
	e.Detail = e.Denial.text()
	if !e.Denial.ResetAt.IsZero() {
		e.RetryAfter = max(e.Denial.ResetAt.Sub(now), time.Second)
	}
	return e
}
