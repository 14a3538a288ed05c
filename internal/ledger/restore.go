package ledger

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// ReturnPolicy selects where returned units go when their grant has ended.
type ReturnPolicy string

// The policies. Forfeit is the default: what would have been lost unused stays lost.
const (
	ReturnForfeit ReturnPolicy = "forfeit" // they expire at once
	// ReturnRegrant issues them anew, as a grant of source refund with the priority and cost basis of the old one. It
	// ends with the period if they were part of an allowance; otherwise it has no end.
	ReturnRegrant ReturnPolicy = "regrant"
)

// returned is the grant that restored units went to. policy is empty when their own grant took them back.
type returned struct {
	grant  string
	source Source
	policy ReturnPolicy
}

// takesReturns reports whether units can return to g. An active grant has not ended: advance runs first, and a hold
// that ends at the same instant as its grant ends before it. An allowance that was used up ended with its period, which
// a change of plan may have cut short.
func (b *Book) takesReturns(g *OpenGrant, now time.Time) bool {
	if g.fromPlan() && g.Status == GrantExhausted && g.EffectiveAt.Before(b.Start) {
		return false
	}
	return g.Status == GrantActive || g.Status == GrantExhausted && g.ExpiresAt.After(now)
}

// restore puts n units back on the grant they came from, or handles them as policy says if that grant has ended. It
// changes grants only; the caller enters what it returns.
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
