package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// Printer writes tables.
type Printer struct {
	Out   io.Writer
	Color bool    // whether verdicts are red and green, for terminals
	Last  *Record // the record to compare with; nil: no changes are printed
}

// Results writes the results of a run.
func (p *Printer) Results(r *Results) error {
	m := &r.Machine
	p.Machine(m)
	fmt.Fprintf(p.Out, "%d connections, %d tenants, %d rounds of %s; took %s\n\n", m.Connections, m.Tenants, m.Rounds, m.Slice, r.Took)
	last := p.Last
	if last == nil {
		last = &Record{}
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t\t\t\t\t\t\t\tCPU µs\tper\tunit\t\t\n")
	fmt.Fprint(t, "throughput\tmedian/s\tchange\tlow\thigh\tp50\tp99\terrors\tweb\tPostgreSQL\tRedis\tchange\tgenerator\t\n")
	for i := range r.Variants {
		v := &r.Variants[i]
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%.0f\t%.0f\t%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%s\t%.1f\t\n", v.Name, v.Median, change(v.Median, last.Rates, v.Name),
			slices.Min(v.Rates), slices.Max(v.Rates), Micros(v.P50), Micros(v.P99), v.Errors, us(v.CPU.Service), us(v.CPU.PostgreSQL), us(v.CPU.Redis),
			change(us(v.CPU.Cost()), last.Costs, v.Name), us(v.CPU.Generator))
	}
	for _, name := range r.NotThere {
		fmt.Fprintf(t, "%s\tnot there\t\t\t\t\t\t\t\t\t\t\t\t\n", name)
	}
	loops := slices.Concat(r.oneClient(), r.OpenLoops)
	if len(loops) > 0 {
		fmt.Fprint(t, "\t\t\t\t\t\t\t\t\t\t\t\t\t\nlatency\tachieved/s\t\tp50\tp90\tp99\tp99.9\terrors\t\t\t\t\t\t\n")
	}
	for _, o := range loops {
		fmt.Fprintf(t, "%s\t%.0f\t\t%s\t%s\t%s\t%s\t%d\t\t\t\t\t\t\n", o.what(), o.Achieved, Micros(o.P50), Micros(o.P90), Micros(o.P99),
			Micros(o.P999), o.Errors)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if u := r.InUse; u != nil {
		fmt.Fprintf(p.Out, "\n%s tenants in use: first debits in batches %s/s, CPU %.1f µs each (service %.1f, PostgreSQL %.1f, Redis %.1f); then a check of each, %s/s; %d refused\n",
			chart.Figure(float64(u.Tenants)), chart.Figure(u.FirstTouch), us(u.CPU.Cost()), us(u.CPU.Service), us(u.CPU.PostgreSQL), us(u.CPU.Redis),
			chart.Figure(u.Checks), u.Errors)
	}
	if err := p.ratios(r.Ratios, last); err != nil {
		return err
	}
	if err := p.Targets(r.Targets); err != nil {
		return err
	}
	if p.Last != nil {
		fmt.Fprintf(p.Out, "\n%s\n", p.Last.about(m))
	}
	fmt.Fprintln(p.Out, "this program does not measure: a journal of 20M rows, a roll of 1M balances, bytes per Redis bucket")
	return nil
}

// Machine writes the facts about the machine and the servers on which the results depend.
func (p *Printer) Machine(m *Machine) {
	fmt.Fprintf(p.Out, "\n%s, %d cores, %s; %s, %s, %s\n%s; 8 KiB write+fsync %s; load before %s\n", m.CPU, m.Cores, m.OS, m.Go, m.PostgreSQL,
		m.Redis, m.Durability, Micros(m.SyncMicros), m.LoadBefore)
}

func (p *Printer) ratios(ratios []Target, last *Record) error {
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nratio of throughput, for information\tmeasured\tlow to high\tchange\n")
	for i := range ratios {
		g := &ratios[i]
		fmt.Fprintf(t, "%s\t%s\t%s to %s\t%s\n", g.What, amount(g.Measured, g.Unit), chart.Figure(g.Low), chart.Figure(g.High),
			change(g.Measured, last.Ratios, g.What))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Targets writes a table of targets.
func (p *Printer) Targets(targets []Target) error {
	last := map[string]float64{}
	if p.Last != nil {
		last = p.Last.Targets
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\ntarget\twanted\tmeasured\tlow to high\trecorded\tchange\t\n")
	for i := range targets {
		g := &targets[i]
		between, recorded := "", ""
		if g.High > 0 {
			between = chart.Figure(g.Low) + " to " + chart.Figure(g.High)
		}
		if was, found := last[g.What]; found {
			recorded = amount(was, g.Unit)
		}
		// The verdict is the last cell, so the escapes of its color move no column.
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.What, g.wanted(), amount(g.Measured, g.Unit), between, recorded,
			change(g.Measured, last, g.What), p.paint(g))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// paint returns the verdict of a target in its color.
func (p *Printer) paint(t *Target) string {
	switch {
	case !p.Color:
		return t.verdict()
	case t.Pass:
		return "\x1b[32m" + t.verdict() + "\x1b[0m"
	default:
		return "\x1b[31m" + t.verdict() + "\x1b[0m"
	}
}

func (r *Results) oneClient() []OpenLoop {
	if r.OneClient == nil {
		return nil
	}
	return []OpenLoop{*r.OneClient}
}

func (o *OpenLoop) what() string {
	if o.Rate == 0 {
		return o.Name + ", one client"
	}
	return fmt.Sprintf("%s at %s/s", o.Name, chart.Figure(float64(o.Rate)))
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Micros returns microseconds as text.
func Micros(us int64) string {
	if us >= 1000 {
		return fmt.Sprintf("%.1f ms", float64(us)/1000)
	}
	return fmt.Sprintf("%d µs", us)
}
