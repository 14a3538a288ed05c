package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Results is the result of a run. results.json has the same content.
type Results struct {
	Machine         Machine    `json:"machine"`
	Took            string     `json:"took"`
	Variants        []Variant  `json:"variants"`
	OpenLoops       []OpenLoop `json:"open_loops"`
	OneClient       *OpenLoop  `json:"one_client,omitempty"` // debits of one client on an idle service
	InUse           *InUse     `json:"in_use,omitempty"`
	NotThere        []string   `json:"not_there,omitempty"` // variants whose route the binary does not have
	Targets         []Target   `json:"targets"`
	Ratios          []Target   `json:"throughput_ratios"` // information without a bound
	Answered        int64      `json:"debits_answered"`
	Journal         int64      `json:"debits_in_journal"`
	VerifyPerSecond float64    `json:"verify_entries_per_second"`
}

// Machine describes the machine and the settings of the run, because the results depend on them.
type Machine struct {
	Date          time.Time `json:"date"`
	CPU           string    `json:"cpu"`
	Cores         int       `json:"cores"`
	OS            string    `json:"os"`
	Go            string    `json:"go"`
	PostgreSQL    string    `json:"postgresql"`
	Redis         string    `json:"redis"`
	Durability    string    `json:"durability"`
	SyncMicros    int64     `json:"disk_sync_micros"` // median of an 8 KiB write and fsync on the disk of PostgreSQL
	LoadBefore    string    `json:"load_before"`      // load average before the run; it shows other load on the machine
	Connections   int       `json:"connections"`
	Tenants       int       `json:"tenants"`
	Batch         int       `json:"batch"`
	Rounds        int       `json:"rounds"`
	Slice         string    `json:"slice"`
	BaselineConns string    `json:"baseline_connections"`
	ServiceMemory int64     `json:"service_peak_rss_bytes"` // 0: unknown on this system, or not measured
}

// Variant is the throughput and cost of one kind of load.
type Variant struct {
	Name     string    `json:"name"`
	Baseline bool      `json:"baseline,omitempty"` // whether the variant is a baseline, not the service
	Rates    []float64 `json:"per_second"`         // by round
	Median   float64   `json:"median_per_second"`
	Errors   int64     `json:"errors"`
	Rounds   []CPU     `json:"cpu_ns_per_unit_by_round"`
	CPU      CPU       `json:"cpu_ns_per_unit"` // 0: unknown on this system
	Latency  `json:"latency_micros"`
}

// OpenLoop is the latency at one fixed rate, or the latency of one client.
type OpenLoop struct {
	Name     string  `json:"name"`
	Rate     int     `json:"per_second"` // 0: one client, which sends a request after each answer
	Achieved float64 `json:"achieved_per_second"`
	Errors   int64   `json:"errors"`
	Latency  `json:"latency_micros"`
}

// Latency contains percentiles in microseconds.
type Latency struct {
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p99_9"`
	Max  int64 `json:"max"`
}

// InUse is the cost of many tenants, measured with a separate process of the service. Each tenant gets its first
// debit in a batch, and then a check.
type InUse struct {
	Tenants    int     `json:"tenants"`
	FirstTouch float64 `json:"first_debits_per_second"`
	CPU        CPU     `json:"cpu_ns_per_first_debit"`
	Checks     float64 `json:"checks_per_second"`
	Errors     int64   `json:"errors"`
	Memory     int64   `json:"service_peak_rss_bytes"` // 0: unknown on this system
}

// CPU is the CPU time of processes. Unlike throughput, it depends little on other load on the machine.
type CPU struct {
	Service    time.Duration `json:"service"` // of the service, or of the baseline's HTTP server
	PostgreSQL time.Duration `json:"postgresql"`
	Redis      time.Duration `json:"redis"`
	Generator  time.Duration `json:"generator"` // of the benchmark program, which is the load generator
}

// Cost returns the CPU time that the operator of the service pays for.
func (c CPU) Cost() time.Duration { return c.Service + c.PostgreSQL + c.Redis }

// Minus returns the CPU time used since o was measured.
func (c CPU) Minus(o CPU) CPU {
	return CPU{c.Service - o.Service, c.PostgreSQL - o.PostgreSQL, c.Redis - o.Redis, c.Generator - o.Generator}
}

// Plus returns the sum of c and o.
func (c CPU) Plus(o CPU) CPU {
	return CPU{c.Service + o.Service, c.PostgreSQL + o.PostgreSQL, c.Redis + o.Redis, c.Generator + o.Generator}
}

// Per returns c divided by n units.
func (c CPU) Per(n int64) CPU {
	d := time.Duration(max(n, 1))
	return CPU{c.Service / d, c.PostgreSQL / d, c.Redis / d, c.Generator / d}
}

// Median returns the median of the values, or 0 if there are none.
func Median(in []float64) float64 {
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

// Write stores results.json and the charts.
func (r *Results) Write(dir string) error {
	if err := WriteJSON(filepath.Join(dir, "results.json"), r); err != nil {
		return err
	}
	return r.charts(func(name string) string { return filepath.Join(dir, name+".svg") })
}

// WriteJSON stores a value as an indented file.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
