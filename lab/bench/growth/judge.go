package growth

import (
	"fmt"
	"strings"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// These are the bounds of the targets. A bound in x is relative to the smallest size in the same run.
const (
	throughputLeast = 0.85 // x the throughput
	p99Most         = 1.5  // x the p99
	memoryMost      = 1.1  // x, for dimensions whose data is not kept in the process
	memoryMB        = 150  // for any number of tenants, because each cache of the process has a bound
	ruleMemory      = 2.5  // kB per rule: the catalogue is in memory
	monthMost       = 2.0  // x the p99 of live debits before the month's end
	hotLeast        = 0.95 // share of HOT updates, with the layout AsMigrated
	bloatMost       = 2.0  // x heap and indexes after the debits, with the layout AsMigrated
)

// InMemory is the suffix of the label of a size whose instances keep all its tenants in memory. The memory of such
// instances grows with the number of tenants, so it has no bound.
const InMemory = ", all of them in memory"

// AsMigrated is the label of the layout with the storage settings of the migrations: the fillfactor 60 and the
// autovacuum settings of the table balances.
const AsMigrated = "60, as migrated"

// Judge computes the targets of the step.
func (s *Step) Judge() {
	s.Targets = nil
	for i := 1; i < len(s.Sizes); i++ {
		for _, load := range []string{Debits, Checks} {
			s.Targets = append(s.Targets, s.throughput(i, load), s.p99(i, load))
		}
		s.Targets = append(s.Targets, s.memory(i)...)
	}
	for i := range s.Layouts {
		if l := &s.Layouts[i]; l.Label == AsMigrated {
			s.Targets = append(s.Targets, report.AtLeast("balances: share of HOT updates", "", hotLeast, l.Hot),
				report.AtMost("balances: size after the debits, to before", "x", bloatMost, l.Bloat()))
		}
	}
	if m := s.Month; m != nil && len(m.Phases) > 0 {
		before := float64(max(m.Phases[0].P99, 1))
		for i := 1; i < len(m.Phases); i++ {
			p := &m.Phases[i]
			if p.Debits == 0 {
				continue
			}
			t := report.AtMost("month's end: p99 of live debits "+p.Name, "x", monthMost, float64(p.P99)/before)
			t.Pass = t.Pass && m.Errors == 0
			s.Targets = append(s.Targets, t)
		}
	}
}

func (s *Step) name(i int, what string) string {
	return fmt.Sprintf("%s, %s: %s", s.Name, s.Sizes[i].Label, what)
}

// Throughput returns the ratio of size i's throughput to the throughput of the first size, for each round.
func (s *Step) Throughput(i int, load string) []float64 {
	return report.Ratios(s.Sizes[i].load(load).Rates, s.Sizes[0].load(load).Rates)
}

// Latency returns the ratio of size i's p99 to the p99 of the first size, for each round.
func (s *Step) Latency(i int, load string) []float64 {
	return report.Ratios(s.Sizes[i].load(load).P99s, s.Sizes[0].load(load).P99s)
}

func (s *Step) throughput(i int, load string) report.Target {
	all := s.Throughput(i, load)
	t := report.AtLeast(s.name(i, "throughput of "+load), "x", throughputLeast, report.Median(all)).Between(all)
	t.Pass = t.Pass && s.Sizes[i].load(load).Errors == 0
	return t
}

func (s *Step) p99(i int, load string) report.Target {
	all := s.Latency(i, load)
	t := report.AtMost(s.name(i, "p99 of "+load), "x", p99Most, report.Median(all)).Between(all)
	l := s.Sizes[i].load(load)
	// A low latency does not count if requests were refused or were not sent in time.
	t.Pass = t.Pass && len(all) > 0 && l.Errors == 0 && l.Achieved >= 0.99
	return t
}

func (s *Step) memory(i int) []report.Target {
	first, here := &s.Sizes[0], &s.Sizes[i]
	if first.Memory == 0 || here.Memory == 0 || strings.HasSuffix(here.Label, InMemory) {
		return nil // the memory is unknown on this system, or the size uses another size's process
	}
	switch s.Name {
	case Tenants:
		return []report.Target{report.AtMost(s.name(i, "peak memory of the service"), "MB", memoryMB, float64(here.Memory)/1e6)}
	case Catalogue:
		grown := max(float64(here.Memory-first.Memory), 0) / 1e3 / max(here.Value-first.Value, 1)
		return []report.Target{report.AtMost(s.name(i, "peak memory of the service for each rule"), "kB", ruleMemory, grown)}
	}
	return []report.Target{report.AtMost(s.name(i, "peak memory of an instance"), "x", memoryMost, float64(here.Memory)/float64(first.Memory))}
}

// count returns a number as a label: 1,000 or 20M.
func count(n int64) string {
	if n >= 1_000_000 && n%100_000 == 0 {
		return chart.Figure(float64(n)/1e6) + "M"
	}
	return chart.Figure(float64(n))
}

// Label returns the label of a size: its number, and what is counted.
func Label(n int64, what string) string { return count(n) + " " + what }
