package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// FloodResult is the effect of floods of refused requests on other tenants, and the cost of the floods.
type FloodResult struct {
	Machine *report.Machine `json:"machine,omitempty"`
	Rate    int             `json:"debits_per_second"`
	Factor  int             `json:"refused_for_each_debit"`
	Others  int             `json:"tenants_that_debit"`
	Tenants int             `json:"tenants_of_each_flood"`
	Rounds  int             `json:"rounds"`
	Slice   string          `json:"slice"`

	Floods  []FloodSlices   `json:"floods"`
	Costs   []FloodCost     `json:"costs"`
	Targets []report.Target `json:"targets"`
}

// FloodSlices is the latency of other tenants' debits in the slices with one kind of flood. It also has the latency in
// the slices without a flood that precede them.
type FloodSlices struct {
	Name    string         `json:"name"`
	Quiet   report.Latency `json:"without_micros"`
	Flood   report.Latency `json:"with_micros"`
	Ratios  []float64      `json:"p99_ratios"` // by round: the p99 with a flood, divided by the p99 without
	Errors  int64          `json:"errors"`     // debits of the other tenants that were not answered with 200
	Answers map[int]int64  `json:"answers"`    // answers to the flood by status; 0: not sent in time

	kinds       []string
	quiet, loud *hdrhistogram.Histogram
}

// FloodCost is the number of transactions in PostgreSQL for refused requests of one kind.
type FloodCost struct {
	Name         string `json:"name"`
	Refused      int64  `json:"refused"`
	Transactions int64  `json:"transactions"`

	most float64
}

// perRequest returns the transactions for each refused request.
func (c *FloodCost) perRequest() float64 { return float64(c.Transactions) / float64(max(c.Refused, 1)) }

// floodP99Max is the maximum of the p99 of other tenants' debits during a flood, as a multiple of their p99 without a
// flood.
const floodP99Max = 1.5

func (r *FloodResult) judge() {
	r.Targets = nil
	for i := range r.Floods {
		s := &r.Floods[i]
		if s.Name == floodEcho {
			continue // the control has no bound
		}
		t := report.AtMost("p99 of others' debits, flood "+s.Name, "x", floodP99Max,
			report.Median(s.Ratios)).Between(s.Ratios)
		t.Pass = t.Pass && s.Errors == 0
		r.Targets = append(r.Targets, t)
	}
	for i := range r.Costs {
		c := &r.Costs[i]
		t := report.AtMost("PostgreSQL transactions per refused request, "+c.Name, "", c.most, c.perRequest())
		t.Pass = t.Pass && c.Refused > 0
		r.Targets = append(r.Targets, t)
	}
}

// Met reports whether all targets are met.
func (r *FloodResult) Met() bool { return report.AllMet(r.Targets) }

// Print writes the result as tables.
func (r *FloodResult) Print(p *report.Printer) error {
	if r.Machine != nil {
		p.Machine(r.Machine)
	}
	fmt.Fprintf(p.Out, "%d tenants debit %d/s in all; floods of %d refused consumes for each debit, by %d tenants of each kind; %d rounds of %s\n\n",
		r.Others, r.Rate, r.Factor, r.Tenants, r.Rounds, r.Slice)
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\twithout: p50\tp99\tp99.9\twith: p50\tp99\tp99.9\terrors\tanswers to the flood\t\n")
	for i := range r.Floods {
		s := &r.Floods[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n", s.Name, report.Micros(s.Quiet.P50), report.Micros(s.Quiet.P99),
			report.Micros(s.Quiet.P999), report.Micros(s.Flood.P50), report.Micros(s.Flood.P99), report.Micros(s.Flood.P999), s.Errors, answers(s.Answers))
	}
	fmt.Fprint(t, "\t\t\t\t\t\t\t\t\t\n\trefused\ttransactions\t\t\t\t\t\t\t\n")
	for i := range r.Costs {
		c := &r.Costs[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t\t\t\t\t\t\t\n", c.Name, c.Refused, c.Transactions)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return p.Targets(r.Targets)
}

// answers returns a text with the number of answers for each status. For requests that were not sent in time, there
// is no status.
func answers(by map[int]int64) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(by)) {
		name := fmt.Sprint(status)
		if status == 0 {
			name = "not taken"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, by[status]))
	}
	return strings.Join(parts, ", ")
}

// write writes flood.json and flood.svg into dir.
func (r *FloodResult) write(dir string) error {
	if err := report.WriteJSON(filepath.Join(dir, "flood.json"), r); err != nil {
		return err
	}
	return r.picture(filepath.Join(dir, "flood.svg"))
}

// Keep writes the picture below docs.
func (r *FloodResult) Keep(docs string) error { return r.picture(report.Picture(docs, "flood")) }

func (r *FloodResult) picture(path string) error {
	return report.TargetsPage("A flood of refused requests: targets", r.Targets).Save(path)
}
