package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// The instance's clock may be behind the balance's last write. Then the change of the interval takes effect at that
// write, and the use before it is read for it.
func TestWantsPastUse_ClockBehindLastWrite_ReadsWhatTheChangeNeeds(t *testing.T) {
	t.Parallel()
	day := func(d, h, s int) time.Time { return time.Date(2026, 3, d, h, 0, s, 0, time.UTC) }
	k := BalanceKey{Tenant: "acme", Meter: "calls"}
	of := func(every period.Interval) []PlanVersion {
		allow := Allowance{Amount: 100, Every: every, Anchor: period.Calendar}
		return []PlanVersion{{Version: 1, CreatedAt: day(1, 0, 0), Allowances: map[string]Allowance{"calls": allow}}}
	}
	plans := map[string][]PlanVersion{"monthly": of(period.Month), "daily": of(period.Day)}
	tl := NewTimeline(k, []TenantTerms{
		{Since: day(1, 0, 0), Plan: "monthly", Zone: time.UTC},
		{Since: day(10, 12, 0), Plan: "daily", Zone: time.UTC, Now: true},
	}, plans)
	row := BalanceRow{
		BalanceKey: k, Sums: Sums{Granted: 100}, Seq: 1, Plan: "monthly", PlanVersion: 1, Allowance: 100, Renews: true,
		Start: day(1, 0, 0), End: day(32, 0, 0), Entitled: 100, AllowanceAt: day(1, 0, 0), TermsAt: day(1, 0, 0),
		UpdatedAt: day(10, 12, 10), NextEvent: day(32, 0, 0), RollAt: day(32, 0, 0),
		HeadID: "allowance:1", HeadSource: SourceAllowance, HeadRemaining: 100,
	}
	b := NewBook(row)
	b.Timeline, b.Terms = tl, &tl[0].Allowance
	b.LoadGrants([]*OpenGrant{{GrantRecord: GrantRecord{
		Tenant: "acme", Meter: "calls", ID: row.HeadID, Source: SourceAllowance, Amount: 100, Remaining: 100,
		Priority: PriorityAllowance, EffectiveAt: row.Start, ExpiresAt: row.End, Status: GrantActive,
	}}}, nil)
	behind := day(10, 12, 2)
	for u, wants := b.WantsPastUse(behind); wants; u, wants = b.WantsPastUse(behind) {
		b.AddPastUse(u)
	}
	batch := NewBatch()
	batch.Now, batch.Books[k] = behind, b
	next := batch.Decide(nil)
	assert.True(t, next.Done() && b.Broken == nil && b.Start.Equal(row.UpdatedAt),
		"%+v, broken %v, start %s", next, b.Broken, b.Start)
}
