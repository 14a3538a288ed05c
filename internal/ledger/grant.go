package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Source is the origin of a grant.
type Source string

// The sources of grants. Clients issue topup, promo and adjustment. The ledger issues the others.
const (
	SourceAllowance  Source = "allowance"
	SourceTopup      Source = "topup"
	SourcePromo      Source = "promo"
	SourceRollover   Source = "rollover"
	SourceRefund     Source = "refund"
	SourceAdjustment Source = "adjustment"
)

// Default priorities of grants, and the largest priority. A lower priority burns first. An allowance expires with its
// period, so it burns before promotional units, and these burn before paid units.
const (
	PriorityAllowance int32 = 10
	PriorityPromo     int32 = 50
	PriorityTopup     int32 = 100
	PriorityMax       int32 = 1000
)

const (
	// GrantsOpenMax bounds the open grants of one balance, because they are read and sorted whenever the head changes.
	// Units that return as a grant of their own may go beyond it: a refund or a release is never refused for it.
	GrantsOpenMax = 1000

	// GrantsOpenNear is the number of open grants that is announced. From there on, 200 more fit.
	GrantsOpenNear = 800
)

// GrantStatus is the state of a grant.
type GrantStatus string

// The states of a grant: pending -> active -> exhausted | expired | voided. A refund makes an exhausted grant active
// again.
const (
	GrantPending   GrantStatus = "pending"   // effective_at is in the future
	GrantActive    GrantStatus = "active"    // can be drawn
	GrantExhausted GrantStatus = "exhausted" // nothing left
	GrantExpired   GrantStatus = "expired"
	GrantVoided    GrantStatus = "voided"
)

// Grant requests to issue units.
type Grant struct {
	Tenant      string
	Key         string
	Meter       string
	Subject     string // owner of the balance; empty: the tenant
	GrantID     string // empty: derived from Key
	Amount      int64
	Source      Source    // topup, promo or adjustment
	Priority    *int32    // 0..PriorityMax; nil: by source
	EffectiveAt time.Time // zero: now
	ExpiresAt   time.Time // exclusive; zero: never
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
	ExpiresAt                  time.Time // zero: never
	CostBasis, Reason          string
	Status                     GrantStatus
	OperationID                string
	CreatedAt                  time.Time
}

// OpenGrant is a grant of a book, with its changes since it was read.
type OpenGrant struct {
	GrantRecord

	Extended bool // its end was moved to a later instant since it was read or issued

	isNew   bool
	changed bool
	wasOnce bool // see knowOnce
}

// GrantResult is the answer to a grant that was issued, now or earlier.
type GrantResult struct {
	Grant    GrantRecord
	Position Position
	AsOf     time.Time
	Replayed bool
}

// ID implements Operation.
func (g *Grant) ID() OperationID { return OperationID{g.Tenant, g.Key} }

// Kind implements Operation.
func (g *Grant) Kind() Kind { return KindGrant }

// Targets implements Operation. It adds the grant to be issued.
func (g *Grant) Targets(t *Targets) {
	if g.GrantID != "" {
		t.NewGrants = append(t.NewGrants, GrantKey{g.balance(), g.id()})
	} else {
		t.KeyGrants = append(t.KeyGrants, GrantKey{g.balance(), g.id()})
	}
}

// Demand implements Operation.
func (g *Grant) Demand(*Located) []Demand { return []Demand{{g.balance(), DemandAll}} }

func (g *Grant) balance() BalanceKey { return BalanceKey{g.Tenant, g.Meter, g.Subject} }

func (g *Grant) answers(*GrantResult) {}

func (g *Grant) fingerprint() [16]byte {
	h := appendTexts(nil, "grant/1", g.Tenant, g.Meter, g.Subject, g.GrantID)
	h = appendTexts(binary.AppendVarint(h, g.Amount), string(g.Source))
	if g.Priority != nil {
		h = binary.AppendVarint(appendTexts(h, "priority"), int64(*g.Priority))
	}
	h = appendInstant(appendInstant(h, g.EffectiveAt), g.ExpiresAt)
	return fingerprintOf(appendTexts(h, g.CostBasis, g.Reason))
}

