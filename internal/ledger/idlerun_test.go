package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// The periods of a run open with what the ones before them closed with. Earlier versions stored runs that raised a
// balance above MaxAmount, of which this is not true.
func TestIdleRun_Follows_EachOpensWithClosingBefore(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	history := []TenantTerms{{Since: at, Plan: "p", AnchorAt: at, Zone: time.UTC}}
	plans := map[string][]PlanVersion{"p": {{Version: 1, CreatedAt: at, Allowances: map[string]Allowance{
		"m": {Amount: 1000, Every: period.Hour, Anchor: period.Tenant, RolloverMax: new(int64(3000))},
	}}}}
	for _, tc := range []struct {
		opening, closing int64
		fault            string
	}{
		{999, 3000, ""},
		{999, 2999, "the last period closes with 3000"},
		{MaxAmount - 3001, MaxAmount - 1000, ""},
		{MaxAmount - 1500, MaxAmount + 501, "opens with"},
	} {
		row := PeriodRow{
			BalanceKey: BalanceKey{Tenant: "t", Meter: "m"}, Sums: Sums{Opening: tc.opening},
			Start: at, End: at.Add(9 * time.Hour), Plan: "p", PlanVersion: 1, Closing: tc.closing, Idle: 9,
			TermsAt: at, RolledOver: 999, Rollover: 999,
		}
		run, err := NewIdleRun(&row, history, plans)
		require.NoError(t, err)
		if err = run.Follows(); tc.fault == "" {
			assert.NoError(t, err, tc)
		} else {
			assert.ErrorContains(t, err, tc.fault)
		}
	}
}

// Idle periods that pay overage of earlier periods write each payment with the instant and the payer, at most 1,000 in
// a run. A change of the interval counts the payments of allowances since an instant inside the run.
func TestIdleRun_PaysOverage_EachPeriodWritesItsPayment(t *testing.T) {
	t.Parallel()
	b := owing(5000)
	batch := NewBatch()
	batch.Now, batch.Books[b.BalanceKey] = b.Start.Add(1900*time.Hour+time.Minute), b
	next := batch.Decide(nil)
	require.True(t, next.Done() && b.Broken == nil, "%+v, %v", next, b.Broken)
	paid, runs, seen := map[Source]int64{}, map[string]int{}, map[time.Time]int64{}
	for _, e := range batch.journal {
		if e.Kind == EntryPayOwed {
			paid[e.Source], seen[e.EffectiveAt] = paid[e.Source]+e.Amount, seen[e.EffectiveAt]+e.Amount
			runs[e.OperationID]++
		}
	}
	assert.Equal(t, map[Source]int64{SourceAllowance: 1667, SourceRollover: 3333}, paid)
	for when, n := range seen {
		assert.LessOrEqual(t, n, int64(3), "paid at %s", when)
	}
	for id, lines := range runs {
		assert.LessOrEqual(t, lines, 2*payingMax, id)
	}
	assert.Zero(t, b.Overage)
}

// Runs that pay write many entries. A transaction ends with the run that exceeds its bound.
func TestIdleRun_PaysForYears_TakesSeveralRounds(t *testing.T) {
	t.Parallel()
	b := owing(60_000)
	now, rounds := b.Start.Add(3*365*24*time.Hour), 0
	for more := true; more; rounds++ {
		var j []Entry
		var err error
		_, more, err = b.advance(now, advanceStepsMax, &j)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(j), advanceStepsMax*entriesPerStep+2*payingMax+entriesPerStep)
	}
	assert.Greater(t, rounds, 5)
	assert.Zero(t, b.Overage)
}

// A change of terms takes effect at its own instant even if an earlier transaction has worked off the first part of
// a long backlog.
func TestIdleRun_TermsChangeInBacklog_TakeEffectAtTheirInstant(t *testing.T) {
	t.Parallel()
	b := owing(60_000)
	more := b.Timeline[0]
	more.since, more.now, more.version, more.Allowance.Amount = b.Start.Add(9_000*time.Hour+time.Minute), true, 2, 3
	b.Timeline = append(b.Timeline, more)
	now, rounds := b.Start.Add(3*365*24*time.Hour), 0
	amended := func(e Entry) bool { return e.Kind == EntryAmendUp }
	for ; ; rounds++ {
		var j []Entry
		_, goesOn, err := b.advance(now, advanceStepsMax, &j)
		require.NoError(t, err)
		if at := slices.IndexFunc(j, amended); at >= 0 {
			assert.Equal(t, more.since, j[at].EffectiveAt)
			assert.Equal(t, more.since.Truncate(time.Hour), j[at].PeriodStart)
			break
		}
		require.True(t, goesOn, "the change has no entry")
		next := NewBook(b.BalanceRow) // as the next transaction reads it
		next.Timeline, next.Terms = b.Timeline, b.Terms
		next.LoadGrants(b.Grants, nil)
		b = next
	}
	assert.Positive(t, rounds)
}

// owing returns an hourly balance that owes overage. Each period pays 1 unit of its allowance and 2 that roll over.
func owing(overage int64) *Book {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	k := BalanceKey{Tenant: "t", Meter: "m"}
	plans := map[string][]PlanVersion{"p": {{Version: 1, CreatedAt: at, Allowances: map[string]Allowance{
		"m": {
			Amount: 1, Every: period.Hour, Anchor: period.Tenant, RolloverMin: new(int64(2)),
			OverageAllowed: true, OveragePreserved: true,
		},
	}}}}
	b := NewBook(BalanceRow{
		BalanceKey: k, Sums: Sums{Overage: overage}, Seq: 1, Plan: "p", PlanVersion: 1, Allowance: 1, Renews: true,
		Entitled: 1, Start: at, End: at.Add(time.Hour), AllowanceAt: at, TermsAt: at, UpdatedAt: at,
		NextEvent: at.Add(time.Hour), RollAt: at.Add(time.Hour),
	})
	b.Timeline = NewTimeline(k, []TenantTerms{{Since: at, Plan: "p", AnchorAt: at, Zone: time.UTC}}, plans)
	b.Terms = &b.Timeline[0].Allowance
	b.LoadGrants(nil, nil)
	return b
}
