package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// whole returns the results of a run that measured everything. In these results, a request to echo costs 20 µs, a
// debit 60 µs and a check 28 µs.
func whole() *Results {
	cpu := func(service, postgres int) CPU {
		return CPU{Service: time.Duration(service) * time.Microsecond, PostgreSQL: time.Duration(postgres) * time.Microsecond}
	}
	v := func(name string, baseline bool, rate float64, c CPU) Variant {
		return Variant{Name: name, Baseline: baseline, Rates: []float64{rate, rate}, Median: rate, CPU: c, Rounds: []CPU{c, c}}
	}
	r := &Results{
		Machine: Machine{CPU: "a", Cores: 2, Tenants: 10, ServiceMemory: 100e6}, VerifyPerSecond: 600e3,
		Variants: []Variant{
			v(EchoDebits, true, 40e3, cpu(20, 5)), v(EchoCheck, true, 40e3, cpu(20, 0)), v(DebitsMany, false, 15e3, cpu(30, 30)),
			v(DebitsHot, false, 18e3, cpu(40, 7)), v(DebitBatches, false, 50e3, cpu(20, 21)), v(ChecksMany, false, 30e3, cpu(28, 0)),
			v(CheckBatches, false, 200e3, cpu(6, 0)), v(PLSQLMany, true, 5e3, cpu(0, 140)),
			v(DebitsThresholds, false, 15e3, cpu(33, 33)), v(DebitsPlain, false, 15e3, cpu(30, 30)),
		},
		OneClient: &OpenLoop{Name: LoadDebit, Latency: Latency{P99: 2900}},
		OpenLoops: []OpenLoop{
			{Name: LoadDebit, Rate: 1000, Achieved: 1000, Latency: Latency{P50: 900, P99: 8001}},
			{Name: LoadCheck, Rate: 10_000, Achieved: 10_000, Latency: Latency{P50: 300, P99: 5000}},
			{Name: LoadDebit, Rate: 10_000, Achieved: 9000, Latency: Latency{P50: 900, P99: 10_000}},
		},
		InUse: &InUse{Tenants: 200_000, FirstTouch: 4000, Memory: 257e6},
	}
	r.Judge()
	return r
}

func target(t *testing.T, r *Results, part string) *Target {
	t.Helper()
	for i := range r.Targets {
		if strings.Contains(r.Targets[i].What, part) {
			return &r.Targets[i]
		}
	}
	t.Fatalf("no target %q", part)
	return nil
}

func TestJudge_Targets_MetAndMissed(t *testing.T) {
	t.Parallel()
	r := whole()
	for part, want := range map[string]struct {
		measured float64
		pass     bool
	}{
		"a debit, many tenants, to bare": {3, true}, "a debit, one hot tenant, to bare": {2.35, true}, "a debit in a batch": {41, false},
		"debits in batches (or": {50e3, true}, // ten times the rate of the PL/pgSQL call
		"a check, many":         {1.4, true}, "each of 64": {0.3, true}, "one client": {2.9, true}, "debit at 1,000/s": {8.001, false}, "check at 10,000/s": {5, true},
		"debit at 10,000/s":    {10, false}, // the rate was not reached
		"memory, 10 tenants":   {100, true},
		"memory, 200,000":      {257, false},
		"first debits":         {4000, false},
		"verify, with a proce": {600e3, true},
		"none of ten":          {1.1, false},
	} {
		got := target(t, r, part)
		require.InDelta(t, want.measured, got.Measured, 1e-9, part)
		require.Equal(t, want.pass, got.Pass, part)
	}
	require.Len(t, r.Targets, 15)
	require.False(t, r.Met())
}

func TestCost_Rounds_ComparedWithinEach(t *testing.T) {
	t.Parallel()
	// In the second round, all variants took twice the CPU time. The ratios must not change.
	cpu := func(us ...int) (all []CPU) {
		for _, n := range us {
			all = append(all, CPU{Service: time.Duration(n) * time.Microsecond})
		}
		return all
	}
	r := Results{Variants: []Variant{
		{Name: "a", Rates: []float64{40, 20, 44}, Rounds: cpu(40, 80, 44)}, {Name: "b", Rates: []float64{10, 5, 10}, Rounds: cpu(10, 20, 10)},
	}}
	for _, got := range []Target{r.ratio("", "a", "b"), r.cost("", "a", "b", 4)} {
		require.InDelta(t, 4.0, got.Measured, 1e-9)
		require.InDelta(t, 4.4, got.High, 1e-9)
	}
	require.True(t, func() bool { c := r.cost("", "a", "b", 4); return c.Pass }())
	require.False(t, func() bool { c := r.cost("", "a", "b", 3.9); return c.Pass }())
}