// Validate implements Operation. It cuts instants to PostgreSQL's resolution.
func (g *Grant) Validate() error {
	e := FirstOf(validKey(g.Key), ValidateName("tenant", g.Tenant), ValidateID("meter", g.Meter), ValidateSubject(g.Subject), validAmount("amount", g.Amount))
	switch {
	case e != nil:
		return e
	case g.GrantID != "" && !bound.Name(g.GrantID):
		return ValidateName("grant_id", g.GrantID)
	case ownGrantID(g.GrantID):
		return errcode.Errorf(errcode.InvalidArgument, "grant_id", "must not begin with %q or %q, and must not be %q or %q with %d hexadecimal digits: these ids are reserved for the ledger",
			prefixAllowance, prefixRollover, prefixAdjustment, prefixRegrant, 2*derivedBytes)
	case g.Source != SourceTopup && g.Source != SourcePromo && g.Source != SourceAdjustment:
		return errcode.Errorf(errcode.InvalidArgument, "source", "must be topup, promo or adjustment")
	case g.Priority != nil && (*g.Priority < 0 || *g.Priority > PriorityMax):
		return errcode.Errorf(errcode.InvalidArgument, "priority", "must be an integer from 0 to %d", PriorityMax)
	}
	if e := FirstOf(ValidateInstant("effective_at", g.EffectiveAt), ValidateInstant("expires_at", g.ExpiresAt),
		validFreeText("cost_basis", g.CostBasis), validFreeText("reason", g.Reason)); e != nil {
		return e
	}
	g.EffectiveAt, g.ExpiresAt = period.Micros(g.EffectiveAt), period.Micros(g.ExpiresAt)
	return nil
}

// id returns the id that the client chose, or an id derived from the key, so that a retry names the same grant.
func (g *Grant) id() string {
	if g.GrantID != "" {
		return g.GrantID
	}
	return derivedID("grant-", g.Key)
}

// Prefixes of the ids of grants that the ledger issues. If a client could take the id of the next allowance, the next
// period could never be opened.
const (
	prefixAllowance  = "allowance:"
	prefixRollover   = "rollover:"
	prefixAdjustment = "adjustment-"
	prefixRegrant    = "regrant-"

	// derivedBytes is the number of hash bytes in an id. 2^64 values are enough to be unique within a balance.
	derivedBytes = 8
)

// ownGrantID reports whether the ledger may use id for a grant that it issues. An id like "adjustment-17" is free for
// clients.
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

func (g *Grant) decide(b *Batch, c *Call) error {
	book, refused, err := b.loadedBook(g.balance())
	if err != nil {
		return err
	}
	if refused != nil {
		return c.refuse(refused)
	}
	now := period.Later(b.Now, book.UpdatedAt)
	rec, refused := book.newGrant(g, now)
	key := GrantKey{book.BalanceKey, rec.ID}
	// An id that exists is named before the bounds: whoever reports a payment twice learns that it was credited.
	if b.Targets.Taken[key] && (refused == nil || refused.Code != errcode.InvalidArgument) {
		refused = errcode.Errorf(errcode.Conflict, "grant_id", "grant %q exists already with another Idempotency-Key", rec.ID)
	}
	if refused != nil {
		return c.refuse(refused)
	}
	first := len(b.journal)
	kind := EntryGrant
	if rec.Status == GrantPending {
		kind = EntrySchedule
	}
	book.addGrant(&OpenGrant{GrantRecord: rec, isNew: true})
	book.refresh()
	b.Targets.Taken[key] = true
	b.enter(book, Entry{Kind: kind, Grant: rec.ID, Source: rec.Source, Amount: rec.Amount})
	position := book.Position()
	b.finish(c, first, "", nil).Detail = mustJSON(grantDetail{
		Priority: rec.Priority, EffectiveAt: rec.EffectiveAt, ExpiresAt: period.OrNil(rec.ExpiresAt),
		CostBasis: rec.CostBasis, Reason: rec.Reason, Limit: position.Limit, ResetAt: period.OrNil(position.ResetAt),
	})
	c.Answer = &GrantResult{Grant: rec.Public(), Position: position, AsOf: book.UpdatedAt}
	return nil
}

