package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	WouldSucceedAt time.Time // first known instant at which the operation could succeed; zero: unknown or never
	AsOf           time.Time // instant of the decision
	Replayed       bool      // the denial was stored earlier, and now answers a retry
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
	e := errcode.Errorf(code, itemField(d.Item, "amount"), "%s", d.text())
	e.Data = d
	if !d.ResetAt.IsZero() {
		e.RetryAfter = max(d.ResetAt.Sub(now), time.Second)
	}
	return e
}

// text returns a sentence that describes the missing units.
func (d *Denial) text() string {
	if d.Limiting.Level == LevelSubject {
		return fmt.Sprintf("%s: %d requested, the cap of subject %s leaves %d", d.Limiting.Meter, d.Required, d.Limiting.Subject, d.Available)
	}
	if d.ResetAt.IsZero() {
		return fmt.Sprintf("%s: %d requested, %d remaining; a grant is needed", d.Limiting.Meter, d.Required, d.Available)
	}
	return fmt.Sprintf("%s: %d requested, %d remaining until %s",
		d.Limiting.Meter, d.Required, d.Available, d.ResetAt.UTC().Format(time.RFC3339))
}

// deny returns the error that explains why amount cannot be charged in full at the instant `now`. It needs every open
// grant of the limiting balance, so that the error does not depend on the rest of the batch.
func (s *sources) deny(item int, amount int64, now time.Time) (*errcode.Error, error) {
	own := s.own
	if own.Unknown() {
		return inItem(own.NotInPlan(), item), nil
	}
	now = period.Later(now, own.UpdatedAt)
	a := s.allocate(amount)
	limiting, missing := own, amount-a.overflow-a.overage
	d := &Denial{
		Item: item, Required: amount, Available: a.units, Remaining: own.Remaining(), Limit: own.Limit(), AsOf: now,
		Limiting: Limiting{Kind: LimitedByCredit, Meter: own.Meter, Level: LevelTenant},
	}
	if s.subject != nil && s.subject.Remaining() < amount {
		limiting, missing = s.subject, amount
		d.Limiting.Subject, d.Limiting.Level = s.subject.Subject, LevelSubject
		d.Remaining, d.Limit = s.subject.Remaining(), s.subject.Limit()
	}
	if own.Remaining() < d.Remaining { // the subject's cap and the tenant's units are both too small
		d.Remaining, d.Limit = own.Remaining(), own.Limit()
	}
	if !limiting.loaded {
		return nil, errNotLoaded
	}
	d.WouldSucceedAt = limiting.wouldSucceedAt(missing)
	if !limiting.Renews {
		return d.refusal(errcode.CreditsExhausted, now), nil
	}
	d.Limiting.Kind = LimitedByAllowance
	d.ResetAt = limiting.End
	return d.refusal(errcode.QuotaExceeded, now), nil
}

// change is one change of the units that can be drawn; by is negative for a loss.
type change struct {
	at time.Time
	by int64
}

// wouldSucceedAt returns the first known instant at which amount could be drawn, up to the end of the period. At this
// instant a grant takes effect, a hold ends, or the period renews. It assumes that nothing else happens. It returns
// the zero time if there is no such instant.
func (b *Book) wouldSucceedAt(amount int64) time.Time {
	sum, changes := b.futureChanges()
	// At one instant, losses come before gains.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	for _, c := range changes {
		if c.at.After(b.End) {
			break
		}
		sum += c.by // no overflow: before each gain, sum is less than amount
		if c.by > 0 && sum >= amount {
			return c.at
		}
	}
	return time.Time{}
}

// futureChanges returns the units that can be drawn now, and their later changes, unordered. Units that a hold
// returns to a grant before the grant's end are lost at that end. A hold that ends later returns nothing to the
// grant.
func (b *Book) futureChanges() (sum int64, changes []change) {
	active := make(map[string]*OpenGrant, len(b.Grants))
	changes = make([]change, 0, 2*(len(b.Grants)+len(b.Holds))+1)
	comes := func(from, until time.Time, n int64) {
		changes = append(changes, change{from, n}, change{until, -n})
	}
	for _, g := range b.Grants {
		switch g.Status {
		case GrantActive:
			active[g.ID] = g
			sum += g.Remaining
			changes = append(changes, change{g.ExpiresAt, -g.Remaining})
		case GrantPending:
			comes(g.EffectiveAt, g.ExpiresAt, g.Amount)
		case GrantExhausted, GrantExpired, GrantVoided:
		}
	}
	for _, h := range b.Holds {
		if g := active[h.Grant]; g != nil && h.Free() > 0 && h.ExpiresAt.Before(g.ExpiresAt) {
			comes(h.ExpiresAt, g.ExpiresAt, h.Free())
		}
	}
	if b.End.Before(period.Forever) {
		changes = append(changes, change{b.End, b.nextBrings()})
	}
	return sum, changes
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
}

// refuseItem answers c with e. If item.StoreDenial is set, the denial is stored under the operation's key and answers
// every retry.
func (b *Batch) refuseItem(c *Call, item *Item, subject string, metadata []byte, e *errcode.Error) error {
	if d := DenialOf(e); d != nil && item != nil && item.StoreDenial {
		first := len(b.journal)
		b.enter(b.Books[BalanceKey{c.ID.Tenant, d.Limiting.Meter, ""}], Entry{
			Kind: EntryDenial, Item: int32(d.Item), Requested: d.Required,
			Detail: mustJSON(denialDetail{
				Code: e.Code, Item: d.Item, Kind: d.Limiting.Kind, Level: d.Limiting.Level, Subject: d.Limiting.Subject,
				Required: d.Required, Available: d.Available, Remaining: d.Remaining, Limit: d.Limit,
				ResetAt: period.OrNil(d.ResetAt), WouldSucceedAt: period.OrNil(d.WouldSucceedAt),
			}),
		})
		b.finish(c, first, subject, metadata)
	}
	return c.refuse(e)
}

// storedDenial returns the denial that the entry e stores. The error's RetryAfter counts from the instant `now`.
func storedDenial(e *Entry, now time.Time) *errcode.Error {
	var stored denialDetail
	if err := json.Unmarshal(e.Detail, &stored); err != nil {
		return &errcode.Error{Code: errcode.Internal, Detail: "the stored denial cannot be read", Cause: err}
	}
	d := &Denial{
		Item: stored.Item, Required: stored.Required, Available: stored.Available, Remaining: stored.Remaining, Limit: stored.Limit,
		Limiting: Limiting{Kind: stored.Kind, Meter: e.Meter, Subject: stored.Subject, Level: stored.Level},
		ResetAt:  period.OrZero(stored.ResetAt), WouldSucceedAt: period.OrZero(stored.WouldSucceedAt),
		AsOf: e.CreatedAt, Replayed: true,
	}
	return d.refusal(stored.Code, now)
}
