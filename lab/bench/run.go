package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// Programs names the programs of a run, and where the run writes.
type Programs struct {
	Exe  string // the quotasvc binary; required
	Self string // the binary that runs "baseline --conns N" and "attack"; required by Run and RunFlood
	// Directory of the results and, during the run, of the servers' data; required, on the measured disk.
	Dir      string
	Progress io.Writer // gets one line per step
	Log      io.Writer // output of the servers
}

// Config configures a run.
type Config struct {
	Programs
	Rounds      int           // 1..100
	Slice       time.Duration // duration of a variant in a round
	Connections int           // connections of the load generator, 1..4096
	Tenants     int           // 1..tenantsMax
	InUse       int           // tenants that get a first debit after the rounds; Tenants + InUse <= tenantsMax; 0: none
	Batch       int           // debits per batch request, 1..1000
	Rates       []int         // rates of the open loops, in requests/s
	OpenFor     time.Duration // duration of each open loop
	Only        []string      // measure only the variants whose names contain one of these; empty: all
	Profile     time.Duration // duration of a CPU profile of each variant of the service after the rounds; 0: none
	Against     string        // another binary of the service to measure in the same rounds; empty: none
	Env         []string      // further environment of the processes
}

func (c *Config) validate() error {
	switch {
	case c.Rounds < 1 || c.Rounds > 100:
		return fmt.Errorf("rounds is %d; must be between 1 and 100", c.Rounds)
	case c.Slice < 100*time.Millisecond || c.Slice > time.Minute:
		return fmt.Errorf("slice is %s; must be between 100ms and 1m", c.Slice)
	case c.OpenFor < 100*time.Millisecond || c.OpenFor > time.Minute:
		return fmt.Errorf("open-for is %s; must be between 100ms and 1m", c.OpenFor)
	case c.Connections < 1 || c.Connections > 4096:
		return fmt.Errorf("connections is %d; must be between 1 and 4096", c.Connections)
	case c.Tenants < 1 || c.Tenants > tenantsMax:
		return fmt.Errorf("tenants is %d; must be between 1 and %d", c.Tenants, tenantsMax)
	case c.InUse < 0 || c.Tenants+c.InUse > tenantsMax:
		return fmt.Errorf("in-use is %d; must be between 0 and %d", c.InUse, tenantsMax-c.Tenants)
	case c.Batch < 1 || c.Batch > 1000:
		return fmt.Errorf("batch is %d; must be between 1 and 1000", c.Batch)
	}
	if c.Profile < 0 || c.Profile > time.Minute {
		return fmt.Errorf("profile is %s; must be between 0s and 1m", c.Profile)
	}
	for _, r := range c.Rates {
		if r < 1 || r > openRateMax {
			return fmt.Errorf("rate %d; must be between 1 and %d", r, openRateMax)
		}
	}
	return nil
}

// runner is the state of a run of Run.
type runner struct {
	cfg   Config
	stand *stand
	seq   atomic.Uint64 // number of the last request; keys are derived from it, so no key is used twice
	pools []*pgxpool.Pool
	acked atomic.Int64 // debits that the service has answered with 200
	out   report.Results
}

// Run measures the service and the baselines. It writes results.json and charts into cfg.Dir.
func Run(ctx context.Context, cfg Config) (_ *report.Results, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	began := time.Now()
	dir, remove, err := makeData(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := &runner{cfg: cfg}
	r.say("starting PostgreSQL, Redis, the service and the baseline in %s", dir)
	if r.stand, err = build(ctx, cfg, dir, webConns); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stand.stop()) }()
	defer r.close()
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	r.out.Took = time.Since(began).Round(time.Second).String()
	return &r.out, r.out.Write(cfg.Dir)
}

// webConns is the size of the baseline's pool in its HTTP server. On few cores, further connections would only wait
// for locks.
const webConns = 16

