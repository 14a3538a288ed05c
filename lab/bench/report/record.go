package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Record contains the results of an earlier run, each under its name. A new run is compared with the last record.
type Record struct {
	Machine  Machine            `json:"machine"`
	Targets  map[string]float64 `json:"targets"`
	Ratios   map[string]float64 `json:"throughput_ratios"`
	Rates    map[string]float64 `json:"per_second"`      // rates of the variants
	Costs    map[string]float64 `json:"cpu_us_per_unit"` // CPU time of the service, PostgreSQL and Redis together
	Latency  map[string]Latency `json:"latency_us"`
	NotThere []string           `json:"not_there,omitempty"`
}

// record returns the part of a run's results that belongs in a record.
func (r *Results) record() *Record {
	out := &Record{
		Machine: r.Machine, Targets: map[string]float64{}, Ratios: map[string]float64{}, Rates: map[string]float64{}, Costs: map[string]float64{},
		Latency: map[string]Latency{}, NotThere: r.NotThere,
	}
	for i := range r.Targets {
		out.Targets[r.Targets[i].What] = digits(r.Targets[i].Measured)
	}
	for i := range r.Ratios {
		out.Ratios[r.Ratios[i].What] = digits(r.Ratios[i].Measured)
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		out.Rates[v.Name], out.Costs[v.Name] = digits(v.Median), digits(us(v.CPU.Cost()))
	}
	for _, o := range slices.Concat(r.OpenLoops, r.oneClient()) {
		out.Latency[o.what()] = o.Latency
	}
	return out
}

// digits removes the last digits of a value, which differ between any two runs.
func digits(v float64) float64 {
	if v >= 1000 {
		return float64(int64(v))
	}
	return float64(int64(v*100+0.5)) / 100
}

// ErrPartial is the error of Keep for a run in which variants are missing.
var ErrPartial = errors.New("this run has measured some variants only; a record needs all")

// recordFile is the path of the record in the directory of the documents.
var recordFile = filepath.Join("bench", "results.json")

// Picture returns the path of a picture in docs, the directory of the documents.
func Picture(docs, name string) string { return filepath.Join(docs, "img", "bench-"+name+".svg") }

// Keep writes the record and the pictures below docs. It fails if the run did not measure all variants.
func (r *Results) Keep(docs string) error {
	if len(r.OpenLoops) == 0 || r.InUse == nil || r.variant(DebitsMany).Median == 0 {
		return ErrPartial
	}
	path := filepath.Join(docs, recordFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	if err := WriteJSON(path, r.record()); err != nil {
		return err
	}
	return r.charts(func(name string) string { return Picture(docs, name) })
}

// Last reads the record below docs. It returns nil if there is no record.
func Last(docs string) (*Record, error) {
	text, err := os.ReadFile(filepath.Join(docs, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the record %s: %w", recordFile, err)
	}
	return r, nil
}

// change returns the difference from the recorded value in percent. If one of the values is missing, it returns an
// empty text.
func change(now float64, recorded map[string]float64, name string) string {
	was := recorded[name]
	if was == 0 || now == 0 {
		return ""
	}
	percent := math.Round((now/was - 1) * 100)
	if percent == 0 {
		return "0%" // instead of +0 or -0
	}
	return fmt.Sprintf("%+.0f%%", percent)
}

// about describes the record with which the results are compared.
func (r *Record) about(now *Machine) string {
	m := &r.Machine
	out := fmt.Sprintf("changes are against the record of %s: %d rounds of %s, load before %s", m.Date.Format("2006-01-02"), m.Rounds, m.Slice,
		m.LoadBefore)
	if m.CPU != now.CPU || m.Cores != now.Cores || m.PostgreSQL != now.PostgreSQL || m.Go != now.Go {
		out += fmt.Sprintf("\nTHE MACHINE DIFFERS: the record is of %s, %d cores, %s, %s. Read the ratios, not the rates and times",
			m.CPU, m.Cores, m.Go, m.PostgreSQL)
	}
	return out
}
