package drill

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/quotasvc/quotasvc/internal/bench"
)

// perPoint is the number of moments that a point of the chart sums up: five seconds.
const perPoint = 10

// chart draws what became of operations over time, with a line at each failover.
func (r *Result) chart(path string) error {
	done, err := r.panel("acknowledged/s", func(m *Moment) int { return m.Done })
	if err != nil {
		return err
	}
	done.Title.Text = fmt.Sprintf("Drill with seed %d: %d kills, %d failovers (lines)", r.Seed, r.kills(), r.failovers())
	unanswered, err := r.panel("503 or no answer/s", func(m *Moment) int { return m.Unanswered })
	if err != nil {
		return err
	}
	unanswered.X.Label.Text = "seconds"
	return bench.SavePanels([]*plot.Plot{done, unanswered}, path)
}

// panel draws how fast a count grows.
func (r *Result) panel(y string, count func(*Moment) int) (*plot.Plot, error) {
	var points plotter.XYs
	top := 1.0
	for i := perPoint; i < len(r.Timeline); i += perPoint {
		before, m := &r.Timeline[i-perPoint], &r.Timeline[i]
		rate := float64(count(m)-count(before)) / (m.At - before.At).Seconds()
		points, top = append(points, plotter.XY{X: m.At.Seconds(), Y: rate}), max(top, rate)
	}
	p := plot.New()
	p.Y.Label.Text, p.Y.Min, p.Y.Max = y, 0, top*1.1
	for _, mark := range r.Marks {
		if !strings.HasPrefix(string(mark.Action), string(Failover)) {
			continue
		}
		at := mark.At.Seconds()
		line, err := plotter.NewLine(plotter.XYs{{X: at, Y: 0}, {X: at, Y: top * 1.1}})
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", y, err)
		}
		line.Color, line.Dashes = bench.Ink(0), []vg.Length{vg.Points(3), vg.Points(3)}
		p.Add(line)
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", y, err)
	}
	line.Color, line.Width = bench.Ink(1), vg.Points(1.2)
	p.Add(line)
	return p, nil
}
