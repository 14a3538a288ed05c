package scale_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench/scale"
)

func plan(t *testing.T, rate float64, w *scale.Way) scale.Plan {
	t.Helper()
	p, err := scale.NewPlan(rate, w.Costs, scale.Assumed(), w.Choice)
	require.NoError(t, err)
	return p
}

// The expected numbers were computed by hand from the formulas in doc.go.
func TestPlan_OneNode_FollowsFormulas(t *testing.T) {
	t.Parallel()
	c := scale.Costs{Service: 50, Row: 20, Transaction: 400, Redis: 5, WAL: 1000, Journal: 500, Trips: 2, Debits: 1}
	m := scale.Machine{Cores: 10, Busy: 0.5, WAL: 1e9, Disk: 6e12, Flush: 100, RoundTrip: 200, Redis: 5e5, CoreHour: 1, GBMonth: 1}
	p, err := scale.NewPlan(10_000, c, m, scale.Choice{Mean: 0.5, Months: 1, Lanes: 2})
	require.NoError(t, err)
	// A lane gets 5,000/s. b = 1 + 0.005 * (2*200 + 100 + 400 + 20 b) = 5.5 + 0.1 b
	require.InDelta(t, 5.5/0.9, p.Batch, 1e-4)
	require.InDelta(t, 20+400/p.Batch, p.Micros, 1e-9)
	require.InDelta(t, 10e6, p.WAL, 1e-6)
	require.InDelta(t, 5_000*500*30*86400.0, p.Journal, 1)
	require.Equal(t, "disk", p.First)
	require.InDelta(t, 2, p.Nodes, 0) // 6.48 TB on 6 TB
	require.False(t, p.Fits)
	require.InDelta(t, 1, p.Instances, 0)
	require.InDelta(t, 1, p.RedisNodes, 0)
	require.InDelta(t, 1, p.Connections, 0)
	require.InDelta(t, 200*((10*3+1)/3600.0+6_480/(30*86400.0)), p.Cost, 1e-9)
}

func TestPlan_Saturation_NamesResource(t *testing.T) {
	t.Parallel()
	m := scale.Assumed()
	choice := scale.Choice{Mean: 1, Lanes: 2}
	for first, change := range map[string]func(*scale.Costs){
		"CPU":  func(c *scale.Costs) { c.Row = 5000 },
		"WAL":  func(c *scale.Costs) { c.WAL = 1e6 },
		"disk": func(c *scale.Costs) { c.Journal = 1e6 },
	} {
		c := scale.Measured()
		change(&c)
		choice.Months = 1
		p, err := scale.NewPlan(1e5, c, m, choice)
		require.NoError(t, err)
		require.Equal(t, first, p.First)
		require.Greater(t, p.Nodes, 1.0)
	}
}

func TestPlan_MoreDebits_NeverNeedLess(t *testing.T) {
	t.Parallel()
	ways := scale.Ways()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w := &ways[r.IntN(len(ways))]
		low := math.Exp(r.Float64() * 13)
		high := low * (1 + 3*r.Float64())
		a, b := plan(t, low+1, w), plan(t, high+1, w)
		require.LessOrEqual(t, a.Nodes, b.Nodes, "%s: %g and %g debits/s", w.Name, low, high)
		require.LessOrEqual(t, a.Instances, b.Instances)
		require.LessOrEqual(t, a.RedisNodes, b.RedisNodes)
		require.LessOrEqual(t, a.WAL, b.WAL)
		require.LessOrEqual(t, a.Journal, b.Journal)
		require.True(t, b.Batch >= 1 && b.Batch <= scale.BatchMax, b.Batch)
	}
}

// If each instance uses all shards, batches become small. Then the cost of transactions is most of PostgreSQL's cost.
func TestPlan_Affinity_MakesBatchesLarger(t *testing.T) {
	t.Parallel()
	ways := scale.Ways()
	anywhere, near := plan(t, 1e6, &ways[1]), plan(t, 1e6, &ways[2])
	require.Greater(t, near.Batch, 2*anywhere.Batch)
	require.Less(t, near.Micros, anywhere.Micros/2)
}

func TestPlan_BadInput_NamesFieldAndBound(t *testing.T) {
	t.Parallel()
	good := func() (scale.Costs, scale.Machine, scale.Choice) {
		return scale.Measured(), scale.Assumed(), scale.Choice{Mean: 1, Lanes: 2, Citus: true}
	}
	for want, change := range map[string]func(*scale.Costs, *scale.Machine, *scale.Choice){
		"row is -1; must be between 0 and 1e18":   func(c *scale.Costs, _ *scale.Machine, _ *scale.Choice) { c.Row = -1 },
		"wal is NaN; must be between 0 and 1e18":  func(c *scale.Costs, _ *scale.Machine, _ *scale.Choice) { c.WAL = math.NaN() },
		"debits is 0; must be between 1 and 1e18": func(c *scale.Costs, _ *scale.Machine, _ *scale.Choice) { c.Debits = 0 },
		"busy is 1.5; must be at most 1":          func(_ *scale.Costs, m *scale.Machine, _ *scale.Choice) { m.Busy = 1.5 },
		"mean is 2; must be at most 1":            func(_ *scale.Costs, _ *scale.Machine, h *scale.Choice) { h.Mean = 2 },
		"lanes is 0; must be between 1 and 1e18":  func(_ *scale.Costs, _ *scale.Machine, h *scale.Choice) { h.Lanes = 0 },
	} {
		c, m, h := good()
		change(&c, &m, &h)
		_, err := scale.NewPlan(1000, c, m, h)
		require.EqualError(t, err, want)
	}
	c, m, h := good()
	_, err := scale.NewPlan(0, c, m, h)
	require.EqualError(t, err, "rate is 0; must be between 1 and 1e18")
}

func TestWrite_EachWay_HasTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, scale.Write(&out, scale.Ways(), scale.Assumed()))
	for _, w := range scale.Ways() {
		require.Contains(t, out.String(), "**"+w.Name+"**")
	}
	require.NotContains(t, out.String(), "NaN")
}

// The document must contain the tables that the program prints.
func TestWrite_Document_HasTheTables(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/scaling.md")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, scale.Write(&out, scale.Ways(), scale.Assumed()))
	require.Contains(t, string(page), strings.TrimSpace(out.String()), "run `bin/quotasvc-bench scale` and paste its tables")
}
