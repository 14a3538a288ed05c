package bench

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench/growth"
)

func growthConfig(dir string, progress io.Writer) GrowthConfig {
	return GrowthConfig{
		Programs: Programs{Exe: "/no/such/binary", Dir: dir, Progress: progress}, Sizes: GrowthTiny, Rounds: 1,
		Slice: time.Second, OpenFor: time.Second, Connections: 1, Rate: 1, DiskShare: 1,
	}
}

func TestGrowth_Config_Bounds(t *testing.T) {
	t.Parallel()
	good := growthConfig(t.TempDir(), io.Discard)
	require.NoError(t, good.validate())
	for name, change := range map[string]func(*GrowthConfig){
		"tenants: 0":                   func(c *GrowthConfig) { c.Sizes.Tenants = []int{0, 1} },
		"tenants: 1000001":             func(c *GrowthConfig) { c.Sizes.Tenants = []int{tenantsMax + 1} },
		"the smallest first":           func(c *GrowthConfig) { c.Sizes.Rules = []int{2, 1} },
		"at least one":                 func(c *GrowthConfig) { c.Sizes.Months = nil },
		"disk-share is 0":              func(c *GrowthConfig) { c.DiskShare = 0 },
		"slice is 1ms":                 func(c *GrowthConfig) { c.Slice = time.Millisecond },
		"no step is named \"journey\"": func(c *GrowthConfig) { c.Again = []string{"journey"} },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.validate(), name)
	}
}

// A finished step is not measured again, unless its settings differ or Again names it.
func TestGrowth_StoredSteps_AreNotRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var progress bytes.Buffer
	cfg := growthConfig(dir, &progress)
	g := &grower{cfg: &cfg}
	r := &growth.Result{}
	for _, s := range g.steps() {
		r.Put(&growth.Step{Name: s.name, Settings: s.settings})
	}
	require.NoError(t, r.Write(dir))
	out, err := Growth(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, out.Steps, len(growth.Names()))
	require.Contains(t, progress.String(), "--again journal repeats it")

	for name, change := range map[string]func(*GrowthConfig){
		"again": func(c *GrowthConfig) { c.Again = []string{growth.Journal} }, "rounds": func(c *GrowthConfig) { c.Rounds = 2 },
		"sizes": func(c *GrowthConfig) { c.Sizes.Months = []int{12} }, "setting": func(c *GrowthConfig) { c.PostgreSQL = map[string]string{"shared_buffers": "1GB"} },
	} {
		other := cfg
		change(&other)
		h := &grower{cfg: &other}
		todo := 0
		for _, s := range h.steps() {
			if h.wanted(&s, r) {
				todo++
			}
		}
		require.Positive(t, todo, name)
	}
}

// A size that does not fit on the disk is listed with the reason. If no size fits, the step fails.
func TestGrowth_LittleDisk_LargeSizesAreLeftOut(t *testing.T) {
	t.Parallel()
	free, err := freeBytes(t.TempDir())
	require.NoError(t, err)
	require.Greater(t, free, 1e6)
	_, err = freeBytes(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)

	var progress bytes.Buffer
	cfg := growthConfig(t.TempDir(), &progress)
	cfg.DiskShare = 0.5
	g := &grower{cfg: &cfg, bar: growthBar{out: &progress}}
	fit, leftOut, err := g.fitInto(10e9, []int{1, 2, 50}, "entries", func(n int) float64 { return float64(n) * 1e8 })
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, fit)
	require.Len(t, leftOut, 1)
	require.Contains(t, leftOut[0], "50 entries: it needs about 14.3 GB")
	require.Contains(t, progress.String(), "LEFT OUT: 50 entries")
	_, _, err = g.fitInto(10e9, []int{100}, "entries", func(n int) float64 { return float64(n) * 1e8 })
	require.ErrorContains(t, err, "no room")
}

func TestGrown_DebitGone_IsNoticed(t *testing.T) {
	t.Parallel()
	s := &grown{Size: growth.Size{Entries: 200}, acked: 30}
	require.NoError(t, s.complete(230))
	require.NoError(t, s.complete(231), "a debit was carried out, and its answer was lost")
	require.ErrorContains(t, s.complete(229), "30 debits were answered")
}

func TestTimeline_Phases_DivideTheSeconds(t *testing.T) {
	t.Parallel()
	line := &timeline{}
	for s := range 10 {
		for range 5 {
			line.note(time.Duration(s)*time.Second+time.Millisecond, time.Duration(s+1)*time.Millisecond)
		}
	}
	m := &growth.Month{Ended: 3.2, JobFrom: 5.9, JobTo: 8.1}
	line.phases(m, 1)
	require.Len(t, m.Moments, 10)
	var debits, p99 []int64
	for _, p := range m.Phases {
		debits, p99 = append(debits, p.Debits/5), append(p99, p.P99/1000)
	}
	require.Equal(t, []int64{2, 2, 3, 2}, debits, "seconds 1-2, 3-4, 5-7, 8-9")
	require.Equal(t, []int64{2, 4, 8, 9}, p99, "99 % of few values: the largest, rounded down")
}
