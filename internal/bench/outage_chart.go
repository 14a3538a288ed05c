package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart draws the timeline in three panels: latency, admissions and script calls.
func (r *OutageResult) chart(path string) (err error) {
	latency, err := r.panel("ms (logarithmic)",
		curve{"check, p99 of 0.1 s", 1, func(m *Moment) float64 { return max(m.CheckP99.Seconds()*1000, 0.1) }},
		curve{"slowest request of 0.1 s", 2, func(m *Moment) float64 { return max(m.Slowest.Seconds()*1000, 0.1) }})
	if err != nil {
		return err
	}
	latency.Title.Text = fmt.Sprintf("Redis killed at %d requests/s, and back again", r.Rate)
	latency.Y.Scale, latency.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	latency.Y.Min, latency.Y.Max = 0.1, 1000
	admitted, err := r.panel("admitted in 0.1 s",
		curve{"by Redis", 1, func(m *Moment) float64 { return float64(m.AdmittedByRedis) }},
		curve{"by the instances", 2, func(m *Moment) float64 { return float64(m.AdmittedLocally) }})
	if err != nil {
		return err
	}
	calls, err := r.panel("script calls in 0.1 s", curve{"", 3, func(m *Moment) float64 { return float64(m.Calls) }})
	if err != nil {
		return err
	}
	calls.X.Label.Text = "seconds; the lines are the kill and the return of Redis"
	return SavePanels([]*plot.Plot{latency, admitted, calls}, path)
}

// curve is one value over the timeline.
type curve struct {
	name  string
	color int
	of    func(*Moment) float64
}

// panel draws curves, and vertical lines at the kill and the return of Redis.
func (r *OutageResult) panel(y string, curves ...curve) (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text = y
	p.Legend.Top = true
	top := 0.0
	for _, c := range curves {
		var points plotter.XYs
		for i := range r.Timeline {
			m := &r.Timeline[i]
			points = append(points, plotter.XY{X: m.At.Seconds(), Y: c.of(m)})
			top = max(top, points[i].Y)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", y, err)
		}
		line.Color, line.Width = Ink(c.color), vg.Points(1.2)
		p.Add(line)
		if c.name != "" {
			p.Legend.Add(c.name, line)
		}
	}
	p.Y.Min, p.Y.Max = 0, top*1.3 // room for the legend above the lines
	for _, at := range []float64{r.Killed.Seconds(), r.Back.Seconds()} {
		mark, err := plotter.NewLine(plotter.XYs{{X: at, Y: 0.1}, {X: at, Y: max(p.Y.Max, 1000)}})
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", y, err)
		}
		mark.Color, mark.Dashes = Ink(0), []vg.Length{vg.Points(3), vg.Points(3)}
		top := p.Y.Max
		p.Add(mark)
		p.Y.Min, p.Y.Max = 0, top // the vertical line does not change the scale
	}
	return p, nil
}

// SavePanels writes panels from top to bottom with aligned axes.
func SavePanels(panels []*plot.Plot, path string) (err error) {
	canvas := vgsvg.New(chartWidth, chartHeight*vg.Length(len(panels))*0.6)
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadX: vg.Points(8), PadY: vg.Points(6), PadRight: vg.Points(8), PadTop: vg.Points(4)}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		panels[i].Draw(row[0])
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	if _, err := canvas.WriteTo(out); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return out.Flush()
}
