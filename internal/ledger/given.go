package ledger

import (
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// moreAllowance returns a grant of n units that the allowance of the open period gains. Several may begin at one
// instant. Their ids have the number of the balance's newest entry, and a letter for the number of its digits. So ids
// of one instant are in the order of the grants.
func (b *Book) moreAllowance(operation string, n int64, start, end, now time.Time) *OpenGrant {
	g, seq := b.newAllowance(operation, n, start, end, now), strconv.FormatInt(b.Seq, 10)
	g.ID += "_" + string(rune('a'+len(seq)-1)) + seq
	return g
}

// newAllowance returns a grant of n units, with which a period opens.
func (b *Book) newAllowance(operation string, n int64, start, end, now time.Time) *OpenGrant {
	return &OpenGrant{isNew: true, GrantRecord: GrantRecord{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, ID: allowanceID(start), Source: SourceAllowance,
		Amount: n, Remaining: n,
		Priority: PriorityAllowance, EffectiveAt: start, ExpiresAt: end, Status: GrantActive,
		OperationID: operation, CreatedAt: now,
	}}
}

// Events of operations that the ledger makes by itself.
const (
	eventAmend = "amend" // a change of terms inside a period
	eventOnce  = "once"  // a once-only allowance is given
)

// event returns the event of an operation that gives an allowance under t.
func (t *Terms) event(usual string) string {
	if t.once() {
		return eventOnce
	}
	return usual
}

// once reports whether g is a once-only allowance. Such a grant ends at its own end, and not with a period.
func (g *OpenGrant) once() bool {
	return g.Source == SourceAllowance && (g.wasOnce || !g.ExpiresAt.Before(period.Forever) ||
		strings.HasPrefix(g.OperationID, "§"+eventOnce+"/"))
}

// knowOnce marks the once-only allowances of an older version, whose operations do not say what they gave. The terms
// that were in force then say it.
func (b *Book) knowOnce() {
	if len(b.Timeline) == 0 || !b.Timeline.changesKind() && !b.Timeline[0].once() {
		return
	}
	for _, g := range b.Grants {
		if g.Source == SourceAllowance && strings.HasPrefix(g.OperationID, "§allowance/") {
			t := b.Timeline.At(g.EffectiveAt)
			g.wasOnce = t.Grants && t.once()
		}
	}
}

// gaveOnce reports whether the plan has given its once-only allowance before and does not give it anew.
func (t *Terms) gaveOnce() bool { return t.once() && t.granted && !t.reset && !t.add }

// givenOnce returns what is open of the allowance that the plan of t has given once before.
func (b *Book) givenOnce(t *Terms) []*OpenGrant {
	return b.activeGrants(func(g *OpenGrant) bool { return g.once() && b.Timeline.At(g.EffectiveAt).plan == t.plan })
}

// activeGrants returns the active grants that match.
func (b *Book) activeGrants(matches func(*OpenGrant) bool) (out []*OpenGrant) {
	for _, g := range b.Grants {
		if g.Status == GrantActive && matches(g) {
			out = append(out, g)
		}
	}
	return out
}
