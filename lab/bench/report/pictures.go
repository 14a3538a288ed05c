package report

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// strainCut is the share of a target's allowance at which longer bars are cut off. The notes of such bars contain the
// value.
const strainCut = 3.0

// charts draws throughput, costs, targets, and latency. It omits pictures without content, because a run of some
// variants may have no target or no fixed rate. pathOf returns the path of a picture.
func (r *Results) charts(pathOf func(name string) string) error {
	return Draw(pathOf, map[string]*chart.Page{
		"throughput": r.throughputPage(), "cpu": r.costPage(), "latency": r.latencyPage(),
		"targets": TargetsPage("Targets: the part of what each allows", r.Targets),
	})
}

// Draw writes the pages as pictures, and removes the pictures of pages that are nil. pathOf returns the path of a
// picture.
func Draw(pathOf func(name string) string, pages map[string]*chart.Page) error {
	for name, page := range pages {
		path := pathOf(name)
		if page == nil {
			// The picture of an earlier run does not belong to this run's results.
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("leave out %s: %w", path, err)
			}
			continue
		}
		if err := page.Save(path); err != nil {
			return err
		}
	}
	return nil
}

// inkOf returns the ink of a variant, which distinguishes baselines from the service.
func (v *Variant) inkOf() chart.Ink {
	if v.Baseline {
		return chart.Baseline
	}
	return chart.Service
}

func (r *Results) throughputPage() *chart.Page {
	bars := make([]chart.Bar, len(r.Variants))
	for i := range r.Variants {
		v := &r.Variants[i]
		bars[i] = chart.Bar{Name: v.Name, Parts: []chart.Part{{Value: v.Median, Ink: v.inkOf()}}, Note: chart.Figure(math.Round(v.Median))}
	}
	if len(bars) == 0 {
		return nil
	}
	p := chart.NewBars(chart.Bars{X: "requests/s; with many in a request debits/s or checks/s", Bars: bars})
	p.Key("the service", chart.Service)
	p.Key("baselines", chart.Baseline)
	return &chart.Page{
		Title: "Throughput, side by side: median of the rounds", Panels: []*chart.Panel{p},
		About: "Requests per second of the service and of its baselines. For information: what a request costs is the target.",
	}
}

// costPage draws the CPU time per unit of each variant.
func (r *Results) costPage() *chart.Page {
	var bars []chart.Bar
	for i := range r.Variants {
		v := &r.Variants[i]
		if v.CPU.Cost() == 0 {
			continue
		}
		bars = append(bars, chart.Bar{
			Name: v.Name,
			Parts: []chart.Part{
				{Value: us(v.CPU.Service), Ink: v.inkOf()}, {
					Value: us(v.CPU.PostgreSQL),
					Ink:   chart.Third,
				}, {Value: us(v.CPU.Redis), Ink: chart.Second},
			},
			Note: chart.Figure(math.Round(us(v.CPU.Cost())*10)/10) + " µs",
		})
	}
	if len(bars) == 0 {
		return nil
	}
	p := chart.NewBars(chart.Bars{X: "µs of CPU per request; with many in a request per debit or check", Bars: bars})
	p.Key("the service", chart.Service)
	p.Key("baseline's HTTP server", chart.Baseline)
	p.Key("PostgreSQL", chart.Third)
	p.Key("Redis", chart.Second)
	return &chart.Page{
		Title: "CPU time of a request", Panels: []*chart.Panel{p},
		About: "CPU time per request of the HTTP server, PostgreSQL and Redis, for the service and its baselines.",
	}
}

// TargetsPage draws, for each target, which share of its allowance was used. Shares can be compared although targets
// have different units. Missed targets are red. It returns nil if there are no targets.
func TargetsPage(title string, targets []Target) *chart.Page {
	if len(targets) == 0 {
		return nil
	}
	bars := make([]chart.Bar, len(targets))
	missed := 0
	for i := range targets {
		g := &targets[i]
		ink, verdict := chart.Met, "met"
		if !g.Pass {
			ink, verdict = chart.Missed, "missed"
			missed++
		}
		bars[i] = chart.Bar{
			Name: g.What, Parts: []chart.Part{{Value: min(g.strain(), strainCut), Ink: ink}},
			Note: fmt.Sprintf("%s, wanted %s: %s", amount(g.Measured, g.Unit), g.wanted(), verdict),
		}
	}
	p := chart.NewBars(chart.Bars{X: "1 is the target; a bar past it misses it", Bars: bars, Line: 1, Cut: strainCut})
	p.TicksX(0, 1)
	p.Key("met", chart.Met)
	p.Key("missed", chart.Missed)
	return &chart.Page{
		Title: title, Panels: []*chart.Panel{p},
		About: fmt.Sprintf("%d of %d targets are met, %d are missed. Each bar shows the measured value in relation to its target.", len(targets)-missed,
			len(targets), missed),
	}
}

// latencyPage draws a curve for each load and percentile over the fixed rates.
func (r *Results) latencyPage() *chart.Page {
	if len(r.OpenLoops) == 0 {
		return nil
	}
	p := chart.NewPanel("requests/s", "ms")
	p.Tall()
	var rates []float64
	least, most := math.Inf(1), 0.0
	for _, load := range []struct {
		name string
		ink  chart.Ink
	}{{LoadEcho, chart.Baseline}, {LoadCheck, chart.Service}, {LoadDebit, chart.Second}} {
		p50, p99 := chart.Curve{Name: load.name + " p50", Ink: load.ink, Dotted: true, Dots: true}, chart.Curve{Name: load.name + " p99", Ink: load.ink, Dots: true}
		for i := range r.OpenLoops {
			o := &r.OpenLoops[i]
			if o.Name != load.name {
				continue
			}
			low, high := float64(max(o.P50, 1))/1000, float64(max(o.P99, 1))/1000
			p50.Points = append(p50.Points, chart.Point{X: float64(o.Rate), Y: low})
			p99.Points = append(p99.Points, chart.Point{X: float64(o.Rate), Y: high})
			rates, least, most = append(rates, float64(o.Rate)), min(least, low), max(most, high)
		}
		p.Add(p99, p50)
	}
	slices.Sort(rates)
	p.TicksX(slices.Compact(rates)...)
	p.LogY(math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most*1.01))))
	return &chart.Page{
		Title: "Latency at fixed rates, from when a request was due", Panels: []*chart.Panel{p},
		About: "Median and 99th percentile of the latency of bare echo, checks and debits at fixed rates.",
	}
}
