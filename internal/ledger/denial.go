package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// The values of Limiting.Kind. They name the kind of limit of a denied operation.
const (
	LimitedByAllowance = "allowance" // the next period brings more units
	LimitedByCredit    = "credit"    // only a grant brings more units
)

// The values of Limiting.Level. They name the owner of the limiting balance.
const (
	LevelTenant  = "tenant"
	LevelSubject = "subject"
)

// Limiting describes what limited a denied operation.
type Limiting struct {
	Kind    string // LimitedByAllowance or LimitedByCredit
	Meter   string
	Subject string // empty: the tenant itself
	Level   string // LevelTenant or LevelSubject
}

// Denial explains why an operation was refused for lack of units.
type Denial struct {
	Item           int // index of the refused item
	Limiting       Limiting
	Required       int64
	Available      int64     // units that could be charged now, with overflow and overage
	Remaining      int64     // see Position.Remaining
	Limit          int64     // see Position.Limit; both are those of the balance or cap of which the least remains
	ResetAt        time.Time // zero when the end of the period brings nothing back
	WouldSucceedAt time.Time // first instant at which the operation succeeds if nothing else happens; zero: none by ResetAt
	Lacking        []Lack    // the balances that lack units; the limiting balance is one of them
	AsOf           time.Time // instant of the decision
	Replayed       bool      // the denial was stored earlier, and now answers a retry
}

// Lack is a balance that has too few units for an operation.
type Lack struct {
	Meter     string    `json:"meter"`
	Subject   string    `json:"subject,omitempty"` // empty: the tenant's own balance
	Required  int64     `json:"required"`
	Available int64     `json:"available"`         // with overflow and overage
	ResetAt   time.Time `json:"reset_at,omitzero"` // zero: the end of the period brings nothing
}

// DenialOf returns the denial in err: the data of an error with errcode.QuotaExceeded or errcode.CreditsExhausted. It
// returns nil for other errors.
func DenialOf(err error) *Denial {
	if e, ok := errors.AsType[*errcode.Error](err); ok && e != nil {
		d, _ := e.Data.(*Denial)
		return d
	}
	return nil
}

// refusal returns the error of a denial of an item.
func (d *Denial) refusal(code errcode.Code, now time.Time) *errcode.Error {
	e := errcode.Errorf(code, itemField(d.Item, "amount"), "%s", d.text(code))
	e.Data = d
	if at := d.RetryAt(); code == errcode.QuotaExceeded && !at.IsZero() {
		e.RetryAfter = max(at.Sub(now), time.Second)
	}
	return e
}

// RetryAt returns the instant at which the operation succeeds, or else the end of the limiting period. It returns the
// zero time if neither is known.
func (d *Denial) RetryAt() time.Time {
	if d.WouldSucceedAt.IsZero() {
		return d.ResetAt
	}
	return d.WouldSucceedAt
}

