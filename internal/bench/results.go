package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Results is the result of a run. results.json has the same content.
type Results struct {
	Machine         Machine    `json:"machine"`
	Took            string     `json:"took"`
	Variants        []Variant  `json:"variants"`
	OpenLoops       []OpenLoop `json:"open_loops"`
	Targets         []Target   `json:"targets"`
	Answered        int64      `json:"debits_answered"`
	Journal         int64      `json:"debits_in_journal"`
	VerifyPerSecond float64    `json:"verify_entries_per_second"`
}

// Machine describes the machine and the run: the numbers depend on it.
type Machine struct {
	Date          time.Time `json:"date"`
	CPU           string    `json:"cpu"`
	Cores         int       `json:"cores"`
	OS            string    `json:"os"`
	Go            string    `json:"go"`
	PostgreSQL    string    `json:"postgresql"`
	Redis         string    `json:"redis"`
	Durability    string    `json:"durability"`
	SyncMicros    int64     `json:"disk_sync_micros"` // median of an 8 KiB write and fsync where PostgreSQL's data lies
	LoadBefore    string    `json:"load_before"`      // load average before the run; shows other load
	Connections   int       `json:"connections"`
	Tenants       int       `json:"tenants"`
	Batch         int       `json:"batch"`
	Rounds        int       `json:"rounds"`
	Slice         string    `json:"slice"`
	BaselineConns string    `json:"baseline_connections"`
	ServiceMemory int64     `json:"service_peak_rss_bytes"` // 0: unknown on this system
}

// Variant is the throughput of one kind of load.
type Variant struct {
	Name    string    `json:"name"`
	Rates   []float64 `json:"per_second"` // by round
	Median  float64   `json:"median_per_second"`
	Errors  int64     `json:"errors"`
	CPU     CPU       `json:"cpu_ns_per_unit"` // 0: unknown on this system
	Latency `json:"latency_micros"`

	latency *hdrhistogram.Histogram
	used    CPU
	units   int64
}

// OpenLoop is the latency at one fixed rate.
type OpenLoop struct {
	Name     string  `json:"name"`
	Rate     int     `json:"per_second"`
	Achieved float64 `json:"achieved_per_second"`
	Errors   int64   `json:"errors"`
	Latency  `json:"latency_micros"`
}

// Latency is percentiles in microseconds.
type Latency struct {
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p99_9"`
	Max  int64 `json:"max"`
}

// Target is a target and the measured value.
type Target struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Target   float64 `json:"target"`
	Measured float64 `json:"measured"`
	Low      float64 `json:"low,omitempty"` // of the rounds, for ratios
	High     float64 `json:"high,omitempty"`
	AtMost   bool    `json:"at_most"` // the target is a bound from above
	Pass     bool    `json:"pass"`
}

func percentilesOf(h *hdrhistogram.Histogram) Latency {
	return Latency{
		P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90), P99: h.ValueAtQuantile(99),
		P999: h.ValueAtQuantile(99.9), Max: h.Max(),
	}
}

