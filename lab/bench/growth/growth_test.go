package growth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// sizeOf returns a size with these rates (debits/s) and p99s, one for each round.
func sizeOf(label string, value float64, memory int64, rates, p99s []float64) Size {
	var loads []Load
	for _, name := range []string{Debits, Checks} {
		loads = append(loads, Load{Name: name, Rates: rates, P50s: p99s, P99s: p99s, Achieved: 1})
	}
	return Size{Label: label, Value: value, Memory: memory, Verified: 1, Loads: loads}
}

func stepOf(name string, sizes ...Size) *Step {
	s := &Step{Name: name, Settings: "small", Sizes: sizes}
	s.Judge()
	return s
}

// misses returns the names of the targets that were missed.
func misses(s *Step) (names []string) {
	for _, t := range s.Targets {
		if !t.Pass {
			names = append(names, t.What)
		}
	}
	return names
}

func TestJudge_Sizes_RatioWithinRoundAndMemory(t *testing.T) {
	t.Parallel()
	first := sizeOf("1", 1, 100e6, []float64{1000, 500, 1000}, []float64{1000, 4000, 1000})
	// In the second round the machine was slow for both sizes, so the ratios stay the same.
	same := sizeOf("2", 2, 109e6, []float64{860, 430, 900}, []float64{1400, 5600, 1500})
	require.Empty(t, misses(stepOf(Journal, first, same)))
	slow := sizeOf("2", 2, 111e6, []float64{840, 420, 900}, []float64{1600, 6400, 1000})
	require.Equal(t, []string{
		"journal, 2: throughput of debits", "journal, 2: p99 of debits", "journal, 2: throughput of checks", "journal, 2: p99 of checks", "journal, 2: peak memory of an instance",
	}, misses(stepOf(Journal, first, slow)))

	require.Empty(t, misses(stepOf(Tenants, first, sizeOf("2", 2, 149e6, first.Loads[0].Rates, first.Loads[0].P99s))))
	require.Equal(t, []string{"tenants, 2: peak memory of the service"}, misses(stepOf(Tenants, first, sizeOf("2", 2, 151e6, first.Loads[0].Rates, first.Loads[0].P99s))))
	require.Empty(t, misses(stepOf(Catalogue, first, sizeOf("1,001", 1001, 102e6, first.Loads[0].Rates, first.Loads[0].P99s))))
	require.Len(t, misses(stepOf(Catalogue, first, sizeOf("1,001", 1001, 104e6, first.Loads[0].Rates, first.Loads[0].P99s))), 1)
}

func TestJudge_RefusedOrLateRequests_NoTargetIsMet(t *testing.T) {
	t.Parallel()
	rates := []float64{1000}
	first, refused, late := sizeOf("1", 1, 0, rates, rates), sizeOf("2", 2, 0, rates, rates), sizeOf("2", 2, 0, rates, rates)
	refused.Loads[0].Errors = 1
	late.Loads[1].Achieved = 0.98
	require.Equal(t, []string{"journal, 2: throughput of debits", "journal, 2: p99 of debits"}, misses(stepOf(Journal, first, refused)))
	require.Equal(t, []string{"journal, 2: p99 of checks"}, misses(stepOf(Journal, first, late)))
	none := sizeOf("2", 2, 0, nil, nil)
	require.Len(t, misses(stepOf(Journal, first, none)), 4)
}

func layoutsAndMonth() (balances, month *Step) {
	balances = &Step{Name: Balances, Layouts: []Layout{
		{Label: "50", Hot: 0.5, HeapBefore: 1e6, Heap: 9e6, Dead: -1},
		{Label: AsMigrated, Debits: 100, Hot: 0.96, HeapBefore: 1e6, IndexesWas: 1e6, Heap: 2e6, Indexes: 1e6},
	}}
	balances.Judge()
	p := func(name string, p99 int64) Phase {
		return Phase{Name: name, Debits: 10, Latency: report.Latency{P50: 1, P99: p99}}
	}
	month = &Step{Name: MonthEnd, Month: &Month{Tenants: 1000, Phases: []Phase{p("before", 1000), p("beside the roll", 2000)}, Moments: []Phase{p("", 500), p("", 900)}}}
	month.Judge()
	return balances, month
}

func TestJudge_LayoutOfTheSchemaAndMonth_Bounds(t *testing.T) {
	t.Parallel()
	balances, month := layoutsAndMonth()
	require.Empty(t, misses(balances), "only the layout of the schema has targets")
	require.Empty(t, misses(month))
	balances.Layouts[1].Hot, balances.Layouts[1].Heap = 0.94, 4e6
	balances.Judge()
	require.Len(t, misses(balances), 2)
	month.Month.Phases[1].P99 = 2001
	month.Judge()
	require.Len(t, misses(month), 1)
	month.Month.Phases[1].P99, month.Month.Errors = 1, 1
	month.Judge()
	require.Len(t, misses(month), 1)
}

func TestResult_Stored_ReadBackInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := Read(dir)
	require.NoError(t, err)
	require.Empty(t, r.Steps)
	rates := []float64{1000}
	r.Put(stepOf(Journal, sizeOf("1", 1, 0, rates, rates)))
	r.Put(stepOf(Tenants, sizeOf("1", 1, 0, rates, rates)))
	r.Put(stepOf(Journal, sizeOf("other", 1, 0, rates, rates)))
	require.NoError(t, r.Write(dir))
	again, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, r.Steps, again.Steps)
	require.Equal(t, []string{Tenants, Journal}, []string{again.Steps[0].Name, again.Steps[1].Name})
	require.Equal(t, "other", again.Step(Journal).Sizes[0].Label)
	require.NoError(t, os.WriteFile(Store(dir), []byte("{"), 0o600))
	_, err = Read(dir)
	require.ErrorContains(t, err, "growth.json")
}

func TestResult_Record_NeedsAllSteps(t *testing.T) {
	t.Parallel()
	docs, rates := t.TempDir(), []float64{1000}
	r := &Result{}
	balances, month := layoutsAndMonth()
	for _, name := range []string{Tenants, Journal, Instances, Partitions, Catalogue} {
		s := stepOf(name, sizeOf("1", 1, 1, rates, rates), sizeOf("2", 2, 1, []float64{100}, rates))
		s.LeftOut = []string{"3: no room"}
		r.Put(s)
	}
	r.Put(balances)
	require.ErrorIs(t, r.Keep(docs), ErrPartial)
	r.Put(month)
	require.NoError(t, r.Keep(docs))
	for _, name := range []string{"bench/growth.json", "img/growth-throughput.svg", "img/growth-latency.svg", "img/growth-targets.svg", "img/growth-balances.svg", "img/growth-month-end.svg"} {
		text, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		require.NotEmpty(t, text)
		if strings.HasSuffix(name, "throughput.svg") {
			require.Contains(t, string(text), "#CF222E", "a size that misses the bound is red")
			require.Contains(t, string(text), "prefers-color-scheme: dark")
		}
	}
	var page, screen strings.Builder
	require.NoError(t, r.Markdown(&page))
	require.Contains(t, page.String(), "| journal | debits/s |")
	require.Contains(t, page.String(), "- missed: journal, 2: throughput of debits is 0.1 x, wanted ≥ 0.85 x")
	require.Contains(t, page.String(), "Not measured: 3: no room.")
	require.NoError(t, r.Print(&report.Printer{Out: &screen}))
	require.Contains(t, screen.String(), "LEFT OUT: 3: no room")
	require.False(t, r.Met())
}
