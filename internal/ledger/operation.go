package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Kind says what an operation does.
type Kind string

// The kinds of client operations.
const (
	KindDebit Kind = "debit"
	KindGrant Kind = "grant"
)

// Source says where a grant came from.
type Source string

// The sources of grants. Clients issue topup, promo and adjustment; the ledger issues the others itself.
const (
	SourceAllowance  Source = "allowance"
	SourceTopup      Source = "topup"
	SourcePromo      Source = "promo"
	SourceRollover   Source = "rollover"
	SourceRefund     Source = "refund"
	SourceAdjustment Source = "adjustment"
)

// Priorities of grants when the client names none; lower burns first. An allowance is lost at the period's end, so it burns
// before what was given away, and that before what was paid for.
const (
	PriorityAllowance int32 = 10
	PriorityPromo     int32 = 50
	PriorityTopup     int32 = 100
	PriorityMax       int32 = 1000
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

// Debit asks to use units. All items succeed or none does.
type Debit struct {
	Tenant   string
	Key      string // Idempotency-Key, 1..KeyMax visible ASCII bytes; also the operation id
	Subject  string // recorded with the entries; '' = none
	Items    []Item // 1..ItemsMax, each meter once
	Metadata []byte // JSON object or nil, kept with the entries
	// Suspended makes the ledger refuse the debit unless it is a replay.
	Suspended bool
	// Scope tells endpoints apart that share a key space; it is part of the fingerprint.
	Scope string
}

// Grant asks to issue units.
type Grant struct {
	Tenant      string
	Key         string
	Meter       string
	Subject     string // owner of the balance; '' = the tenant
	GrantID     string // '' = chosen by the ledger
	Amount      int64
	Source      Source    // topup, promo or adjustment
	Priority    *int32    // nil = by source; 0..PriorityMax
	EffectiveAt time.Time // zero = now
	ExpiresAt   time.Time // exclusive; zero = never
	CostBasis   string    // what a unit cost, opaque to the ledger
	Reason      string
}

// id is the grant's id: the client's, or one derived from the key, so that a retry names the same grant.
func (g *Grant) id() string {
	if g.GrantID != "" {
		return g.GrantID
	}
	sum := sha256.Sum256([]byte(g.Key))
	return "grant-" + hex.EncodeToString(sum[:8])
}

// Draw is the part of an item that one grant paid.
type Draw struct {
	Grant  string
	Source Source
	Meter  string
	Amount int64
}

// Position is where a balance stands after an operation.
type Position struct {
	Remaining int64
	// Limit is used + held + remaining of the open period: what could be used in all.
	Limit   int64
	ResetAt time.Time // the period's end; zero when the period has none
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

// GrantRecord is a grant as it is stored.
type GrantRecord struct {
	Tenant, Meter, Subject, ID string
	Source                     Source
	Amount                     int64
	Remaining                  int64
	Held                       int64
	Priority                   int32
	EffectiveAt                time.Time
	ExpiresAt                  time.Time // zero = never
	CostBasis, Reason          string
	Status                     GrantStatus
	OperationID                string
	CreatedAt                  time.Time
}

// GrantResult is the answer to a grant that was issued, now or earlier.
type GrantResult struct {
	Grant    GrantRecord
	Position Position
	AsOf     time.Time
	Replayed bool
}

// fingerprint identifies a request regardless of who asks when: it hashes what the client sent, length-prefixed, never
// anything derived from state.
type fingerprint [16]byte

type hasher struct{ buf []byte }

func (h *hasher) text(s string) *hasher {
	h.buf = binary.AppendUvarint(h.buf, uint64(len(s)))
	h.buf = append(h.buf, s...)
	return h
}

func (h *hasher) number(n int64) *hasher {
	h.buf = binary.AppendVarint(h.buf, n)
	return h
}

func (h *hasher) instant(t time.Time) *hasher {
	if t.IsZero() {
		return h.number(-1)
	}
	return h.number(t.UnixMicro())
}

func (h *hasher) sum() fingerprint {
	full := sha256.Sum256(h.buf)
	return fingerprint(full[:16])
}

func (d *Debit) fingerprint() fingerprint {
	h := hasher{buf: make([]byte, 0, 192)}
	h.text("debit/1").text(d.Scope).text(d.Tenant).text(d.Subject).text(string(d.Metadata)).number(int64(len(d.Items)))
	for i := range d.Items {
		h.text(d.Items[i].Meter).number(d.Items[i].Amount)
	}
	return h.sum()
}

func (g *Grant) fingerprint() fingerprint {
	h := hasher{buf: make([]byte, 0, 256)}
	h.text("grant/1").text(g.Tenant).text(g.Meter).text(g.Subject).text(g.GrantID).number(g.Amount).text(string(g.Source))
	if g.Priority != nil {
		h.text("priority").number(int64(*g.Priority))
	}
	h.instant(g.EffectiveAt).instant(g.ExpiresAt).text(g.CostBasis).text(g.Reason)
	return h.sum()
}

// GrantStatus is where a grant stands.
type GrantStatus string

// The states of a grant: pending -> active -> exhausted | expired | voided.
const (
	GrantPending   GrantStatus = "pending"   // effective_at lies ahead
	GrantActive    GrantStatus = "active"    // can be drawn
	GrantExhausted GrantStatus = "exhausted" // nothing left
	GrantExpired   GrantStatus = "expired"
	GrantVoided    GrantStatus = "voided"
)
