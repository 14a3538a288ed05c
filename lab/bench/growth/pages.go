package growth

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// cut is the ratio at which longer bars are cut off. The notes of such bars contain the value.
const cut = 3.0

// draw draws the measured steps, and removes the pictures of steps that were not measured.
func (r *Result) draw(pathOf func(name string) string) error {
	return report.Draw(pathOf, map[string]*chart.Page{
		"throughput": r.ratioPage("Throughput, in relation to the smallest size", "x the throughput of the first size; less than 0.85 is red", throughputLeast, (*Step).Throughput),
		"latency":    r.ratioPage("p99 at a fixed rate, in relation to the smallest size", "x the p99 of the first size; more than 1.5 is red", p99Most, (*Step).Latency),
		"targets":    report.TargetsPage("Growth: the part of what each target allows", r.Targets()),
		"balances":   r.balancesPage(),
		"month-end":  r.monthPage(),
	})
}

// ratioPage draws a bar for each size and load of all dimensions.
func (r *Result) ratioPage(title, axis string, bound float64, of func(*Step, int, string) []float64) *chart.Page {
	var bars []chart.Bar
	for at := range r.Steps {
		s := &r.Steps[at]
		for i := 1; i < len(s.Sizes); i++ {
			for _, load := range []string{Debits, Checks} {
				all := of(s, i, load)
				v := report.Median(all)
				if v == 0 {
					continue
				}
				ink := chart.Met
				if bound < 1 && v < bound || bound > 1 && v > bound {
					ink = chart.Missed
				}
				bars = append(bars, chart.Bar{
					Name: s.name(i, load), Parts: []chart.Part{{Value: v, Ink: ink}},
					Note: fmt.Sprintf("%.2f x (rounds %.2f to %.2f)", v, slices.Min(all), slices.Max(all)),
				})
			}
		}
	}
	if len(bars) == 0 {
		return nil
	}
	p := chart.NewBars(chart.Bars{X: axis, Bars: bars, Line: bound, Cut: cut})
	p.Key("met", chart.Met)
	p.Key("missed", chart.Missed)
	return &chart.Page{Title: title, Panels: []*chart.Panel{p}, About: "A bar for each size and load: the median of the rounds, and a line at the bound."}
}

// balancesPage draws the HOT updates and the size of the table balances for each layout.
func (r *Result) balancesPage() *chart.Page {
	s := r.Step(Balances)
	if s == nil || len(s.Layouts) == 0 {
		return nil
	}
	hot, size := make([]chart.Bar, len(s.Layouts)), make([]chart.Bar, len(s.Layouts))
	for i := range s.Layouts {
		l := &s.Layouts[i]
		ink := chart.Service
		if l.Label == AsMigrated {
			ink = chart.Met
			if l.Hot < hotLeast || l.Bloat() > bloatMost {
				ink = chart.Missed
			}
		}
		hot[i] = chart.Bar{Name: l.Label, Parts: []chart.Part{{Value: 100 * l.Hot, Ink: ink}}, Note: percent(l.Hot)}
		size[i] = chart.Bar{
			Name:  l.Label,
			Parts: []chart.Part{{Value: float64(l.HeapBefore+l.IndexesWas) / 1e6, Ink: chart.Baseline}, {Value: max(0, float64(l.Heap+l.Indexes-l.HeapBefore-l.IndexesWas)) / 1e6, Ink: chart.Second}},
			Note:  fmt.Sprintf("%s, %s x", bytes(l.Heap+l.Indexes), chart.Figure(l.Bloat())),
		}
	}
	above := chart.NewBars(chart.Bars{X: "% of the updates that are HOT", Bars: hot})
	below := chart.NewBars(chart.Bars{X: "MB of heap and indexes", Bars: size})
	below.Key("before the debits", chart.Baseline)
	below.Key("growth", chart.Second)
	return &chart.Page{
		Title: fmt.Sprintf("The table balances after %s debits", figure(float64(s.Layouts[0].Debits))), Panels: []*chart.Panel{above, below},
		About: "The share of HOT updates, and the size before and after the debits, for several fillfactors and settings of autovacuum.",
	}
}

// monthPage draws the latency of live debits over time.
func (r *Result) monthPage() *chart.Page {
	s := r.Step(MonthEnd)
	if s == nil || s.Month == nil || len(s.Month.Moments) == 0 {
		return nil
	}
	m := s.Month
	p50, p99 := chart.Curve{Name: "p50", Ink: chart.Service}, chart.Curve{Name: "p99 of a second", Ink: chart.Second}
	for i := range m.Moments {
		at := &m.Moments[i]
		if at.Debits == 0 {
			continue
		}
		p50.Points = append(p50.Points, chart.Point{X: at.At, Y: float64(max(at.P50, 1)) / 1000})
		p99.Points = append(p99.Points, chart.Point{X: at.At, Y: float64(max(at.P99, 1)) / 1000})
	}
	p := chart.NewPanel("seconds", "ms")
	p.Tall()
	p.Add(p99, p50)
	p.LogY(0.1, 10_000)
	p.Mark(m.Ended, "period ends")
	p.Mark(m.JobFrom, "roll begins")
	p.Mark(m.JobTo, "roll ends")
	return &chart.Page{
		Title: fmt.Sprintf("A month's end of %s tenants beside %s live debits/s", count(int64(m.Tenants)), figure(float64(m.Rate))), Panels: []*chart.Panel{p},
		About: "Median and 99th percentile of live debits in each second, with lines where the period ends and where the roll begins and ends.",
	}
}
