package tuning

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// Result compares settings of PostgreSQL. postgres.json has the same content.
type Result struct {
	Machine  report.Machine  `json:"machine"`
	Took     string          `json:"took"`
	Rate     int             `json:"fixed_rate_per_second"`
	Settings []SettingResult `json:"settings"`
	Left     []string        `json:"left_out,omitempty"` // settings that this machine cannot run, with the reason
	Answered int64           `json:"debits_answered"`
	Journal  int64           `json:"debits_in_journal"`
}

// SettingResult is the result of one setting. Each list has one element per round.
type SettingResult struct {
	Group   string       `json:"group"`
	Name    string       `json:"name"`
	Base    bool         `json:"base,omitempty"`
	Rates   []float64    `json:"debits_per_second"`
	Batches []float64    `json:"batched_debits_per_second"`
	CPU     []report.CPU `json:"cpu_ns_per_debit"`
	P99     []float64    `json:"p99_micros_at_fixed_rate"`
	Errors  int64        `json:"errors"`
	Gives   string       `json:"gives_up,omitempty"`

	// Ratio, BatchRatio and CPURatio compare this setting with the base of its group. Each contains the median, the
	// lowest and the highest of the rounds' ratios. PerDebit is the median CPU time per debit in µs.
	Ratio      Ratio   `json:"throughput_ratio"`
	BatchRatio Ratio   `json:"batch_throughput_ratio"`
	CPURatio   Ratio   `json:"cpu_ratio"` // of the service, PostgreSQL and Redis together
	PerDebit   float64 `json:"cpu_micros_per_debit"`
}

// Ratio is the median of the rounds' ratios, with the lowest and the highest ratio.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// NewSettingResult returns a result of the setting s to which no round was added yet.
func NewSettingResult(s *Setting) SettingResult {
	return SettingResult{Group: s.Group, Name: s.Name, Base: s.Name == base, Gives: s.gives}
}

// Round is the result of a setting in one round.
type Round struct {
	Rate, BatchRate float64    // debits/s
	CPU             report.CPU // CPU time per debit
	P99             float64    // p99 at the fixed rate, in µs
	Errors          int64
}

// Note adds the result of a round.
func (r *SettingResult) Note(round *Round) {
	r.Rates, r.Batches = append(r.Rates, round.Rate), append(r.Batches, round.BatchRate)
	r.CPU, r.P99 = append(r.CPU, round.CPU), append(r.P99, round.P99)
	r.Errors += round.Errors
}

// costs returns the CPU time per debit of each round.
func (r *SettingResult) costs() []float64 {
	out := make([]float64, len(r.CPU))
	for i, c := range r.CPU {
		out[i] = float64(c.Cost()) / float64(time.Microsecond)
	}
	return out
}

// Summarize compares each setting with the base of its group. In the list, the base is the first setting of its
// group.
func (r *Result) Summarize() {
	var against *SettingResult
	for i := range r.Settings {
		s := &r.Settings[i]
		if s.Base {
			against = s
		}
		s.Ratio, s.BatchRatio, s.CPURatio = compareRounds(s.Rates, against.Rates), compareRounds(s.Batches, against.Batches), compareRounds(s.costs(), against.costs())
		s.PerDebit = report.Median(s.costs())
	}
}

// compareRounds divides each value by the value of the base in the same round.
func compareRounds(values, against []float64) Ratio {
	all := report.Ratios(values, against)
	if len(all) == 0 {
		return Ratio{}
	}
	return Ratio{report.Median(all), slices.Min(all), slices.Max(all)}
}

func (r Ratio) text() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Median, r.Low, r.High) }

// columns returns the headings of the table.
func (r *Result) columns() []string {
	return []string{
		"group", "setting", "debits/s", "ratio (low to high)", "batched debits/s", "ratio", "CPU µs a debit", "ratio",
		fmt.Sprintf("p99 at %s/s", chart.Figure(float64(r.Rate))), "errors", "gives up",
	}
}

func (r *SettingResult) row() []string {
	return []string{
		r.Group, r.Name, chart.Figure(report.Median(r.Rates)), r.Ratio.text(), chart.Figure(report.Median(r.Batches)), fmt.Sprintf("%.2f", r.BatchRatio.Median),
		fmt.Sprintf("%.1f", r.PerDebit), fmt.Sprintf("%.2f", r.CPURatio.Median), report.Micros(int64(report.Median(r.P99))), fmt.Sprint(r.Errors), r.Gives,
	}
}

// Print writes the machine and the table.
func (r *Result) Print(p *report.Printer) error {
	p.Machine(&r.Machine)
	r.about(p.Out)
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(r.columns(), "\t"))
	for i := range r.Settings {
		fmt.Fprintln(t, strings.Join(r.Settings[i].row(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	for _, left := range r.Left {
		fmt.Fprintf(p.Out, "left out: %s\n", left)
	}
	fmt.Fprintf(p.Out, "%d debits were answered, %d are in the journal\n", r.Answered, r.Journal)
	return nil
}

func (r *Result) about(out io.Writer) {
	fmt.Fprintf(out, "%d connections, %d tenants, %d rounds of %s; batches of %d; took %s\n\n", r.Machine.Connections, r.Machine.Tenants, r.Machine.Rounds,
		r.Machine.Slice, r.Machine.Batch, r.Took)
}

// Markdown writes the table for a document.
func (r *Result) Markdown(out io.Writer) {
	fmt.Fprintf(out, "%s, %d cores; %s, %s, %s; %s; load before %s; %s.\n", r.Machine.CPU, r.Machine.Cores, r.Machine.PostgreSQL, r.Machine.Redis, r.Machine.Go,
		r.Machine.Durability, r.Machine.LoadBefore, r.Machine.Date.Format("2 January 2006"))
	r.about(out)
	line := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	line(r.columns())
	line(slices.Repeat([]string{"---"}, len(r.columns())))
	for i := range r.Settings {
		line(r.Settings[i].row())
	}
	for _, left := range r.Left {
		fmt.Fprintf(out, "\nLeft out: %s.\n", left)
	}
}

// chart draws the ratios of throughput.
func (r *Result) chart(path string) error {
	bars := chart.Bars{X: "debits/s, as a multiple of the base of the group in the same round", Line: 1}
	for i := range r.Settings {
		s := &r.Settings[i]
		if s.Base {
			continue
		}
		bars.Bars = append(bars.Bars, chart.Bar{
			Name: s.Group + ": " + s.Name, Parts: []chart.Part{{Value: s.Ratio.Median, Ink: chart.Service}},
			Note: fmt.Sprintf("%.2f x, %.2f to %.2f; p99 %s", s.Ratio.Median, s.Ratio.Low, s.Ratio.High, report.Micros(int64(report.Median(s.P99)))),
		})
	}
	return (&chart.Page{
		Title:  "Settings of PostgreSQL: throughput of durable debits",
		About:  "A bar for each setting: the median of its throughput as a multiple of the base's.",
		Panels: []*chart.Panel{chart.NewBars(bars)},
	}).Save(path)
}

// Keep writes the picture below docs.
func (r *Result) Keep(docs string) error { return r.chart(report.Picture(docs, "postgres")) }

// Save writes postgres.json and postgres.svg into dir.
func (r *Result) Save(dir string) error {
	if err := report.WriteJSON(filepath.Join(dir, "postgres.json"), r); err != nil {
		return err
	}
	return r.chart(filepath.Join(dir, "postgres.svg"))
}
