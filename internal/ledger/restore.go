package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// ReturnPolicy selects where returned units go when their grant has ended.
type ReturnPolicy string

// The policies. ReturnForfeit is the default: units that would have expired unused still expire.
const (
	ReturnForfeit ReturnPolicy = "forfeit" // the units expire at once
	// ReturnRegrant issues the units anew, as a grant of source refund with the priority and cost basis of the old
	// grant. The new grant ends with the period if the units were part of an allowance or a rollover. Otherwise it
	// has no end.
	ReturnRegrant ReturnPolicy = "regrant"
)

// returned is a grant to which restored units went.
type returned struct {
	grant  string
	source Source
	units  int64
	policy ReturnPolicy // empty: the units returned to the grant from which they came
	short  int64        // how many of the units make up for what the balance is short of: see payShort
}

// takesReturns reports whether units can return to g. An active grant has not ended, because advance runs first, and
// at one instant holds end before grants. A grant of the plan that was used up ended with its period, which a change of
// the interval may have cut short, or with a reset.
func (b *Book) takesReturns(g *OpenGrant, now time.Time) bool {
	switch {
	case g.Status != GrantExhausted || !g.ExpiresAt.After(now):
		return g.Status == GrantActive
	case g.Source == SourceRollover:
		return !g.EffectiveAt.Before(b.Start)
	case g.Source == SourceAllowance:
		return b.Timeline.fateOf(g, b.TermsAt) != ended
	}
	return true
}

// needsTerms reports whether the terms of the tenant say where units return: a change has touched the open period.
func (b *Book) needsTerms() bool {
	return len(b.Timeline) == 0 && (b.AllowanceAt.After(b.Start) || !b.CarriedFrom.IsZero())
}

// restored describes units that come back to the grant from which they came.
type restored struct {
	grant  string
	source Source
	units  int64
	policy ReturnPolicy // if the grant has ended
	newID  string       // of the grant that ReturnRegrant issues
	// drawn is the instant from which on the units may have reduced the allowance of the open period: of their debit, or,
	// for held units, the end of their grant.
	drawn time.Time
}

// restore gives units back to the grant from which they came. If that grant has ended, its units may have reduced the
// allowance of the open period: then they return to that allowance. For all others the policy decides where they go.
// The units come back at the instant `at`; the entries are written at the instant now. restore changes only grants; the
// caller writes the entries and calls payShort.
func (b *Book) restore(r restored, at, now time.Time) []returned {
	anew := GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: r.newID, Source: SourceRefund, Amount: r.units, Remaining: r.units,
		Priority: PriorityTopup, EffectiveAt: at, ExpiresAt: period.Forever, Status: GrantActive, OperationID: r.newID, CreatedAt: now,
	}
	if r.source == SourceAllowance || r.source == SourceRollover {
		anew.Priority, anew.ExpiresAt = PriorityAllowance, b.End
	}
	if g := b.grant(r.grant); g != nil {
		if b.takesReturns(g, at) {
			if g.Status == GrantExhausted {
				g.Status, g.changed = GrantActive, true
			}
			b.setRemaining(g, g.Remaining+r.units)
			to := returned{grant: g.ID, source: g.Source, units: r.units}
			if b.isAllowance(g) {
				to.short = min(r.units, b.Short)
			}
			return []returned{to}
		}
		anew.Priority, anew.CostBasis = g.Priority, g.CostBasis
	}
	var out []returned
	counted := b.backToAllowance(&r, at)
	short := min(counted, b.Short)
	if r.units -= counted; short > 0 {
		out = append(out, returned{grant: r.grant, source: r.source, units: short, short: short})
	}
	if back := counted - short; back > 0 {
		g := b.moreAllowance("", back, at, b.End, now)
		g.OperationID = g.ID
		b.addGrant(g)
		out = append(out, returned{grant: g.ID, source: g.Source, units: back, policy: ReturnRegrant})
	}
	switch {
	case r.units == 0:
	case r.policy != ReturnRegrant:
		out = append(out, returned{grant: r.grant, source: r.source, units: r.units, policy: ReturnForfeit})
	default:
		anew.Amount, anew.Remaining = r.units, r.units
		b.addGrant(&OpenGrant{isNew: true, GrantRecord: anew})
		out = append(out, returned{grant: r.newID, source: SourceRefund, units: r.units, policy: ReturnRegrant})
	}
	return out
}

// lastInstant returns the last instant at which g can be spent. Held units of g have reduced an allowance that counts
// from then on or earlier.
func (g *OpenGrant) lastInstant() time.Time { return g.ExpiresAt.Add(-time.Microsecond) }

// backToAllowance takes units of an ended allowance off Carried, if they are part of it. It returns their number. They
// make up for what the balance is short of; the others go to the open period's allowance.
func (b *Book) backToAllowance(r *restored, now time.Time) int64 {
	if r.source != SourceAllowance {
		return 0
	}
	// Without a name, they are units of allowances that have paid overage.
	if g := b.grant(r.grant); r.grant != "" && (g == nil || b.apart(g)) {
		return 0
	}
	counted := min(r.units, b.carriedSince(r.drawn, now))
	b.Carried, b.changed = b.Carried-counted, true
	return counted
}

// carriedSince returns Carried, or 0 if units that were drawn at an instant are no part of it.
func (b *Book) carriedSince(drawn, now time.Time) int64 {
	if b.CarriedFrom.IsZero() || drawn.Before(b.CarriedFrom) || !b.End.After(now) {
		return 0
	}
	return b.Carried
}

// payShort takes back the units that make up for what the balance is short of. It follows the entry of the units that
// came back, which e is like.
func (b *Book) payShort(j *[]Entry, now time.Time, to *returned, e Entry) {
	if to.short == 0 {
		return
	}
	if g := b.grant(to.grant); g != nil && b.takesReturns(g, now) { // units of overage that was paid have no grant
		b.setRemaining(g, g.Remaining-to.short)
	}
	b.Short -= to.short
	e.Kind, e.Amount, e.Line, e.Detail = EntryAmendDown, to.short, e.Line+1, nil
	b.enter(j, now, e)
}
