package growth

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// table contains rows of cells. The first row is the head.
type table [][]string

// Print writes all steps and the targets.
func (r *Result) Print(p *report.Printer) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		p.Machine(&s.Machine)
		fmt.Fprintf(p.Out, "%s: %s; took %s\n\n", s.Name, s.Settings, s.Took)
		for _, t := range s.tables() {
			w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
			for _, row := range t {
				fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
			}
			if err := w.Flush(); err != nil {
				return fmt.Errorf("print: %w", err)
			}
			fmt.Fprintln(p.Out)
		}
		for _, why := range s.LeftOut {
			fmt.Fprintf(p.Out, "LEFT OUT: %s\n", why)
		}
	}
	return p.Targets(r.Targets())
}

// Markdown writes the tables for a document, with the machine, the load and the time of each run.
func (r *Result) Markdown(out io.Writer) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		m := &s.Machine
		fmt.Fprintf(out, "### %s\n\n- Machine: %s, %d cores; %s, %s, %s; 8 KiB write and fsync %s; load average before %s.\n- Load: %s.\n- Time: %s, for %s.\n\n",
			titles[s.Name], strings.TrimSpace(m.CPU), m.Cores, m.Go, m.PostgreSQL, m.Redis, report.Micros(m.SyncMicros), m.LoadBefore,
			s.Settings, m.Date.Format(time.DateTime)+" UTC", s.Took)
		for _, t := range s.tables() {
			for at, row := range t {
				fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
				if at == 0 {
					fmt.Fprintf(out, "|%s\n", strings.Repeat("---|", len(row)))
				}
			}
			fmt.Fprintln(out)
		}
		for _, why := range s.LeftOut {
			fmt.Fprintf(out, "Not measured: %s.\n\n", why)
		}
		for at := range s.Targets {
			t := &s.Targets[at]
			if !t.Pass {
				fmt.Fprintf(out, "- missed: %s\n", t.Say())
			}
		}
		if report.AllMet(s.Targets) {
			fmt.Fprintf(out, "All %d targets are met.\n", len(s.Targets))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// titles are the headings of the steps.
var titles = map[string]string{
	Tenants: "Tenants", Journal: "Entries of the journal", Instances: "Instances of the service", Partitions: "Months of partitions",
	Catalogue: "Rules of the catalogue", Balances: "The table balances after many debits", MonthEnd: "A month's end",
}

// tables returns the tables of a step.
func (s *Step) tables() (all []table) {
	if len(s.Sizes) > 0 {
		all = append(all, s.loads(Debits), s.loads(Checks), s.sizes())
	}
	if len(s.Layouts) > 0 {
		all = append(all, s.layouts())
	}
	if s.Month != nil {
		all = append(all, s.Month.table())
	}
	return all
}

// loads returns a table with the results of each size under one load.
func (s *Step) loads(load string) table {
	t := table{{s.Name, load + "/s", "to first", "p50", "p99", "to first", "CPU of one", "to first", "service", "PostgreSQL", "Redis", "errors"}}
	first := s.Sizes[0].load(load).Used.Cost()
	for i := range s.Sizes {
		l := s.Sizes[i].load(load)
		t = append(t, []string{
			s.Sizes[i].Label, figure(report.Median(l.Rates)), times(s.Throughput(i, load)), report.Micros(int64(report.Median(l.P50s))),
			report.Micros(int64(report.Median(l.P99s))), times(s.Latency(i, load)), micros(l.Used.Cost()),
			fmt.Sprintf("%.2f x", float64(l.Used.Cost())/float64(max(first, 1))), micros(l.Used.Service), micros(l.Used.PostgreSQL), micros(l.Used.Redis), fmt.Sprint(l.Errors),
		})
	}
	return t
}

// sizes returns a table with the facts of each size that do not depend on a load, for example its disk space and
// memory.
func (s *Step) sizes() table {
	t := table{{s.Name, "entries before", "database", "peak memory of an instance", "start of an instance", "whole pages in the WAL for a debit", "`quotasvc verify`", "entries/s"}}
	for i := range s.Sizes {
		z := &s.Sizes[i]
		if z.Verified == 0 && z.Memory == 0 {
			continue // this size shares another size's database and instances
		}
		row := []string{z.Label, figure(float64(z.Entries)), bytes(z.Disk), bytes(z.Memory), seconds(z.Start), fmt.Sprintf("%.2f", z.Pages), seconds(z.Verified), figure(float64(z.Entries) / z.Verified)}
		if z.Verified == 0 { // this size uses another size's database
			row[1], row[6], row[7] = "", "", ""
		}
		t = append(t, row)
	}
	return t
}

func (s *Step) layouts() table {
	t := table{{
		"fillfactor, autovacuum", "debits/s", "HOT updates", "heap before", "after", "indexes before", "after", "growth", "dead", "free", "WAL of a debit",
		"PostgreSQL's CPU of a debit", "autovacuums",
	}}
	for i := range s.Layouts {
		l := &s.Layouts[i]
		t = append(t, []string{
			l.Label, figure(l.PerSecond), percent(l.Hot), bytes(l.HeapBefore), bytes(l.Heap), bytes(l.IndexesWas), bytes(l.Indexes),
			chart.Figure(l.Bloat()) + " x", percent(l.Dead), percent(l.Free), figure(float64(l.WAL)/float64(max(l.Debits, 1))) + " bytes",
			micros(l.Used.PostgreSQL), fmt.Sprint(l.Vacuums),
		})
	}
	return t
}

func (m *Month) table() table {
	t := table{{fmt.Sprintf("%s live debits/s", figure(float64(m.Rate))), "from", "debits", "p50", "p99", "p99.9", "p99 to before"}}
	for i := range m.Phases {
		p := &m.Phases[i]
		t = append(t, []string{
			p.Name, seconds(p.At), figure(float64(p.Debits)), report.Micros(p.P50), report.Micros(p.P99), report.Micros(p.P999),
			chart.Figure(float64(p.P99)/float64(max(m.Phases[0].P99, 1))) + " x",
		})
	}
	return append(t, []string{
		fmt.Sprintf("roll: %s balances in %s, %s/s; %s by their first debit or by the instance itself; %d debits failed", figure(float64(m.Rolled)), seconds(m.Job),
			figure(float64(m.Rolled)/max(m.Job, 0.001)), figure(float64(m.Lazily)), m.Errors), "", "", "", "", "", "",
	})
}

func figure(v float64) string { return chart.Figure(math.Round(v)) }

func times(all []float64) string {
	if len(all) == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.2f x", report.Median(all))
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f µs", d.Seconds()*1e6) }

func seconds(v float64) string { return fmt.Sprintf("%.1f s", v) }

func percent(v float64) string {
	if v < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

func bytes(n int64) string {
	switch {
	case n == 0:
		return ""
	case n >= 10e9:
		return fmt.Sprintf("%.0f GB", float64(n)/1e9)
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1e6)
}