// makeData creates the directory of the results and, in it, a directory for the servers' data. The function `remove`
// deletes the directory of the data.
func makeData(results string) (dir string, remove func() error, err error) {
	if err := os.MkdirAll(results, 0o755); err != nil {
		return "", nil, fmt.Errorf("results directory: %w", err)
	}
	if dir, err = os.MkdirTemp(results, "data-"); err != nil {
		return "", nil, fmt.Errorf("data directory: %w", err)
	}
	remove = func() error { return errors.Join(os.RemoveAll(dir), removeNotes(dir)) }
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL's user must pass through
		return "", nil, errors.Join(fmt.Errorf("data directory: %w", err), remove())
	}
	return dir, remove, nil
}

func removeNotes(dir string) error {
	notes, err := filepath.Glob(dir + "*.path")
	for _, n := range notes {
		err = errors.Join(err, os.Remove(n))
	}
	return err
}

func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.cfg.Progress, format+"\n", args...) }

func (r *runner) close() {
	for _, p := range r.pools {
		p.Close()
	}
}

func (r *runner) measure(ctx context.Context) (err error) {
	if r.out.Machine, err = r.stand.describe(ctx); err != nil {
		return err
	}
	variants, err := r.choose(ctx)
	if err != nil {
		return err
	}
	if err := r.warmUp(ctx, variants); err != nil {
		return err
	}
	if err := r.rounds(ctx, variants); err != nil {
		return err
	}
	if len(r.cfg.Only) == 0 {
		if err := r.openLoops(ctx); err != nil {
			return err
		}
		r.out.Machine.ServiceMemory = peakMemory(r.stand.service.child.Pid())
	}
	if err := r.profiles(ctx, variants); err != nil {
		return err
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	if r.cfg.wantsInUse() {
		if err := r.inUse(ctx); err != nil {
			return err
		}
		if err := r.prove(ctx); err != nil {
			return err
		}
	}
	r.out.Judge()
	return nil
}

// choose returns the variants that are wanted and for which the binary has a route.
func (r *runner) choose(ctx context.Context) ([]variant, error) {
	many, err := r.probe(ctx, false)
	if err != nil {
		return nil, err
	}
	hot, err := r.probe(ctx, true)
	if err != nil {
		return nil, err
	}
	r.out.Machine.BaselineConns = fmt.Sprintf("%d for many tenants, %d for one (the best of %v); %d behind echo",
		many.Config().MaxConns, hot.Config().MaxConns, probeConns, webConns)
	variants := slices.DeleteFunc(r.variants(many, hot), func(v variant) bool { return !r.cfg.wants(v.name) })
	there, err := r.checksInBatches(ctx)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(variants, func(v variant) bool { return v.name == report.CheckBatches }); at >= 0 && !there {
		r.say("%s: not there", report.CheckBatches)
		r.out.NotThere = append(r.out.NotThere, report.CheckBatches)
		variants = slices.Delete(variants, at, at+1)
	}
	if len(variants) == 0 && !r.cfg.wantsInUse() {
		return nil, fmt.Errorf("no variant's name contains one of %q", r.cfg.Only)
	}
	return variants, nil
}

// wants reports whether to measure a variant.
func (c *Config) wants(name string) bool {
	return len(c.Only) == 0 || slices.ContainsFunc(c.Only, func(part string) bool { return strings.Contains(name, part) })
}

// wantsInUse reports whether to measure first debits and memory of many tenants.
func (c *Config) wantsInUse() bool { return c.InUse > 0 && c.wants("tenants in use") }

// profiles runs the variants of the service once more, with the profiler. The rounds run without it, because the
// profiler costs a few percent of the CPU time.
func (r *runner) profiles(ctx context.Context, variants []variant) error {
	if r.cfg.Profile == 0 {
		return nil
	}
	for _, v := range variants {
		if v.site == nil {
			continue
		}
		file := filepath.Join(r.cfg.Dir, strings.NewReplacer(" ", "-", ",", "", "+", "and").Replace(v.name)+".pprof")
		done := make(chan error, 1)
		go func() { done <- r.stand.profile(ctx, v.site, r.cfg.Profile, file) }()
		_, err := v.run(ctx, r.cfg.Profile+time.Second)
		if err = errors.Join(err, <-done); err != nil {
			return fmt.Errorf("profile %s: %w", v.name, err)
		}
		r.say("CPU profile of %s: go tool pprof -top %s", v.name, file)
	}
	return nil
}

// warmUp opens every balance, so that the rounds do not measure first periods. Then it runs every variant for a short
// time.
func (r *runner) warmUp(ctx context.Context, variants []variant) error {
	r.say("opening %d balances", r.cfg.Tenants)
	for _, at := range []*site{r.stand.service, r.stand.before} {
		if at == nil {
			continue
		}
		if err := r.openBalances(ctx, at); err != nil {
			return err
		}
	}
	for _, v := range variants {
		s, err := v.run(ctx, probeFor)
		if err != nil {
			return fmt.Errorf("warm up %s: %w", v.name, err)
		}
		if s.units == 0 {
			return fmt.Errorf("%s: none of %d requests was answered with 200", v.name, s.sent)
		}
	}
	return nil
}

// openBalances sends one debit and one check for every tenant of a site. Without recent checks, the first check of a
// balance reads PostgreSQL. The rounds should not measure this.
func (r *runner) openBalances(ctx context.Context, at *site) error {
	debit, _, check := r.templates()
	debit.recorded = at == r.stand.service
	all := []*template{debit, check}
	if at == r.stand.service {
		all = append(all, r.prefixed(thresholdPrefix), r.prefixed(plainPrefix))
	}
	for _, t := range all {
		tenants := r.cfg.Tenants
		if t.among > 0 {
			tenants = min(tenants, t.among)
		}
		s, err := r.each(ctx, at, t, r.cfg.Connections, tenantRange{0, tenants})
		if err == nil && s.errors > 0 {
			err = fmt.Errorf("%d of %d requests were refused", s.errors, s.sent)
		}
		if err != nil {
			return fmt.Errorf("open balances: %w", err)
		}
	}
	return nil
}

// tally collects the measurements of a variant over all rounds.
type tally struct {
	latency *hdrhistogram.Histogram
	used    report.CPU
	units   int64
}

func (r *runner) rounds(ctx context.Context, variants []variant) error {
	tallies := make([]tally, len(variants))
	for i, v := range variants {
		r.out.Variants = append(r.out.Variants, report.Variant{Name: v.name, Baseline: v.site == nil})
		tallies[i].latency = newHistogram()
	}
	for round := range r.cfg.Rounds {
		for i := range variants {
			at := (i + round*3) % len(variants) // each round starts with another variant
			v, t, out := variants[at], &tallies[at], &r.out.Variants[at]
			s, used, err := r.slice(ctx, v)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			t.used, t.units = t.used.Plus(used), t.units+s.units
			t.latency.Merge(s.latency)
			out.Rates, out.Rounds = append(out.Rates, s.rate()), append(out.Rounds, used.Per(s.units))
			out.Errors += s.errors
			r.say("round %d/%d  %-40s %9.0f/s", round+1, r.cfg.Rounds, v.name, s.rate())
		}
	}
	for i := range r.out.Variants {
		v, t := &r.out.Variants[i], &tallies[i]
		v.Median, v.CPU, v.Latency = report.Median(v.Rates), t.used.Per(t.units), percentilesOf(t.latency)
	}
	return nil
}

// leadIn is the time for which a variant runs before it is measured, as a share of its slice. While other variants
// run, the copies of this variant's balances become too old, so its first checks read PostgreSQL. The rounds measure
// the cost of a continuous load, under which checks read PostgreSQL only once in half a minute.
const leadIn = 0.75

// slice runs a variant, first for leadIn without measuring, and then for a slice. It returns the sample of the slice
// and the CPU time used.
func (r *runner) slice(ctx context.Context, v variant) (sample, report.CPU, error) {
	if s, err := v.run(ctx, time.Duration(leadIn*float64(r.cfg.Slice))); err != nil {
		return s, report.CPU{}, err
	}
	web := r.stand.baseline.Pid()
	if v.site != nil {
		web = v.site.child.Pid()
	}
	before := cpuOf(os.Getpid(), web)
	s, err := v.run(ctx, r.cfg.Slice)
	return s, cpuOf(os.Getpid(), web).Minus(before), err
}

// openLoops measures latency, first with one client and then at the fixed rates.
func (r *runner) openLoops(ctx context.Context) error {
	debit, _, check := r.templates()
	one, err := r.over(r.stand.service.api, 1, debit)(ctx, r.cfg.OpenFor)
	if err != nil {
		return fmt.Errorf("one client: %w", err)
	}
	r.out.OneClient = &report.OpenLoop{Name: report.LoadDebit, Achieved: one.rate(), Errors: one.errors, Latency: percentilesOf(one.latency)}
	echo := newTemplate("/echo/debits", keyHeader(), debitBody(tenantMark), 1)
	loads := []struct {
		name, address string
		t             *template
	}{
		{report.LoadEcho, r.stand.baseAt, echo}, {report.LoadCheck, r.stand.service.api, check}, {report.LoadDebit, r.stand.service.api, debit},
	}
	for _, rate := range slices.Sorted(slices.Values(r.cfg.Rates)) {
		for _, l := range loads {
			s, err := r.open(ctx, l.address, l.t, rate)
			if err != nil {
				return fmt.Errorf("%s at %d/s: %w", l.name, rate, err)
			}
			o := report.OpenLoop{Name: l.name, Rate: rate, Achieved: s.rate(), Errors: s.errors, Latency: percentilesOf(s.latency)}
			r.out.OpenLoops = append(r.out.OpenLoops, o)
			r.say("%6d/s open loop  %-6s p50 %s  p99 %s  p99.9 %s", rate, l.name, report.Micros(o.P50), report.Micros(o.P99), report.Micros(o.P999))
		}
	}
	return nil
}

func (r *runner) open(ctx context.Context, address string, t *template, rate int) (sample, error) {
	clients, err := dial(ctx, address, r.cfg.Connections)
	if err != nil {
		return sample{}, err
	}
	defer closeAll(clients)
	s, err := openLoop(ctx, clients, &r.seq, steady{t: t, tenants: r.cfg.Tenants, rate: rate, d: r.cfg.OpenFor, drain: drainMax, tick: paceTick})
	r.note(t, &s)
	return s, err
}

// prove compares the number of answered debits with the number of debits in the journal.
func (r *runner) prove(ctx context.Context) error {
	var journal int64
	if err := r.stand.db.QueryRow(ctx, "SELECT count(*) FROM entries WHERE kind = 'debit'").Scan(&journal); err != nil {
		return fmt.Errorf("count the journal: %w", err)
	}
	r.out.Answered, r.out.Journal = r.acked.Load(), journal
	if journal < r.out.Answered {
		return fmt.Errorf("%d debits were answered and only %d are in the journal", r.out.Answered, journal)
	}
	r.say("%d debits were answered, %d are in the journal", r.out.Answered, journal)
	return nil
}

// verify calls prove, and then runs `quotasvc verify`. This happens before the tenants of Config.InUse get their first
// debit, because each of those tenants has only one entry.
func (r *runner) verify(ctx context.Context) error {
	if err := r.prove(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := r.stand.tool(ctx, r.stand.service, "verify"); err != nil {
		return err
	}
	r.out.VerifyPerSecond = float64(r.out.Journal) / time.Since(began).Seconds()
	return nil
}
