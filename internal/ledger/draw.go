package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// unknown says that the balance stands for nothing: the plan has no such meter, and no grant was ever issued for it.
func (b *book) unknown() bool { return b.plan == "" && b.seq == 0 }

// deny explains why amount cannot be charged in full at now. It reads every open grant of the limiting balance, so that its
// text does not depend on what else was in the batch.
func (w *well) deny(item int, amount int64, now time.Time) (*Error, error) {
	own := w.own
	if own.unknown() {
		return errorf(CodeMeterNotInPlan, itemField(item, "meter"), "the plan of tenant %q has no meter %q, and no grant was ever issued for it",
			own.Tenant, own.Meter), nil
	}
	s := w.split(amount)
	limiting, missing := own, amount-s.overflow-s.overage
	d := &Denial{
		Item: item, Required: amount, Available: s.units(), Remaining: own.remaining(), Limit: own.limit(),
		Limiting: Limiting{Kind: "credit", Meter: own.Meter, Level: "tenant"},
	}
	if w.subject != nil && w.subject.remaining() < amount {
		limiting, missing = w.subject, amount
		d.Limiting.Subject, d.Limiting.Level = w.subject.Subject, "subject"
		d.Remaining, d.Limit = w.subject.remaining(), w.subject.limit()
	}
	if !limiting.loaded {
		return nil, errNotLoaded
	}
	d.WouldSucceedAt = limiting.wouldSucceedAt(missing)
	e := &Error{Code: CodeCreditsExhausted, Field: itemField(item, "amount"), Denial: d, AsOf: now}
	if limiting.renews {
		e.Code, d.Limiting.Kind, d.ResetAt = CodeQuotaExceeded, "allowance", limiting.end
		e.RetryAfter = max(limiting.end.Sub(now), time.Second)
	}
	e.Detail = d.text()
	return e, nil
}

// text says in a sentence what is missing.
func (d *Denial) text() string {
	if d.Limiting.Level == "subject" {
		return fmt.Sprintf("%d of meter %s are required and the cap of subject %s leaves %d", d.Required, d.Limiting.Meter, d.Limiting.Subject, d.Available)
	}
	if d.ResetAt.IsZero() {
		return fmt.Sprintf("%d of meter %s are required and %d are left; a grant is needed", d.Required, d.Limiting.Meter, d.Available)
	}
	return fmt.Sprintf("%d of meter %s are required and %d are left until %s",
		d.Required, d.Limiting.Meter, d.Available, d.ResetAt.UTC().Format(time.RFC3339))
}

// change is by how much what can be drawn grows or shrinks at an instant.
type change struct {
	at time.Time
	by int64
}

// wouldSucceedAt returns the first known instant up to the period's end at which amount could be drawn if nothing else
// happened: a grant takes effect, a hold ends, or the period renews. Zero when there is none.
func (b *book) wouldSucceedAt(amount int64) time.Time {
	sum, changes := b.foreseen()
	// What an instant takes is sorted before what it brings.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	for _, c := range changes {
		if c.at.After(b.end) {
			break
		}
		sum += c.by // no overflow: before it grows, sum is less than amount
		if c.by > 0 && sum >= amount {
			return c.at
		}
	}
	return time.Time{}
}

// foreseen is what can be drawn now, and how that is going to change, in no order. A grant takes with it what holds give back to it
// until its end, and gets nothing of what they give back after.
func (b *book) foreseen() (sum int64, changes []change) {
	active := make(map[string]*grant, len(b.grants))
	changes = make([]change, 0, 2*(len(b.grants)+len(b.holds))+1)
	comes := func(from, until time.Time, n int64) {
		changes = append(changes, change{from, n}, change{until, -n})
	}
	for _, g := range b.grants {
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
	for _, h := range b.holds {
		if g := active[h.grantID]; g != nil && h.open() > 0 && h.expiresAt.Before(g.ExpiresAt) {
			comes(h.expiresAt, g.ExpiresAt, h.open())
		}
	}
	if b.renews && b.end.Before(period.Forever) {
		changes = append(changes, change{b.end, b.nextAllowance()})
	}
	return sum, changes
}

// canDraw says whether the book knows the grants that amount would be drawn from.
func (b *book) canDraw(amount int64) bool { return b.loaded || amount <= b.headRemaining }

// take uses amount in burn order and calls each for every draw, after the balance has changed. The caller has checked that
// amount is there.
func (b *book) take(amount int64, each func(grantID string, source Source, part int64)) {
	b.takeAs(amount, func(grantID string, source Source, part int64) {
		b.used += part
		each(grantID, source, part)
	})
}

// takeAs takes amount off the grants in burn order. move is called for every part, and moves the balance's sums.
func (b *book) takeAs(amount int64, move func(grantID string, source Source, part int64)) {
	if amount == 0 {
		return
	}
	b.dirty = true
	if !b.loaded {
		b.headRemaining -= amount
		move(b.headID, b.headSource, amount)
		return
	}
	for _, g := range b.grants {
		if amount == 0 {
			break
		}
		if g.Status != GrantActive || g.Remaining == 0 {
			continue
		}
		part := min(amount, g.Remaining)
		amount -= part
		b.setRemaining(g, g.Remaining-part)
		move(g.ID, g.Source, part)
	}
	if amount != 0 {
		panic(fmt.Sprintf("ledger: %d units of %v are in no grant", amount, b.key))
	}
	b.settle()
}
