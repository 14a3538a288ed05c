package ledger

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Adjust corrects a balance by hand. A positive amount issues a grant of source adjustment. A negative amount draws
// units from the grants in burn order.
type Adjust struct {
	Tenant  string
	Key     string
	Meter   string
	Subject string
	Amount  int64  // not 0; -MaxAmount..MaxAmount
	Reason  string // required
	// If IfSeq is not nil, the adjustment is refused unless the newest entry of the balance has this seq.
	IfSeq *int64
}

// Change is the answer to an adjustment or to a change of a grant.
type Change struct {
	OperationID string    `json:"operation_id"`
	Tenant      string    `json:"tenant"`
	Meter       string    `json:"meter"`
	Subject     string    `json:"subject,omitempty"`
	Grant       string    `json:"grant,omitempty"` // the grant that was changed, or that an adjustment issued
	Amount      int64     `json:"amount"`          // change of remaining
	Before      int64     `json:"before"`          // remaining before the change
	Remaining   int64     `json:"remaining"`
	Seq         int64     `json:"seq"`
	AsOf        time.Time `json:"as_of"`
	Limit       int64     `json:"-"`
	ResetAt     time.Time `json:"-"`
	Replayed    bool      `json:"-"`
	// Was is the status that a changed grant had before. Replays leave it empty.
	Was GrantStatus `json:"-"`

	// These fields are set only if a grant was extended. Ended and ExpiresAt are the grant's end before and after the
	// extension (nil: no end). Units is the number of units that can be drawn from the grant until the new end. Held
	// is the number of the grant's units on hold.
	Ended     *time.Time `json:"previous_expires_at,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Units     int64      `json:"units,omitempty"`
	Held      int64      `json:"held,omitempty"`
}

// ID implements Operation.
func (a *Adjust) ID() OperationID { return OperationID{a.Tenant, a.Key} }

// Kind implements Operation.
func (a *Adjust) Kind() Kind { return KindAdjust }

// Targets implements Operation. It adds the grant that an adjustment upwards issues.
func (a *Adjust) Targets(t *Targets) {
	if a.Amount > 0 {
		t.KeyGrants = append(t.KeyGrants, GrantKey{a.balance(), a.grantID()})
	}
}

// Demand implements Operation.
func (a *Adjust) Demand(*Located) []Demand { return []Demand{{a.balance(), DemandAll}} }

func (a *Adjust) balance() BalanceKey { return BalanceKey{a.Tenant, a.Meter, a.Subject} }

func (a *Adjust) answers(*Change) {}

func (a *Adjust) fingerprint() [16]byte {
	h := appendTexts(nil, "adjust/1", a.Tenant, a.Meter, a.Subject)
	return fingerprintOf(appendTexts(binary.AppendVarint(h, a.Amount), a.Reason))
}

// Validate implements Operation.
func (a *Adjust) Validate() error {
	if !bound.Difference(a.Amount) {
		return errcode.Errorf(errcode.InvalidArgument, "amount", bound.MustBeDifference)
	}
	return FirstOf(validKey(a.Key), ValidateName("tenant", a.Tenant), ValidateID("meter", a.Meter), ValidateSubject(a.Subject), validReason(a.Reason))
}

func (a *Adjust) decide(b *Batch, c *Call) error {
	book, refused, err := b.loadedBook(a.balance())
	if err != nil {
		return err
	}
	if refused == nil {
		refused = a.refusal(b, book)
	}
	if refused != nil {
		return c.refuse(refused)
	}
	out := &Change{OperationID: a.Key, Tenant: a.Tenant, Meter: a.Meter, Subject: a.Subject, Amount: a.Amount, Before: book.Remaining()}
	first := len(b.journal)
	if a.Amount > 0 {
		out.Grant = a.grantID()
		a.up(b, book)
	} else {
		book.draw(&b.journal, b.Now, -a.Amount, Entry{Kind: EntryAdjustDown})
	}
	b.answerChange(c, book, first, out, a.Reason)
	return nil
}

// refusal returns the reason why the adjustment cannot be made, nil if it can.
func (a *Adjust) refusal(b *Batch, book *Book) *errcode.Error {
	switch {
	case a.IfSeq != nil && *a.IfSeq != book.Seq:
		return errcode.Errorf(errcode.Conflict, "If-Match", "the ETag in If-Match is out of date: the balance has seq %d", book.Seq)
	case a.Amount > 0 && b.Targets.Taken[GrantKey{book.BalanceKey, a.grantID()}]:
		// The key is no longer remembered, but the grant that it created still exists.
		return errcode.Errorf(errcode.Conflict, "Idempotency-Key", "was used for grant %q, longer ago than keys are remembered: use a new one", a.grantID())
	case a.Amount > 0:
		return book.roomForGrant(a.Amount)
	case book.full() != nil:
		return book.full()
	case -a.Amount > book.Remaining():
		return errcode.Errorf(errcode.Conflict, "amount", "meter %q: %d remaining, less than is to be taken off", a.Meter, book.Remaining())
	}
	return nil
}

// grantID returns the id of the grant of an adjustment upwards.
func (a *Adjust) grantID() string { return derivedID(prefixAdjustment, a.Key) }

// up issues the grant of an adjustment upwards.
func (a *Adjust) up(b *Batch, book *Book) {
	id, now := a.grantID(), period.Later(b.Now, book.UpdatedAt)
	book.addGrant(&OpenGrant{isNew: true, GrantRecord: GrantRecord{
		Tenant: a.Tenant, Meter: a.Meter, Subject: a.Subject, ID: id, Source: SourceAdjustment, Amount: a.Amount,
		Remaining: a.Amount, Priority: PriorityTopup, EffectiveAt: now, ExpiresAt: period.Forever, Reason: a.Reason,
		Status: GrantActive, OperationID: a.Key, CreatedAt: now,
	}})
	book.refresh()
	b.enter(book, Entry{Kind: EntryAdjustUp, Grant: id, Source: SourceAdjustment, Amount: a.Amount})
	b.Targets.Taken[GrantKey{book.BalanceKey, id}] = true
}

// changeDetail is the detail of the entries of adjustments and grant changes. The first entry carries the answer.
type changeDetail struct {
	Reason string          `json:"reason"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// answerChange answers c, and stores the answer in the operation's first entry, for retries.
func (b *Batch) answerChange(c *Call, book *Book, first int, out *Change, reason string) {
	entry := b.finish(c, first, "", nil)
	p := book.Position()
	out.Remaining, out.Limit, out.ResetAt, out.Seq, out.AsOf = p.Remaining, p.Limit, p.ResetAt, book.Seq, entry.CreatedAt
	entry.Detail = mustJSON(changeDetail{Reason: reason, Answer: mustJSON(out)})
	c.Answer = out
}

func (a *Adjust) rebuild(stored []Entry) (answer, error) { return storedAnswer[Change](stored) }

func (c *Change) replay(b *Batch) {
	c.Replayed = true
	p := b.position(BalanceKey{c.Tenant, c.Meter, c.Subject})
	c.Limit, c.ResetAt = p.Limit, p.ResetAt
}
