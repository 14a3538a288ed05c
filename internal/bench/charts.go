package bench

import (
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format of the charts
)

const (
	chartWidth  = 9 * vg.Inch
	chartHeight = 4 * vg.Inch
	barWidth    = 16 // points
)

// Ink returns the color of the i-th curve. 0 is for marks.
func Ink(i int) color.Color {
	return []color.Color{
		color.RGBA{0x9a, 0xa5, 0xb1, 0xff}, color.RGBA{0x2f, 0x6f, 0xb7, 0xff}, color.RGBA{0xd9, 0x7b, 0x29, 0xff}, color.RGBA{0x3d, 0x9a, 0x5f, 0xff},
	}[i%4]
}

// charts draws throughput, ratios, and latency at fixed rates. It leaves out empty charts: a run of some variants may have no
// ratio with a target, or no fixed rate.
func (r *Results) charts(dir string) error {
	if err := r.throughputChart(filepath.Join(dir, "throughput.svg")); err != nil {
		return err
	}
	if err := r.ratioChart(filepath.Join(dir, "ratios.svg")); err != nil {
		return err
	}
	return r.latencyChart(filepath.Join(dir, "latency.svg"))
}

func bars(values plotter.Values, names []string, title string, c color.Color) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	b, err := plotter.NewBarChart(values, vg.Points(barWidth))
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", title, err)
	}
	b.Horizontal, b.Color, b.LineStyle.Width = true, c, 0
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: ends(values), Labels: figures(values)})
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", title, err)
	}
	labels.Offset = vg.Point{X: vg.Points(3), Y: -vg.Points(4)}
	p.Add(b, labels)
	p.NominalY(names...)
	p.X.Min = 0
	p.X.Max *= 1.12 // room for the last figure
	return p, nil
}

func ends(values plotter.Values) plotter.XYs {
	out := make(plotter.XYs, len(values))
	for i, v := range values {
		out[i] = plotter.XY{X: v, Y: float64(i)}
	}
	return out
}

func figures(values plotter.Values) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprintf("%.0f", v)
		if v < 100 {
			out[i] = fmt.Sprintf("%.2f", v)
		}
	}
	return out
}

func (r *Results) throughputChart(path string) error {
	var values plotter.Values
	var names []string
	for i := len(r.Variants) - 1; i >= 0; i-- { // a chart's first bar is at the bottom
		values, names = append(values, r.Variants[i].Median), append(names, r.Variants[i].Name)
	}
	p, err := bars(values, names, "Throughput, side by side (median of the rounds)", Ink(1))
	if err != nil {
		return err
	}
	p.X.Label.Text = "requests/s (batches: debits/s)"
	return save(p, path)
}

// ratioChart shows ratios divided by their targets, because targets differ thirtyfold.
func (r *Results) ratioChart(path string) error {
	var values plotter.Values
	var names []string
	for i := len(r.Targets) - 1; i >= 0; i-- {
		if g := &r.Targets[i]; g.Unit == "x" {
			values = append(values, g.Measured/g.Target)
			names = append(names, fmt.Sprintf("%s\n%.2f x, wanted %.2f x", short(g.What), g.Measured, g.Target))
		}
	}
	if len(values) == 0 {
		return leaveOut(path)
	}
	p, err := bars(values, names, "Ratios in proportion to their targets (1 = met)", Ink(3))
	if err != nil {
		return err
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(values)) - 0.5}})
	if err != nil {
		return fmt.Errorf("draw ratios: %w", err)
	}
	line.Color, line.Width = Ink(2), vg.Points(1.5)
	p.Add(line)
	p.X.Max = max(p.X.Max, 1.2)
	return save(p, path)
}

func short(what string) string {
	const room = 60
	if len(what) > room {
		return what[:room] + "..."
	}
	return what
}

// latencyChart has a line per load and percentile over the rates.
func (r *Results) latencyChart(path string) error {
	if len(r.OpenLoops) == 0 {
		return leaveOut(path)
	}
	p := plot.New()
	p.Title.Text = "Latency at fixed rates, from when a request was due"
	p.X.Label.Text, p.Y.Label.Text = "requests/s", "ms (logarithmic)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	for i, name := range []string{"echo", "check", "debit"} {
		for _, q := range []struct {
			name   string
			of     func(*OpenLoop) int64
			dashes []vg.Length
		}{
			{"p50", func(o *OpenLoop) int64 { return o.P50 }, []vg.Length{vg.Points(2), vg.Points(2)}},
			{"p99", func(o *OpenLoop) int64 { return o.P99 }, nil},
		} {
			var points plotter.XYs
			for j := range r.OpenLoops {
				if o := &r.OpenLoops[j]; o.Name == name {
					points = append(points, plotter.XY{X: float64(o.Rate), Y: float64(max(q.of(o), 1)) / 1000})
				}
			}
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return fmt.Errorf("draw latency: %w", err)
			}
			line.Color, line.Dashes, line.Width, dots.Color = Ink(i), q.dashes, vg.Points(1.5), Ink(i)
			p.Add(line, dots)
			p.Legend.Add(name+" "+q.name, line)
		}
	}
	p.Y.Max *= 10 // room for the legend above the lines
	return save(p, path)
}

// leaveOut removes the chart of an earlier run, which does not belong to this run's results.
func leaveOut(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("leave out %s: %w", path, err)
	}
	return nil
}

func save(p *plot.Plot, path string) error {
	if err := p.Save(chartWidth, chartHeight, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
