package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
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

// GrantsOpenMax bounds the open grants of one balance: they are read and sorted whenever the head changes.
const GrantsOpenMax = 1000

// GrantStatus is where a grant stands.
type GrantStatus string

// The states of a grant: pending -> active -> exhausted | expired | voided. A refund makes an exhausted one active again.
const (
	GrantPending   GrantStatus = "pending"   // effective_at lies ahead
	GrantActive    GrantStatus = "active"    // can be drawn
	GrantExhausted GrantStatus = "exhausted" // nothing left
	GrantExpired   GrantStatus = "expired"
	GrantVoided    GrantStatus = "voided"
)

// Grant asks to issue units.
type Grant struct {
	Tenant      string
	Key         string
	Meter       string
	Subject     string // owner of the balance; '' = the tenant
	GrantID     string // '' = derived from Key
	Amount      int64
	Source      Source    // topup, promo or adjustment
	Priority    *int32    // nil = by source; 0..PriorityMax
	EffectiveAt time.Time // zero = now
	ExpiresAt   time.Time // exclusive; zero = never
	CostBasis   string    // what a unit cost, opaque to the ledger
	Reason      string
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

func (g *Grant) call() *call {
	return &call{id: opKey{g.Tenant, g.Key}, kind: KindGrant, print: g.fingerprint(), req: g}
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

func (g *Grant) validate() error {
	e := firstOf(validKey(g.Key), validID("tenant", g.Tenant), validID("meter", g.Meter), validSubject(g.Subject), validAmount("amount", g.Amount))
	switch {
	case e != nil:
		return e
	case g.GrantID != "" && !ValidID(g.GrantID):
		return validID("grant_id", g.GrantID)
	case ownGrantID(g.GrantID):
		return errorf(CodeInvalidArgument, "grant_id", "must not begin with %q or %q, nor be %q or %q and %d hexadecimal digits: so the ledger names its own grants",
			prefixAllowance, prefixRollover, prefixAdjustment, prefixRegrant, 2*derivedBytes)
	case g.Source != SourceTopup && g.Source != SourcePromo && g.Source != SourceAdjustment:
		return errorf(CodeInvalidArgument, "source", "must be topup, promo or adjustment")
	case g.Priority != nil && (*g.Priority < 0 || *g.Priority > PriorityMax):
		return errorf(CodeInvalidArgument, "priority", "must be an integer from 0 to %d", PriorityMax)
	}
	if e := firstOf(validInstant("effective_at", g.EffectiveAt), validInstant("expires_at", g.ExpiresAt),
		validFreeText("cost_basis", g.CostBasis), validFreeText("reason", g.Reason)); e != nil {
		return e
	}
	g.EffectiveAt, g.ExpiresAt = micros(g.EffectiveAt), micros(g.ExpiresAt)
	return nil
}

// id is the grant's id: the client's, or one derived from the key, so that a retry names the same grant.
func (g *Grant) id() string {
	if g.GrantID != "" {
		return g.GrantID
	}
	return derivedID("grant-", g.Key)
}

// The ids of the grants that the ledger issues by itself begin with these. A client that took the id of the next period's
// allowance would keep that period from ever being opened.
const (
	prefixAllowance  = "allowance:"
	prefixRollover   = "rollover:"
	prefixAdjustment = "adjustment-"
	prefixRegrant    = "regrant-"

	// derivedBytes is how much of a hash an id has. Within one balance 2^64 values do not meet by chance.
	derivedBytes = 8
)

// ownGrantID says whether the ledger may give id to a grant of its own. Clients may call theirs "adjustment-17".
func ownGrantID(id string) bool {
	if strings.HasPrefix(id, prefixAllowance) || strings.HasPrefix(id, prefixRollover) {
		return true
	}
	rest, derived := strings.CutPrefix(id, prefixAdjustment)
	if !derived {
		rest, derived = strings.CutPrefix(id, prefixRegrant)
	}
	return derived && len(rest) == 2*derivedBytes && strings.Trim(rest, "0123456789abcdef") == ""
}

func derivedID(prefix, from string) string {
	sum := sha256.Sum256([]byte(from))
	return prefix + hex.EncodeToString(sum[:derivedBytes])
}

func (g *Grant) balance() key { return key{g.Tenant, g.Meter, g.Subject} }

func (g *Grant) needs(*found) []need { return []need{{g.balance(), needAll}} }

func (g *Grant) decide(m *machine, c *call) error {
	b, failed := m.book(g.balance(), "meter")
	if failed != nil {
		c.fail(failed)
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
		c.fail(failed)
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
	position := b.position()
	m.journal.add(b, now, line{
		kind: kind, grantID: rec.ID, source: rec.Source, amount: rec.Amount,
		detail: mustJSON(grantDetail{
			Priority: rec.Priority, EffectiveAt: rec.EffectiveAt, ExpiresAt: pointerTo(rec.ExpiresAt),
			CostBasis: rec.CostBasis, Reason: rec.Reason, Limit: position.Limit, ResetAt: pointerTo(position.ResetAt),
		}),
	})
	m.seal(c, first, opMeta{})
	c.result = &GrantResult{Grant: rec.public(), Position: position, AsOf: b.updatedAt}
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
	return rec, b.roomForGrant(g.Amount)
}

// roomForGrant says why amount more cannot be granted, nil when it can.
func (b *book) roomForGrant(amount int64) *Error {
	open, total := 0, saturatingAdd(b.opening, b.granted)
	for _, o := range b.grants {
		if o.Status == GrantActive || o.Status == GrantPending {
			open++
		}
		if o.Status == GrantPending {
			total = saturatingAdd(total, o.Amount)
		}
	}
	if open >= GrantsOpenMax {
		return errorf(CodeConflict, "meter", "a balance has at most %d open grants", GrantsOpenMax)
	}
	if _, ok := addAmounts(saturatingAdd(total, max(0, b.adjusted)), amount); !ok {
		return errorf(CodeInvalidArgument, "amount", "would raise what the balance was granted above %d", MaxAmount)
	}
	return nil
}

// public returns the record as callers see it: no sentinel for "never".
func (g GrantRecord) public() GrantRecord {
	if !g.ExpiresAt.Before(period.Forever) {
		g.ExpiresAt = time.Time{}
	}
	return g
}

func (g *Grant) replay(_ *machine, c *call, stored []line) {
	l := &stored[0]
	var facts grantDetail
	if err := json.Unmarshal(l.detail, &facts); err != nil {
		c.fail(&Error{Code: CodeInternal, Detail: "stored grant cannot be read", cause: err})
		return
	}
	rec := GrantRecord{
		Tenant: l.Tenant, Meter: l.Meter, Subject: l.Subject, ID: l.grantID, Source: l.source, Amount: l.amount,
		Remaining: l.amount, Priority: facts.Priority, EffectiveAt: facts.EffectiveAt, ExpiresAt: orZero(facts.ExpiresAt),
		CostBasis: facts.CostBasis, Reason: facts.Reason, Status: GrantActive, OperationID: l.operationID, CreatedAt: l.createdAt,
	}
	if l.kind == lineSchedule {
		rec.Status, rec.Remaining = GrantPending, 0
	}
	c.result = &GrantResult{
		Grant: rec.public(), AsOf: l.createdAt, Replayed: true,
		Position: Position{Remaining: l.remainingAfter, Limit: facts.Limit, ResetAt: orZero(facts.ResetAt)},
	}
}