func median(in []float64) float64 {
	s := slices.Sorted(slices.Values(in))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

func (r *Results) variant(name string) *Variant {
	for i := range r.Variants {
		if r.Variants[i].Name == name {
			return &r.Variants[i]
		}
	}
	return &Variant{}
}

// ratio returns the median over the rounds of a's rate divided by b's.
func (r *Results) ratio(what, a, b string, target float64) Target {
	over, under := r.variant(a).Rates, r.variant(b).Rates
	var all []float64
	for i := range min(len(over), len(under)) {
		if under[i] > 0 {
			all = append(all, over[i]/under[i])
		}
	}
	t := Target{What: what, Unit: "x", Target: target, Measured: median(all)}
	if len(all) > 0 {
		t.Low, t.High = slices.Min(all), slices.Max(all)
	}
	t.Pass = t.Measured >= target
	return t
}

// The rate and the bounds of the latency targets.
const (
	latencyRate  = 10_000
	checkP99Max  = 3_000  // µs
	debitP99Max  = 10_000 // µs
	batchTarget  = 8.0    // x the baseline, or batchRate
	batchRate    = 60_000.0
	keptTarget   = 0.95  // x another binary; two runs of the same binary differ by less
	memoryTarget = 150.0 // MB
	verifyTarget = 500_000.0
)

// judge compares the results with the targets.
func (r *Results) judge() {
	r.Targets = []Target{
		r.ratio("POST /v1/debits, many tenants, to the bare echo handler", debitsMany, echoDebits, 0.45),
		r.ratio("POST /v1/debits, many tenants, to one PL/pgSQL call per debit", debitsMany, plsqlMany, 3.5),
		r.ratio("POST /v1/debits, one hot tenant, to the bare echo handler", debitsHot, echoDebits, 0.45),
		r.ratio("POST /v1/debits, one hot tenant, to one PL/pgSQL call per debit", debitsHot, plsqlHot, 14),
		r.ratio("POST /v1/debits/batch to one PL/pgSQL call per debit", debitBatches, plsqlMany, batchTarget),
		r.ratio("POST /v1/check, 3 limits + balance, many tenants, to the bare echo handler", checksMany, echoCheck, 0.6),
		r.ratio("POST /v1/check, 3 limits + balance, one hot tenant, to the bare echo handler", checksHot, echoCheck, 0.6),
		r.ratio("POST /v1/debits, many tenants, to the binary before", debitsMany, beforeMany, keptTarget),
		r.ratio("POST /v1/debits, one hot tenant, to the binary before", debitsHot, beforeHot, keptTarget),
		r.ratio("POST /v1/check to the binary before", checksMany, beforeChecks, keptTarget),
	}
	batch := &r.Targets[4]
	batch.What += fmt.Sprintf(" (or %.0f debits/s: %.0f)", batchRate, r.variant(debitBatches).Median)
	batch.Pass = batch.Pass || r.variant(debitBatches).Median >= batchRate
	r.Targets = slices.DeleteFunc(r.Targets, func(t Target) bool { return t.High == 0 }) // not measured in this run
	for _, l := range []struct {
		name string
		max  float64
	}{{"check", checkP99Max}, {"debit", debitP99Max}} {
		t := Target{What: fmt.Sprintf("%s p99 at %d requests/s, open loop", l.name, latencyRate), Unit: "ms", Target: l.max / 1000, AtMost: true}
		for _, o := range r.OpenLoops {
			if o.Name == l.name && o.Rate == latencyRate {
				t.Measured = float64(o.P99) / 1000
				// A low latency does not count if the server refused requests or did not reach the rate.
				t.Pass = t.Measured <= t.Target && o.Errors == 0 && o.Achieved >= 0.99*latencyRate
				r.Targets = append(r.Targets, t)
			}
		}
	}
	if m := float64(r.Machine.ServiceMemory) / 1e6; m > 0 {
		r.Targets = append(r.Targets, Target{
			What: "peak resident memory of the service", Unit: "MB", Target: memoryTarget, Measured: m, AtMost: true, Pass: m <= memoryTarget,
		})
	}
	r.Targets = append(r.Targets, Target{
		What: "verify, with a process start", Unit: "entries/s", Target: verifyTarget, Measured: r.VerifyPerSecond,
		Pass: r.VerifyPerSecond >= verifyTarget,
	})
}

// Met reports whether all targets are met.
func (r *Results) Met() bool { return allMet(r.Targets) }

func allMet(targets []Target) bool {
	return !slices.ContainsFunc(targets, func(t Target) bool { return !t.Pass })
}

// Print writes the results as tables.
func (r *Results) Print(out io.Writer) error {
	m := &r.Machine
	fmt.Fprintf(out, "\n%s, %d cores, %s; %s, %s, %s\n%s; 8 KiB write+fsync %s; load before %s\n%d connections, %d tenants, %d rounds of %s; took %s\n\n",
		m.CPU, m.Cores, m.OS, m.Go, m.PostgreSQL, m.Redis, m.Durability, micros(m.SyncMicros), m.LoadBefore,
		m.Connections, m.Tenants, m.Rounds, m.Slice, r.Took)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t\t\t\t\t\t\tCPU µs\tper\tunit\t\t\n")
	fmt.Fprint(t, "throughput\tmedian/s\tlow\thigh\tp50\tp99\terrors\tweb\tPostgreSQL\tRedis\tgenerator\t\n")
	for i := range r.Variants {
		v := &r.Variants[i]
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", v.Name, v.Median, slices.Min(v.Rates),
			slices.Max(v.Rates), micros(v.P50), micros(v.P99), v.Errors, us(v.CPU.Service), us(v.CPU.PostgreSQL), us(v.CPU.Redis),
			us(v.CPU.Generator))
	}
	fmt.Fprint(t, "\t\t\t\t\t\t\t\t\t\t\t\nfixed rate\tachieved/s\tp50\tp90\tp99\tp99.9\terrors\t\t\t\t\t\n")
	for i := range r.OpenLoops {
		o := &r.OpenLoops[i]
		fmt.Fprintf(t, "%s at %d/s\t%.0f\t%s\t%s\t%s\t%s\t%d\t\t\t\t\t\n", o.Name, o.Rate, o.Achieved, micros(o.P50), micros(o.P90),
			micros(o.P99), micros(o.P999), o.Errors)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if err := printTargets(out, r.Targets); err != nil {
		return err
	}
	fmt.Fprintln(out, "this program does not measure: a journal of 20M rows, a roll of 1M balances, bytes per Redis bucket")
	return nil
}

func printTargets(out io.Writer, targets []Target) error {
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "target\twanted\tmeasured\t\t\n")
	for i := range targets {
		g := &targets[i]
		sign, verdict := ">=", "MISSED"
		if g.AtMost {
			sign = "<="
		}
		if g.Pass {
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\t\n", g.What, sign, amount(g.Target, g.Unit), amount(g.Measured, g.Unit), verdict)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func amount(v float64, unit string) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func micros(us int64) string {
	if us >= 1000 {
		return fmt.Sprintf("%.1fms", float64(us)/1000)
	}
	return fmt.Sprintf("%dµs", us)
}

// write stores results.json and the charts.
func (r *Results) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return r.charts(dir)
}

// describe fills in Machine.
func (r *Results) describe(ctx context.Context, s *stand, cfg *Config) error {
	m := &r.Machine
	*m = Machine{
		Date: time.Now().UTC().Truncate(time.Second), CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), PostgreSQL: "PostgreSQL " + s.postgres.Version(),
		Redis: "Redis " + s.redisVersion(ctx), Connections: cfg.Connections, Tenants: cfg.Tenants, Batch: cfg.Batch, Rounds: cfg.Rounds,
		Slice: cfg.Slice.String(), LoadBefore: loadAverage(),
	}
	var fsync, commit, pages string
	err := s.db.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')").
		Scan(&fsync, &commit, &pages)
	if err != nil {
		return fmt.Errorf("ask for durability: %w", err)
	}
	m.Durability = fmt.Sprintf("fsync=%s synchronous_commit=%s full_page_writes=%s", fsync, commit, pages)
	if fsync != "on" || commit != "on" || pages != "on" {
		return fmt.Errorf("PostgreSQL does not wait for its disk: %s", m.Durability)
	}
	m.SyncMicros, err = diskSync(s.postgres.Dir())
	return err
}

// diskSync measures the disk alone, so that machines can be compared.
func diskSync(dir string) (int64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // an empty file in a temporary directory
	defer f.Close()
	h, block := newHistogram(), make([]byte, 8<<10)
	for range 200 {
		at := time.Now()
		if _, err := f.WriteAt(block, 0); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		_ = h.RecordValue(max(time.Since(at).Microseconds(), 1))
	}
	return h.ValueAtQuantile(50), nil
}

// field returns the value of a line "name : value" in a file of /proc, or an empty string if there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// peakMemory returns a process's peak resident memory, or 0 if it is unknown.
func peakMemory(pid int) int64 {
	kb, err := strconv.ParseInt(strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
