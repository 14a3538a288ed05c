package growth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// These are the names of the steps, in the order in which they run.
const (
	Tenants    = "tenants"
	Journal    = "journal"
	Instances  = "instances"
	Partitions = "partitions"
	Catalogue  = "catalogue"
	Balances   = "balances"
	MonthEnd   = "month-end"
)

// Names returns the names of the steps in the order in which they run.
func Names() []string {
	return []string{Tenants, Journal, Instances, Partitions, Catalogue, Balances, MonthEnd}
}

// These are the names of the loads.
const (
	Debits = "debits"
	Checks = "checks"
)

// Result contains the steps that were measured so far. growth.json has the same content.
type Result struct {
	Steps []Step `json:"steps"`
}

// Step is the result of one step.
type Step struct {
	Name     string          `json:"name"`
	Settings string          `json:"settings"` // sizes and load; a run with other settings measures the step again
	Machine  report.Machine  `json:"machine"`
	Took     string          `json:"took"`
	LeftOut  []string        `json:"left_out,omitempty"` // sizes that were not measured, with the reason
	Sizes    []Size          `json:"sizes,omitempty"`
	Layouts  []Layout        `json:"layouts,omitempty"`
	Month    *Month          `json:"month_end,omitempty"`
	Targets  []report.Target `json:"targets"`
}

// Size is one value of a dimension.
type Size struct {
	Label    string  `json:"label"`
	Value    float64 `json:"value"`
	Entries  int64   `json:"entries"`        // entries in the journal before the load
	Disk     int64   `json:"database_bytes"` // size before the load
	Prepared float64 `json:"prepare_seconds"`
	Start    float64 `json:"start_seconds"`          // time until the slowest instance answers
	Memory   int64   `json:"service_peak_rss_bytes"` // of the largest instance; 0: unknown, or another size's process
	Verified float64 `json:"verify_seconds"`         // time of `quotasvc verify` after the load; 0: not run
	Pages    float64 `json:"whole_pages"`            // whole pages that a debit writes to the WAL, after the warm-up
	Loads    []Load  `json:"loads"`
}

// Load is the result of one size under one load. A list has one element for each round.
type Load struct {
	Name     string     `json:"name"`
	Rates    []float64  `json:"per_second"` // requests/s of the closed loop
	Used     report.CPU `json:"cpu_ns_per_unit"`
	P50s     []float64  `json:"p50_micros"` // at the fixed rate
	P99s     []float64  `json:"p99_micros"`
	Achieved float64    `json:"achieved"` // lowest share of the fixed rate that a round has reached
	Errors   int64      `json:"errors"`
}

// Layout describes the table balances after many debits, with one setting of its storage.
type Layout struct {
	Label      string     `json:"label"`
	Fillfactor int        `json:"fillfactor"`
	Debits     int64      `json:"debits"`
	Balances   int        `json:"balances"`
	PerSecond  float64    `json:"debits_per_second"`
	Used       report.CPU `json:"cpu_ns_per_debit"`
	Updates    int64      `json:"updates"`
	Hot        float64    `json:"hot_share"` // share of HOT updates, 0..1
	HeapBefore int64      `json:"heap_bytes_before"`
	Heap       int64      `json:"heap_bytes"`
	Indexes    int64      `json:"index_bytes"`
	IndexesWas int64      `json:"index_bytes_before"`
	Dead       float64    `json:"dead_share"` // of the heap's bytes, 0..1; -1: pgstattuple is not installed
	Free       float64    `json:"free_share"`
	WAL        int64      `json:"wal_bytes"` // bytes that all debits wrote
	Vacuums    int64      `json:"autovacuums"`
}

// Bloat returns the growth of the heap and its indexes, as a factor.
func (l *Layout) Bloat() float64 {
	return float64(l.Heap+l.Indexes) / float64(max(l.HeapBefore+l.IndexesWas, 1))
}