func TestTargetsPage_MissedTargets_RedAndNeverGreen(t *testing.T) {
	t.Parallel()
	const green, red = "#2DA44E", "#CF222E"
	count := func(targets ...Target) (g, r int) {
		path := filepath.Join(t.TempDir(), "targets.svg")
		require.NoError(t, TargetsPage("t", targets).Save(path))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, body, _ := strings.Cut(string(text), "</style>")
		return strings.Count(body, green), strings.Count(body, red)
	}
	g0, r0 := count(AtMost("nothing", "", 1, 0)) // the number of green and of red inks in the keys and in one green bar
	for _, missed := range []Target{AtMost("a", "x", 3, 3.01), AtLeast("b", "/s", 10, 9.99), AtMost("c", "", 0, 1), AtLeast("d", "/s", 10, 0)} {
		g, r := count(missed)
		require.Equal(t, g0-1, g, missed.What)
		require.Equal(t, r0+1, r, missed.What)
		require.GreaterOrEqual(t, missed.strain(), 1.0)
	}
	var out strings.Builder
	require.NoError(t, (&Printer{Out: &out, Color: true}).Targets([]Target{AtMost("a", "x", 3, 4), AtMost("b", "x", 3, 2)}))
	require.Contains(t, out.String(), "\x1b[31mMISSED")
	require.Equal(t, 1, strings.Count(out.String(), "\x1b[32m"))
}

func TestWrite_NothingToShow_PictureLeftOut(t *testing.T) {
	t.Parallel()
	baseline := []Variant{{Name: PLSQLHot, Baseline: true, Rates: []float64{1800}, Median: 1800}}
	for name, c := range map[string]struct {
		of   *Results
		want []string
	}{
		"no target, no rate, no CPU": {&Results{Variants: baseline}, []string{"throughput.svg"}},
		"everything":                 {whole(), []string{"cpu.svg", "latency.svg", "targets.svg", "throughput.svg"}},
		"no ratio": {
			&Results{Variants: baseline, OpenLoops: []OpenLoop{{Name: LoadCheck, Rate: 1000}}},
			[]string{"latency.svg", "throughput.svg"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, old := range []string{"latency.svg", "targets.svg", "cpu.svg"} { // from an earlier, complete run
				require.NoError(t, os.WriteFile(filepath.Join(dir, old), nil, 0o600))
			}
			c.of.Judge()
			require.NoError(t, c.of.Write(dir))
			drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
			require.NoError(t, err)
			for i := range drawn {
				info, err := os.Stat(drawn[i])
				require.NoError(t, err)
				require.NotZero(t, info.Size(), "%s is the earlier run's", drawn[i])
				drawn[i] = filepath.Base(drawn[i])
			}
			require.Equal(t, c.want, drawn)
		})
	}
}

func TestRecord_LaterRun_ShowsChangesAndOtherMachine(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(docs, "img"), 0o700))
	none, err := Last(docs)
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, whole().Keep(docs))
	last, err := Last(docs)
	require.NoError(t, err)
	now := whole()
	now.Machine.CPU = "another"
	for i := range now.Variants {
		now.Variants[i].Median *= 1.1
		for j := range now.Variants[i].Rounds {
			if !now.Variants[i].Baseline {
				now.Variants[i].Rounds[j].Service *= 2
			}
		}
	}
	now.Judge()
	var out strings.Builder
	require.NoError(t, (&Printer{Out: &out, Last: last}).Results(now))
	require.Contains(t, out.String(), "MACHINE DIFFERS")
	require.Regexp(t, `CPU of a debit, many tenants, to bare echo +≤ 3 x +4.5 x +4.5 to 4.5 +3 x +\+50% +MISSED`, out.String())
	require.Regexp(t, `debits, many tenants +16500 +\+10%`, out.String())

	out.Reset()
	require.NoError(t, (&Printer{Out: &out, Last: last}).Results(whole()))
	require.NotContains(t, out.String(), "DIFFERS")
	out.Reset()
	require.NoError(t, (&Printer{Out: &out}).Results(whole()))
	require.NotContains(t, out.String(), "record of")

	pictures, err := filepath.Glob(filepath.Join(docs, "img", "bench-*.svg"))
	require.NoError(t, err)
	require.Len(t, pictures, 4)
}

func TestRecord_PartialRunOrBrokenFile_Refused(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	part := whole()
	part.OpenLoops = nil
	require.ErrorIs(t, part.Keep(docs), ErrPartial)
	require.NoError(t, os.Mkdir(filepath.Join(docs, "bench"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(docs, "bench", "results.json"), []byte("{"), 0o600))
	_, err := Last(docs)
	var syntax *json.SyntaxError
	require.ErrorAs(t, err, &syntax)
}
