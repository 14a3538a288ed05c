package ledger

import (
	"fmt"
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

// wouldSucceedAt returns the first known instant up to the period's end at which amount could be drawn if nothing else
// happened: a grant takes effect, or the period renews. Zero when there is none.
func (b *book) wouldSucceedAt(amount int64) time.Time {
	at := func(t time.Time) int64 {
		sum := int64(0)
		if b.renews && !t.Before(b.end) {
			sum = b.nextAllowance()
		}
		for _, g := range b.grants {
			switch {
			case !g.ExpiresAt.After(t) || g.EffectiveAt.After(t):
			case g.Status == GrantActive:
				sum = saturatingAdd(sum, g.Remaining)
			case g.Status == GrantPending:
				sum = saturatingAdd(sum, g.Amount)
			}
		}
		return sum
	}
	var best time.Time
	consider := func(t time.Time) {
		if (best.IsZero() || t.Before(best)) && at(t) >= amount {
			best = t
		}
	}
	for _, g := range b.grants {
		if g.Status == GrantPending && !g.EffectiveAt.After(b.end) {
			consider(g.EffectiveAt)
		}
	}
	if b.renews && b.end.Before(period.Forever) {
		consider(b.end)
	}
	return best
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
