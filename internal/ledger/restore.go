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

// returned is the grant to which restored units went. policy is empty if the units returned to the grant from which
// they came.
type returned struct {
	grant  string
	source Source
	policy ReturnPolicy
}

// takesReturns reports whether units can return to g. An active grant has not ended, because advance runs first, and
// at one instant holds end before grants. An allowance that was used up ended with its period, which a change of plan
// may have cut short.
func (b *Book) takesReturns(g *OpenGrant, now time.Time) bool {
	if g.fromPlan() && g.Status == GrantExhausted && g.EffectiveAt.Before(b.Start) {
		return false
	}
	return g.Status == GrantActive || g.Status == GrantExhausted && g.ExpiresAt.After(now)
}

// restore gives n units back to the grant from which they came. If that grant has ended, policy decides where the
// units go. restore changes only grants; the caller writes the entries.
func (b *Book) restore(grantID string, source Source, n int64, policy ReturnPolicy, newID string, now time.Time) returned {
	anew := GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: newID, Source: SourceRefund, Amount: n, Remaining: n,
		Priority: PriorityTopup, EffectiveAt: now, ExpiresAt: period.Forever, Status: GrantActive, OperationID: newID, CreatedAt: now,
	}
	if source == SourceAllowance || source == SourceRollover {
		anew.Priority, anew.ExpiresAt = PriorityAllowance, b.End
	}
	for _, g := range b.Grants {
		if g.ID != grantID {
			continue
		}
		if b.takesReturns(g, now) {
			if g.Status == GrantExhausted {
				g.Status, g.changed = GrantActive, true
			}
			b.setRemaining(g, g.Remaining+n)
			return returned{grant: g.ID, source: g.Source}
		}
		anew.Priority, anew.CostBasis = g.Priority, g.CostBasis
	}
	if policy != ReturnRegrant {
		return returned{grant: grantID, source: source, policy: ReturnForfeit}
	}
	b.addGrant(&OpenGrant{isNew: true, GrantRecord: anew})
	return returned{grant: newID, source: SourceRefund, policy: ReturnRegrant}
}
