package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/growth"
)

// GrowthConfig configures a run that compares small and large amounts of stored data.
type GrowthConfig struct {
	Programs
	Sizes       GrowthSizes
	Only        []string // names of the steps to measure; empty: all
	Again       []string // names of steps to measure again although a result is stored
	Rounds      int      // 1..100
	Slice       time.Duration
	OpenFor     time.Duration
	Connections int               // connections of the load generator, 1..4096
	Rate        int               // requests/s at which latency is measured
	DiskShare   float64           // share of the free disk that a step may use, above 0 and at most 1
	PostgreSQL  map[string]string // replaces settings of `bench run`, for example with MemoryQuarter's shared_buffers

	// Tamper changes a database after the load. Tests use it to show that the run detects the change. Nil: no change.
	Tamper func(ctx context.Context, databaseURL string) error
}

// GrowthSizes contains the sizes of each dimension. The smallest size is the first.
type GrowthSizes struct {
	Tenants      []int // stored tenants, which are also the tenants of the load
	Entries      []int // entries of the journal, divided between EntryTenants tenants
	EntryTenants int
	Instances    []int
	Months       []int // numbers of monthly partitions
	Rules        []int
	Base         int   // tenants in the dimensions Instances, Months and Rules
	Fillfactors  []int // fillfactors of the table balances; the schema has 60
	Debits       int   // debits for each layout of the table balances; there is one balance for a hundred debits
	MonthTenants int   // tenants whose period ends
	MonthRate    int   // debits/s of the load before, at and after the end of the period
	Quiet        time.Duration
}

// GrowthTiny, GrowthMedium and GrowthFull are presets of sizes.
var (
	// GrowthTiny takes seconds, for tests.
	GrowthTiny = GrowthSizes{
		Tenants: []int{100, 400}, Entries: []int{0, 8000}, EntryTenants: 100, Instances: []int{1, 2}, Months: []int{12, 24}, Rules: []int{20, 400}, Base: 100,
		Fillfactors: []int{60, 90}, Debits: 4000, MonthTenants: 1000, MonthRate: 100, Quiet: time.Second,
	}
	// GrowthMedium takes about 40 minutes on two cores.
	GrowthMedium = GrowthSizes{
		Tenants: []int{1000, 100_000, 1_000_000}, Entries: []int{0, 20_000_000}, EntryTenants: 20_000, Instances: []int{1, 2, 4}, Months: []int{12, 60},
		Rules: []int{100, 100_000}, Base: 10_000, Fillfactors: []int{50, 60, 70, 90}, Debits: 2_000_000, MonthTenants: 1_000_000, MonthRate: 500, Quiet: 20 * time.Second,
	}
	// GrowthFull includes a journal of 100M entries, and 10M debits on each layout of balances.
	GrowthFull = func() GrowthSizes {
		s := GrowthMedium
		s.Entries, s.Debits = []int{0, 20_000_000, 100_000_000}, 10_000_000
		return s
	}()
)

func (c *GrowthConfig) validate() error {
	z := &c.Sizes
	for _, d := range []struct {
		name        string
		of          []int
		least, most int
	}{
		{"tenants", z.Tenants, 1, tenantsMax},
		{"entries", z.Entries, 0, 1_000_000_000},
		{"instances", z.Instances, 1, 8},
		{"months", z.Months, 1, 600},
		{"rules", z.Rules, 0, 1_000_000},
		{"fillfactors", z.Fillfactors, 10, 100},
		{"entry-tenants", []int{z.EntryTenants}, 1, tenantsMax},
		{"base", []int{z.Base}, 1, tenantsMax},
		{"debits", []int{z.Debits}, 100, 100_000_000},
		{"month-tenants", []int{z.MonthTenants}, 1, tenantsMax},
		{"month-rate", []int{z.MonthRate}, 1, openRateMax},
		{"rate", []int{c.Rate}, 1, openRateMax},
		{"rounds", []int{c.Rounds}, 1, 100},
		{"connections", []int{c.Connections}, 1, 4096},
	} {
		if len(d.of) == 0 || !slices.IsSorted(d.of) {
			return fmt.Errorf("%s is %v; at least one is needed, the smallest first", d.name, d.of)
		}
		for _, n := range d.of {
			if n < d.least || n > d.most {
				return fmt.Errorf("%s: %d; must be between %d and %d", d.name, n, d.least, d.most)
			}
		}
	}
	for name, d := range map[string]time.Duration{"slice": c.Slice, "open-for": c.OpenFor, "quiet": z.Quiet} {
		if d < 100*time.Millisecond || d > time.Minute {
			return fmt.Errorf("%s is %s; must be between 100ms and 1m", name, d)
		}
	}
	if c.DiskShare <= 0 || c.DiskShare > 1 {
		return fmt.Errorf("disk-share is %g; must be above 0 and at most 1", c.DiskShare)
	}
	for _, name := range slices.Concat(c.Only, c.Again) {
		if !slices.Contains(growth.Names(), name) {
			return fmt.Errorf("no step is named %q; there are %s", name, strings.Join(growth.Names(), ", "))
		}
	}
	return nil
}