// text returns a sentence that describes the missing units.
func (d *Denial) text(code errcode.Code) string {
	if d.Limiting.Level == LevelSubject {
		return fmt.Sprintf("%s: %d requested, the cap of subject %s leaves %d", d.Limiting.Meter, d.Required, d.Limiting.Subject, d.Available)
	}
	at, until := d.ResetAt, ""
	if at.IsZero() {
		at = d.WouldSucceedAt
	}
	switch {
	case code == errcode.CreditsExhausted:
		until = "; a grant is needed"
	case !at.IsZero():
		until = " until " + at.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %d requested, %d remaining%s", d.Limiting.Meter, d.Required, d.Available, until)
}

// deny refuses an item that lacks units. The refusal is completed by Batch.simulate. In a trial, deny records what the
// item lacks.
func (s *sources) deny(b *Batch, item int, amount int64) *errcode.Error {
	own := s.own
	if own.Unknown() {
		return inItem(own.NotInPlan(), item)
	}
	if b.trial {
		b.lacks = append(b.lacks, s.shortages(item, amount)...)
	}
	return (&Denial{Item: item}).refusal(errcode.QuotaExceeded, b.Now)
}

// shortages lists the balances that lack units for an item: the subject's, or the tenant's with all that it may draw
// from, or both.
func (s *sources) shortages(item int, amount int64) []shortage {
	var out []shortage
	units, tightest := s.allocate(amount).units, s.own.Position()
	if s.subject != nil {
		tightest = tightest.Within(new(s.subject.Position()))
	}
	add := func(book *Book, available int64, from ...BalanceKey) {
		if available >= amount {
			return
		}
		lack := shortage{
			Lack: Lack{Meter: book.Meter, Subject: book.Subject, Required: amount, Available: available},
			item: item, units: units, renews: book.Renews, from: from, overflow: s.price, position: tightest,
		}
		if book.Renews {
			lack.ResetAt = book.End
		}
		out = append(out, lack)
	}
	pool := *s
	pool.subject = nil
	from := []BalanceKey{s.own.BalanceKey}
	if s.overflow != nil {
		from = append(from, s.overflow.BalanceKey)
	}
	if s.subject != nil {
		add(s.subject, s.subject.Remaining(), s.subject.BalanceKey)
	}
	add(s.own, pool.allocate(amount).units, from...)
	return out
}

// denialDetail is the detail of a stored denial.
type denialDetail struct {
	Code           errcode.Code `json:"code"`
	Item           int          `json:"item"`
	Kind           string       `json:"kind"`
	Level          string       `json:"level"`
	Subject        string       `json:"subject,omitempty"`
	Required       int64        `json:"required"`
	Available      int64        `json:"available"`
	Remaining      int64        `json:"remaining"`
	Limit          int64        `json:"limit"`
	ResetAt        *time.Time   `json:"reset_at,omitempty"`
	WouldSucceedAt *time.Time   `json:"would_succeed_at,omitempty"`
	Lacking        []Lack       `json:"lacking,omitempty"` // old entries lack it
}

// refuseItems answers c with e, which refuses one of its items. If the item that limits the operation has StoreDenial
// set, the denial is stored under the operation's key and answers every retry.
func (b *Batch) refuseItems(c *Call, items []Item, subject string, metadata []byte, e *errcode.Error) error {
	if DenialOf(e) != nil && !b.trial {
		var err error
		if e, err = b.simulate(c.Op); err != nil {
			return err
		}
	}
	if d := DenialOf(e); d != nil && items[d.Item].StoreDenial && !b.trial {
		first := len(b.journal)
		b.enter(b.Books[BalanceKey{c.ID.Tenant, d.Limiting.Meter, ""}], Entry{
			Kind: EntryDenial, Item: int32(d.Item), Requested: d.Required,
			Detail: mustJSON(denialDetail{
				Code: e.Code, Item: d.Item, Kind: d.Limiting.Kind, Level: d.Limiting.Level, Subject: d.Limiting.Subject,
				Required: d.Required, Available: d.Available, Remaining: d.Remaining, Limit: d.Limit,
				ResetAt: period.OrNil(d.ResetAt), WouldSucceedAt: period.OrNil(d.WouldSucceedAt), Lacking: d.Lacking,
			}),
		})
		b.finish(c, first, subject, metadata)
	}
	return c.refuse(e)
}

// goesOn reports whether a decision continues after e refused an item: a trial finds all that the operation lacks.
func (b *Batch) goesOn(e *errcode.Error) bool { return b.trial && DenialOf(e) != nil }

// skips reports whether a trial leaves out an item.
func (b *Batch) skips(item int) bool { return b.trial && b.only != every && b.only != item }

// storedDenial returns the denial that the entry e stores. The error's RetryAfter counts from the instant `now`.
func storedDenial(e *Entry, now time.Time) *errcode.Error {
	var stored denialDetail
	if err := json.Unmarshal(e.Detail, &stored); err != nil {
		return &errcode.Error{Code: errcode.Internal, Detail: "the stored denial cannot be read", Cause: err}
	}
	d := &Denial{
		Item: stored.Item, Required: stored.Required, Available: stored.Available, Remaining: stored.Remaining, Limit: stored.Limit,
		Limiting: Limiting{Kind: stored.Kind, Meter: e.Meter, Subject: stored.Subject, Level: stored.Level},
		ResetAt:  period.OrZero(stored.ResetAt), WouldSucceedAt: period.OrZero(stored.WouldSucceedAt), Lacking: stored.Lacking,
		AsOf: e.CreatedAt, Replayed: true,
	}
	return d.refusal(stored.Code, now)
}