// newGrant turns a request into a grant, or returns why it cannot be issued.
func (b *Book) newGrant(g *Grant, now time.Time) (GrantRecord, *errcode.Error) {
	rec := GrantRecord{
		Tenant: g.Tenant, Meter: g.Meter, Subject: g.Subject, ID: g.id(), Source: g.Source, Amount: g.Amount,
		Remaining: g.Amount, Priority: PriorityTopup, EffectiveAt: g.EffectiveAt, ExpiresAt: period.OrForever(g.ExpiresAt),
		CostBasis: g.CostBasis, Reason: g.Reason, Status: GrantActive, OperationID: g.Key, CreatedAt: now,
	}
	switch {
	case g.Priority != nil:
		rec.Priority = *g.Priority
	case g.Source == SourcePromo:
		rec.Priority = PriorityPromo
	}
	if rec.EffectiveAt.IsZero() || !rec.EffectiveAt.After(now) {
		rec.EffectiveAt = now
	} else {
		rec.Status = GrantPending
		rec.Remaining = 0
	}
	if !rec.ExpiresAt.After(now) || !rec.ExpiresAt.After(rec.EffectiveAt) {
		return rec, errcode.Errorf(errcode.InvalidArgument, "expires_at", "must be later than now and than effective_at")
	}
	return rec, b.roomForGrant(g.Amount)
}

// roomForGrant returns the reason why the balance cannot receive amount, nil when it can.
func (b *Book) roomForGrant(amount int64) *errcode.Error {
	total := bound.SaturatingAdd(b.Opening, b.Granted)
	for _, o := range b.Grants {
		if o.Status == GrantPending {
			total = bound.SaturatingAdd(total, o.Amount)
		}
	}
	if bound.SaturatingAdd(total, max(0, b.Adjusted)) > MaxAmount-amount {
		return errcode.Errorf(errcode.InvalidArgument, "amount", "would raise what the balance was granted above %d", MaxAmount)
	}
	if b.openGrants() >= GrantsOpenMax {
		return errcode.Errorf(errcode.TooManyGrants, "meter", "a balance has at most %d open grants", GrantsOpenMax)
	}
	if amount > b.room() {
		return errcode.Errorf(errcode.AmountOutOfRange, "amount", "would raise what the balance has above %d", MaxAmount)
	}
	return nil
}

// Public returns the record as callers see it: a grant that never expires has a zero ExpiresAt.
func (g GrantRecord) Public() GrantRecord {
	if !g.ExpiresAt.Before(period.Forever) {
		g.ExpiresAt = time.Time{}
	}
	return g
}

// At returns the grant as it is at the instant `now`, even if the ledger has not yet written its start or its end.
func (g GrantRecord) At(now time.Time) GrantRecord {
	g.EffectiveAt, g.ExpiresAt, g.CreatedAt = g.EffectiveAt.UTC(), g.ExpiresAt.UTC(), g.CreatedAt.UTC()
	if g.Status == GrantPending && !g.EffectiveAt.After(now) {
		g.Status, g.Remaining = GrantActive, g.Amount
	}
	if g.Status == GrantActive && !g.ExpiresAt.After(now) {
		g.Status, g.Remaining = GrantExpired, 0
	}
	if g.Status == GrantActive && g.Remaining == 0 && g.Held == 0 {
		g.Status = GrantExhausted
	}
	return g.Public()
}

// grantDetail is the detail of an issued grant's entry. The answer can be rebuilt from the entry alone.
type grantDetail struct {
	Priority    int32      `json:"priority"`
	EffectiveAt time.Time  `json:"effective_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	CostBasis   string     `json:"cost_basis,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Limit       int64      `json:"limit"` // Position.Limit and ResetAt of the answer
	ResetAt     *time.Time `json:"reset_at,omitempty"`
}

func (g *Grant) rebuild(stored []Entry) (answer, error) {
	e := &stored[0]
	var facts grantDetail
	if err := json.Unmarshal(e.Detail, &facts); err != nil {
		return nil, err
	}
	rec := GrantRecord{
		Tenant: e.Tenant, Meter: e.Meter, Subject: e.Subject, ID: e.Grant, Source: e.Source, Amount: e.Amount,
		Remaining: e.Amount, Priority: facts.Priority, EffectiveAt: facts.EffectiveAt, ExpiresAt: period.OrZero(facts.ExpiresAt),
		CostBasis: facts.CostBasis, Reason: facts.Reason, Status: GrantActive, OperationID: e.OperationID, CreatedAt: e.CreatedAt,
	}
	if e.Kind == EntrySchedule {
		rec.Status, rec.Remaining = GrantPending, 0
	}
	return &GrantResult{
		Grant: rec.Public(), AsOf: e.CreatedAt,
		Position: Position{Remaining: e.RemainingAfter, Limit: facts.Limit, ResetAt: period.OrZero(facts.ResetAt)},
	}, nil
}

func (r *GrantResult) replay(*Batch) { r.Replayed = true }