// growthStep is a step that a run may measure.
type growthStep struct {
	name     string
	settings string
	expect   time.Duration // expected duration on two idle cores, for the progress line
	run      func(ctx context.Context) (growth.Step, error)
}

// grower is the state of a run of Growth.
type grower struct {
	cfg   *GrowthConfig
	stand *stand
	dir   string
	seq   atomic.Uint64
	bar   growthBar
}

// Growth measures the steps that have no stored result with the same settings. It stores the result of each step when
// the step is finished.
func Growth(ctx context.Context, cfg GrowthConfig) (_ *growth.Result, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r, err := growth.Read(cfg.Dir)
	if err != nil {
		return nil, err
	}
	g := &grower{cfg: &cfg, bar: growthBar{out: cfg.Progress, began: time.Now()}}
	var todo []growthStep
	for _, s := range g.steps() {
		if g.wanted(&s, r) {
			todo = append(todo, s)
			g.bar.whole += s.expect
		}
	}
	if len(todo) == 0 {
		return r, r.Write(cfg.Dir)
	}
	var remove func() error
	if g.dir, remove, err = makeData(cfg.Dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := g.build(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.stand.stop()) }()
	for _, s := range todo {
		if err := g.step(ctx, &s, r); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return r, nil
}

// wanted reports whether to measure a step. If Only is not empty, it must name the step. A step that has a stored
// result with the same settings is measured again only if Again names it.
func (g *grower) wanted(s *growthStep, r *growth.Result) bool {
	if len(g.cfg.Only) > 0 && !slices.Contains(g.cfg.Only, s.name) {
		return false
	}
	was := r.Step(s.name)
	if was == nil || was.Settings != s.settings || slices.Contains(g.cfg.Again, s.name) {
		return true
	}
	if g.bar.out != nil { // tests have no progress bar
		g.say("%s was measured on %s; --again %s repeats it", s.name, was.Machine.Date.Format(time.DateTime), s.name)
	}
	return false
}

// step measures one step and stores its result.
func (g *grower) step(ctx context.Context, s *growthStep, r *growth.Result) error {
	began := time.Now()
	g.bar.step, g.bar.within = s, 0
	g.say("%s", s.settings)
	machine, err := g.stand.describe(ctx)
	if err != nil {
		return err
	}
	out, err := s.run(ctx)
	if err = errors.Join(err, g.clear()); err != nil {
		return err
	}
	out.Name, out.Settings, out.Machine = s.name, s.settings, machine
	out.Took = time.Since(began).Round(time.Second).String()
	out.Judge()
	r.Put(&out)
	g.bar.done += s.expect
	g.bar.step = nil
	return r.Write(g.cfg.Dir)
}

// steps returns all steps with their settings.
func (g *grower) steps() []growthStep {
	c, z := g.cfg, &g.cfg.Sizes
	load := fmt.Sprintf("debits until at most %g of them write a whole page into the WAL, then %d rounds: a lead-in, %s as fast as possible, %s at %s/s; %d connections", warmPages, c.Rounds, c.Slice, c.OpenFor, chart.Figure(float64(c.Rate)), c.Connections)
	for _, name := range slices.Sorted(maps.Keys(c.PostgreSQL)) {
		load += fmt.Sprintf("; PostgreSQL with %s=%s", name, c.PostgreSQL[name])
	}
	each := func(of []int) time.Duration { // for all rounds and the start of every size; some lead-ins take the maximum
		round := 2*(time.Duration((1+leadIn)*float64(c.Slice))+c.OpenFor*5/4) + leadMost/2*c.Slice
		return time.Duration(len(of)) * (round*time.Duration(c.Rounds) + 2*warmLeast*c.Slice + 10*time.Second)
	}
	rows := func(n int, micros float64) time.Duration {
		return time.Duration(float64(n) * micros * float64(time.Microsecond))
	}
	with := func(format string, of []int) string { return fmt.Sprintf(format, list(of)) + "; " + load }
	base := fmt.Sprintf(", %s tenants", chart.Figure(float64(z.Base)))
	return []growthStep{
		{growth.Tenants, with("%s tenants, random ones of all in the load", z.Tenants), each(append(z.Tenants, 0)) + rows(sum(z.Tenants), 100), g.tenants},
		{
			growth.Journal, with("journals of %s entries", z.Entries) + fmt.Sprintf("; %s tenants", chart.Figure(float64(z.EntryTenants))),
			each(z.Entries) + rows(sum(z.Entries), 12), g.journal,
		},
		{growth.Instances, with("%s instances"+base, z.Instances), each(z.Instances), g.instances},
		{growth.Partitions, with("at least %s months of partitions"+base, z.Months), each(z.Months), g.partitions},
		{growth.Catalogue, with("%s rules"+base, z.Rules), each(z.Rules) + rows(sum(z.Rules), 100), g.catalogue},
		{
			growth.Balances, fmt.Sprintf("%s debits in batches on %s balances, with the fillfactors %s, other settings of autovacuum, and a snapshot that stays open", chart.Figure(float64(z.Debits)),
				chart.Figure(float64(balancesOf(z.Debits))), list(z.Fillfactors)),
			time.Duration(len(z.Fillfactors)+4) * (10*time.Second + rows(z.Debits, 40)), g.layouts,
		},
		{
			growth.MonthEnd, fmt.Sprintf("%s balances whose period ends at the same time, %s live debits/s of random ones; %s before and after",
				chart.Figure(float64(z.MonthTenants)), chart.Figure(float64(z.MonthRate)), z.Quiet),
			5*z.Quiet + rows(z.MonthTenants, 250) + 20*time.Second, g.month,
		},
	}
}

func sum(of []int) (n int) {
	for _, v := range of {
		n += v
	}
	return n
}

func list(of []int) string {
	texts := make([]string, len(of))
	for i, v := range of {
		texts[i] = chart.Figure(float64(v))
	}
	return strings.Join(texts, " / ")
}

// growthBar writes progress lines. Each line contains the finished share and an estimate of the remaining time.
type growthBar struct {
	out    io.Writer
	began  time.Time
	whole  time.Duration // expected time of all steps to measure
	done   time.Duration // expected time of the finished steps
	step   *growthStep   // nil between steps
	within float64       // the finished share of step, 0..1
}

// at sets the finished share of the current step.
func (g *grower) at(share float64) { g.bar.within = min(max(share, 0), 1) }

func (g *grower) say(format string, args ...any) {
	b := &g.bar
	text := fmt.Sprintf(format, args...)
	if b.step == nil || b.whole == 0 {
		fmt.Fprintln(b.out, text)
		return
	}
	share := min(float64(b.done)+b.within*float64(b.step.expect), float64(b.whole)) / float64(b.whole)
	left := float64(b.whole) * (1 - share) // the expected time; replaced below when the elapsed time is known
	if share > 0.02 {
		left = float64(time.Since(b.began)) * (1 - share) / share
	}
	const width = 20
	full := int(math.Round(share * width))
	fmt.Fprintf(b.out, "[%s%s] %3.0f %%, about %s left  %s: %s\n", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share,
		time.Duration(left).Round(time.Second), b.step.name, text)
}
