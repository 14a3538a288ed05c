package ledger

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// GrantAction is what a GrantChange does.
type GrantAction string

// The actions on a grant.
const (
	VoidGrant   GrantAction = "void"   // takes back the remainder
	ExtendGrant GrantAction = "extend" // gives a later end
)

// GrantChange changes a grant that was issued. Units that were drawn stay drawn; units on hold stay on hold.
type GrantChange struct {
	Tenant    string
	Key       string
	GrantID   string
	Meter     string // needed only if several meters have a grant with this id; empty: any meter
	Action    GrantAction
	ExpiresAt time.Time // ExtendGrant: the later end, exclusive; zero: never
	Reason    string    // required
}

// ID implements Operation.
func (x *GrantChange) ID() OperationID { return OperationID{x.Tenant, x.Key} }

// Kind implements Operation.
func (x *GrantChange) Kind() Kind {
	if x.Action == ExtendGrant {
		return KindExtendGrant
	}
	return KindVoid
}

// Targets implements Operation. It adds the grant to be changed.
func (x *GrantChange) Targets(t *Targets) {
	t.Grants = append(t.Grants, GrantName{x.Tenant, x.GrantID})
}

// Demand implements Operation. It returns the balances that have a grant with this id.
func (x *GrantChange) Demand(found *Located) []Demand {
	var out []Demand
	for _, k := range x.balances(found) {
		out = append(out, Demand{k, DemandAll})
	}
	return out
}

func (x *GrantChange) balances(found *Located) []BalanceKey {
	var out []BalanceKey
	for _, k := range found.Grants[GrantName{x.Tenant, x.GrantID}] {
		if x.Meter == "" || k.Meter == x.Meter {
			out = append(out, k)
		}
	}
	return out
}

func (x *GrantChange) answers(*Change) {}

func (x *GrantChange) fingerprint() [16]byte {
	h := appendTexts(nil, string(x.Kind())+"/1", x.Tenant, x.GrantID, x.Meter, x.Reason)
	if x.Action == ExtendGrant {
		h = appendInstant(h, x.ExpiresAt)
	}
	return fingerprintOf(h)
}

// Validate implements Operation. It cuts the instant to PostgreSQL's resolution.
func (x *GrantChange) Validate() error {
	var e *errcode.Error
	if x.Meter != "" {
		e = ValidateID("meter", x.Meter)
	}
	x.ExpiresAt = period.Micros(x.ExpiresAt)
	return FirstOf(e, validKey(x.Key), ValidateName("tenant", x.Tenant), ValidateName("grant_id", x.GrantID), ValidateInstant("expires_at", x.ExpiresAt), validReason(x.Reason))
}

func (x *GrantChange) decide(b *Batch, c *Call) error {
	homes := x.balances(&b.Located)
	switch len(homes) {
	case 0:
		return c.refuse(errcode.Errorf(errcode.GrantNotFound, "grant_id", "tenant %q has no grant %q", x.Tenant, x.GrantID))
	case 1:
	default:
		return c.refuse(errcode.Errorf(errcode.InvalidArgument, "meter", "%d balances have a grant %q: name the meter", len(homes), x.GrantID))
	}
	book, refused, err := b.loadedBook(homes[0])
	if err != nil {
		return err
	}
	if refused != nil {
		return c.refuse(refused)
	}
	g := book.grant(x.GrantID)
	if refused = x.refusal(g); refused != nil {
		return c.refuse(refused)
	}
	out := &Change{OperationID: x.Key, Tenant: x.Tenant, Meter: book.Meter, Subject: book.Subject, Grant: g.ID, Before: book.Remaining(), Was: g.Status}
	first := len(b.journal)
	e := Entry{Kind: EntryExtendGrant, Grant: g.ID, Source: g.Source}
	if x.Action == ExtendGrant {
		was := g.ExpiresAt.UTC()
		out.Ended, out.ExpiresAt, out.Units, out.Held = &was, period.OrNil(x.ExpiresAt), g.Remaining, g.Held
		if g.Status == GrantPending {
			out.Units = g.Amount
		}
		book.extend(g, period.OrForever(x.ExpiresAt))
	} else {
		e.Kind, e.Amount, out.Amount = EntryVoid, g.Remaining, -g.Remaining
		book.setRemaining(g, 0)
		g.Status, g.changed = GrantVoided, true
	}
	b.enter(book, e)
	book.refresh()
	b.answerChange(c, book, first, out, x.Reason)
	return nil
}

// refusal returns why g cannot be changed, nil when it can. g is nil if the grant is not among the open grants.
func (x *GrantChange) refusal(g *OpenGrant) *errcode.Error {
	switch {
	case g == nil || g.Status != GrantPending && (g.Status != GrantActive || g.Remaining == 0 && g.Held == 0):
		return errcode.Errorf(errcode.Conflict, "grant_id", "nothing is left of grant %q: it was used up, has ended or was taken back", x.GrantID)
	case x.Action != ExtendGrant:
		return nil
	case !g.ExpiresAt.Before(period.Forever):
		return errcode.Errorf(errcode.Conflict, "grant_id", "grant %q never ends", g.ID)
	case g.Source != SourceTopup && g.Source != SourcePromo && g.Source != SourceAdjustment:
		return errcode.Errorf(errcode.Conflict, "grant_id", "grant %q is of source %s and ends with its period: a grant of source topup, promo or adjustment can be extended", g.ID, g.Source)
	case !period.OrForever(x.ExpiresAt).After(g.ExpiresAt):
		return errcode.Errorf(errcode.InvalidArgument, "expires_at", "must be later than the end of grant %q, %s, or null for never", g.ID, g.ExpiresAt.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// extend gives a grant a later end, and moves it to its new position in burn order. The caller calls refresh.
func (b *Book) extend(g *OpenGrant, until time.Time) {
	b.Grants = slices.DeleteFunc(b.Grants, func(o *OpenGrant) bool { return o == g })
	g.ExpiresAt, g.Extended, g.changed = until, true, true
	b.addGrant(g)
}

func (x *GrantChange) rebuild(stored []Entry) (answer, error) { return storedAnswer[Change](stored) }
