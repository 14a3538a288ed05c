package drill

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompare_EachBrokenPromise_IsFound(t *testing.T) {
	t.Parallel()
	done := Operation{Tenant: "t", Key: "k", Kind: Debit, Amount: 3, Outcome: Done, Attempts: 1}
	refused := Operation{Tenant: "t", Key: "k", Kind: Debit, Amount: 3, Outcome: Refused, Attempts: 2}
	late := refused
	late.Unsure = 1
	open := Operation{Tenant: "t", Key: "k", Kind: Debit, Amount: 3, Outcome: Open, Attempts: 2, Unsure: 1}
	turnedAway := open // each answer was 503, and none had the code outcome_unknown
	turnedAway.Unsure = 0
	entries := func(n int64) journal { return journal{{"t", "k"}: {Debit: n}} }
	for name, tc := range map[string]struct {
		op   Operation
		j    journal
		want Findings
	}{
		"acknowledged, there":           {done, entries(3), Findings{}},
		"acknowledged, gone":            {done, journal{}, Findings{Lost: 1}},
		"acknowledged, a part is gone":  {done, entries(2), Findings{Lost: 1}},
		"acknowledged, as another kind": {done, journal{{"t", "k"}: {Refund: 3}}, Findings{Lost: 1}},
		"acknowledged, twice there":     {done, entries(6), Findings{Twice: 1}},
		"refused, not there":            {refused, journal{}, Findings{}},
		"refused, there":                {refused, entries(3), Findings{Present: 1}},
		"refused, unanswered before":    {late, entries(3), Findings{Late: 1}},
		"open, there":                   {open, entries(3), Findings{}},
		"open, twice there":             {open, entries(6), Findings{Twice: 1}},
		"open, not there":               {open, journal{}, Findings{}},
		"turned away, there":            {turnedAway, entries(3), Findings{Present: 1}},
		"nobody's":                      {done, journal{{"t", "k"}: {Debit: 3}, {"t", "other"}: {Debit: 1}}, Findings{Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compare([]Operation{tc.op}, tc.j)
			assert.True(t, got.Lost == tc.want.Lost && got.Twice == tc.want.Twice && got.Present == tc.want.Present && got.Unknown == tc.want.Unknown &&
				got.Late == tc.want.Late, "got %+v, want %+v", got, tc.want)
			assert.True(t, len(got.Examples) == got.Violations(), "examples %q", got.Examples)
		})
	}
}

func TestCompareAt_Instant_DividesOperations(t *testing.T) {
	t.Parallel()
	instant := time.Now()
	before, after := instant.Add(-time.Second), instant.Add(time.Second)
	op := func(first, ended time.Time, outcome Outcome) Operation {
		return Operation{Tenant: "t", Key: "k", Kind: Debit, Amount: 3, Outcome: outcome, Attempts: 1, First: first, Ended: ended}
	}
	there, gone := journal{{"t", "k"}: {Debit: 3}}, journal{}
	for name, tc := range map[string]struct {
		op   Operation
		j    journal
		want int // number of violations
	}{
		"acknowledged before, there":   {op(before, before, Done), there, 0},
		"acknowledged before, gone":    {op(before, before, Done), gone, 1},
		"acknowledged after, there":    {op(before, after, Done), there, 0},
		"acknowledged after, gone":     {op(before, after, Done), gone, 0},
		"sent after, there":            {op(after, after, Done), there, 1},
		"sent after, gone":             {op(after, after, Done), gone, 0},
		"open when it was over, there": {op(before, time.Time{}, Open), there, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compareAt([]Operation{tc.op}, tc.j, instant)
			assert.True(t, got.Violations() == tc.want, "%+v, want %d violations", got, tc.want)
		})
	}
}

func TestPlan_SameSeed_SameFaults(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 7, Kills: 200, Failovers: 20, Others: 14, Restores: 3, Instances: 3, Calm: time.Second}
	count := map[Action]int{}
	open := false
	again := plan(&cfg)
	for i, s := range plan(&cfg) {
		require.True(t, s == again[i], "step %d: %+v, then %+v", i, s, again[i])
		if count[s.do]++; s.do == Backup || s.do == Restore {
			assert.True(t, open != (s.do == Backup), "step %d: %s comes at the wrong time", i, s.do)
			open = !open
		}
		assert.True(t, s.target >= 0 && s.target < cfg.Instances && s.after >= cfg.Calm/5 && s.after <= cfg.Calm &&
			s.length <= hangMax, "step %d: %+v", i, s)
	}
	kills := count[KillInstance] + count[KillPrimary] + count[KillStandby] + count[KillRedis]
	assert.True(t, kills == cfg.Kills && count[Restore] == cfg.Restores && count[Rolling] == 10,
		"%d kills, %d restores, %d rolling restarts", kills, count[Restore], count[Rolling])
	for _, kind := range failoverActions {
		assert.True(t, count[kind] == cfg.Failovers/len(failoverActions), "%s: %d times", kind, count[kind])
	}
	for _, kind := range otherActions {
		assert.True(t, count[kind] == cfg.Others/len(otherActions), "%s: %d times", kind, count[kind])
	}
	cfg.Seed++
	assert.NotEqual(t, again[:3], plan(&cfg)[:3], "another seed gives the same faults")
}

func TestRun_BadCounts_RefusedByName(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Kills: -1, Instances: 1, Clients: 1, Tenants: 1, Calm: 1})
	assert.Error(t, err, "it runs")
}