// Month is the result of the end of a period of many balances under load.
type Month struct {
	Tenants int     `json:"tenants"`
	Rate    int     `json:"debits_per_second"`
	Rolled  int64   `json:"rolled"`            // balances rolled by `quotasvc roll`
	Lazily  int64   `json:"rolled_by_debits"`  // balances rolled by their first debit
	Job     float64 `json:"roll_seconds"`      // time of `quotasvc roll`
	Errors  int64   `json:"errors"`            // debits whose answer was not 200
	Ended   float64 `json:"ended_at_seconds"`  // end of the period, since the beginning of the timeline
	JobFrom float64 `json:"roll_from_seconds"` // start of the job
	JobTo   float64 `json:"roll_to_seconds"`   // end of the job
	Phases  []Phase `json:"phases"`            // before the period's end, rolls by debits only, the job, after it
	Moments []Phase `json:"timeline_micros_by_1s"`
}

// Phase is the latency of live debits in a section of the timeline.
type Phase struct {
	Name           string  `json:"name,omitempty"`
	At             float64 `json:"at_seconds"` // since the beginning of the timeline
	Debits         int64   `json:"debits"`
	report.Latency `json:"latency_micros"`
}

// Store returns the path of the stored results in a directory.
func Store(dir string) string { return filepath.Join(dir, "growth.json") }

// Read reads the stored results of a directory. If there is no file, it returns an empty result.
func Read(dir string) (*Result, error) {
	text, err := os.ReadFile(Store(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return &Result{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the results so far: %w", err)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the results so far, %s: %w", Store(dir), err)
	}
	return r, nil
}

// Step returns a step by its name, or nil.
func (r *Result) Step(name string) *Step {
	for i := range r.Steps {
		if r.Steps[i].Name == name {
			return &r.Steps[i]
		}
	}
	return nil
}

// Put adds a step, or replaces the step of the same name, and keeps the order.
func (r *Result) Put(s *Step) {
	r.Steps = slices.DeleteFunc(r.Steps, func(o Step) bool { return o.Name == s.Name })
	r.Steps = append(r.Steps, *s)
	slices.SortFunc(r.Steps, func(a, b Step) int { return slices.Index(Names(), a.Name) - slices.Index(Names(), b.Name) })
}

// Targets returns the targets of all steps.
func (r *Result) Targets() (all []report.Target) {
	for i := range r.Steps {
		all = append(all, r.Steps[i].Targets...)
	}
	return all
}

// Met reports whether all targets are met.
func (r *Result) Met() bool { return report.AllMet(r.Targets()) }

func (s *Size) load(name string) *Load {
	for i := range s.Loads {
		if s.Loads[i].Name == name {
			return &s.Loads[i]
		}
	}
	return &Load{}
}

// ErrPartial is the error of Keep for a run in which steps are missing.
var ErrPartial = errors.New("not all steps were measured; a record needs all")

// Keep writes the record and the pictures below docs. It fails if a step is missing.
func (r *Result) Keep(docs string) error {
	for _, name := range Names() {
		if r.Step(name) == nil {
			return fmt.Errorf("%w: %s is missing", ErrPartial, name)
		}
	}
	for _, dir := range []string{"bench", "img"} {
		if err := os.MkdirAll(filepath.Join(docs, dir), 0o755); err != nil {
			return fmt.Errorf("keep the record: %w", err)
		}
	}
	if err := report.WriteJSON(filepath.Join(docs, "bench", "growth.json"), r); err != nil {
		return err
	}
	return r.draw(func(name string) string { return filepath.Join(docs, "img", "growth-"+name+".svg") })
}

// Write stores the results and the pictures in a directory.
func (r *Result) Write(dir string) error {
	if err := report.WriteJSON(Store(dir), r); err != nil {
		return err
	}
	return r.draw(func(name string) string { return filepath.Join(dir, "growth-"+name+".svg") })
}
