package ledger

import (
	"encoding/json"
	"time"
)

// Kinds of lines. Every kind but schedule and denial moves the amount it carries.
const (
	lineDebit    = "debit"    // remaining -> used
	lineGrant    = "grant"    // a grant took effect
	lineExpire   = "expire"   // what was left of a grant at its expiry
	lineSchedule = "schedule" // a grant was issued that takes effect later; moves nothing
	lineDenial   = "denial"   // a denial stored for its key; moves nothing
)

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
func (j *journal) add(b *book, now time.Time, l line) *line {
	b.seq++
	b.updatedAt = later(b.updatedAt, now)
	b.dirty = true
	l.key = b.key
	l.seq = b.seq
	l.periodStart = b.start
	l.remainingAfter = b.remaining()
	l.createdAt = b.updatedAt
	j.lines = append(j.lines, l)
	return &j.lines[len(j.lines)-1]
}

// system appends a line of the ledger's own, due at due.
func (j *journal) system(b *book, kind, operationID string, g *grant, amount int64, due, now time.Time) {
	effective := due
	j.add(b, now, line{
		operationID: operationID, line: 1, kind: kind,
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
}

// denialDetail is what a stored denial remembers.
type denialDetail struct {
	Code           Code       `json:"code"`
	Item           int        `json:"item"`
	Kind           string     `json:"kind"`
	Level          string     `json:"level"`
	Required       int64      `json:"required"`
	Available      int64      `json:"available"`
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
