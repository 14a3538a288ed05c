package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	curveHeight = vg.Length(150)
	curveWidth  = vg.Length(1.6)
	dotRadius   = vg.Length(2.5)
	keyWidth    = vg.Length(18)
	headroom    = 1.3 // factor that lengthens an axis if marks have texts, which are above the curves
)

// Panel is a pair of axes with curves or bars.
type Panel struct {
	plot   *plot.Plot
	height vg.Length
	keys   []key
	rows   *rows // bars; nil: a panel of curves
	log    bool
	marked bool // the texts of marks need room above the curves
}

// key is the name of a color, which is written beside a line of that color.
type key struct {
	name string
	line draw.LineStyle
}

// Point is a point of a curve, in the units of the axes.
type Point struct{ X, Y float64 }

// Curve is a line through points. The legend of the chart shows its name.
type Curve struct {
	Name   string // empty: no key
	Ink    Ink
	Dotted bool
	Dots   bool // whether each point is marked
	Points []Point
}

// NewPanel returns a panel for curves. Its axes start at zero and end where the curves end.
func NewPanel(x, y string) *Panel {
	p := plot.New()
	p.BackgroundColor = page.color()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color = text.color(), text.color()
		a.Label.TextStyle.Font = styled(textSize, draw.YTop).Font
		a.Label.TextStyle.Color = text.color()
		a.Tick.Label.Font = a.Label.TextStyle.Font
		a.Tick.Label.Color = text.color()
		a.Tick.Marker = ticks{}
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Label.Padding = vg.Length(4)
	p.X.Min, p.Y.Min = 0, 0
	return &Panel{plot: p, height: curveHeight}
}

// Add draws curves. It omits a curve without points.
func (p *Panel) Add(curves ...Curve) {
	for _, c := range curves {
		if len(c.Points) == 0 {
			continue
		}
		style := draw.LineStyle{Color: c.Ink.color(), Width: curveWidth}
		if c.Dotted {
			style.Dashes = []vg.Length{2, 2}
		}
		points := make(plotter.XYs, len(c.Points))
		for i, at := range c.Points {
			points[i] = plotter.XY(at)
		}
		p.plot.Add(&plotter.Line{XYs: points, LineStyle: style})
		if c.Dots {
			p.plot.Add(&plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c.Ink.color(), Radius: dotRadius, Shape: draw.CircleGlyph{}}})
		}
		if c.Name != "" {
			p.keys = append(p.keys, key{c.Name, style})
		}
	}
}

// Key adds a key with the name of an ink.
func (p *Panel) Key(name string, ink Ink) {
	p.keys = append(p.keys, key{name, draw.LineStyle{Color: ink.color(), Width: vg.Length(textSize) - 2}})
}

// Tall doubles the height of the panel.
func (p *Panel) Tall() { p.height = 2 * curveHeight }

// LogY makes the vertical axis logarithmic between two powers of ten. A point below the smaller power is drawn at the
// smaller power.
func (p *Panel) LogY(least, most float64) {
	p.plot.Y.Scale, p.plot.Y.Tick.Marker = floor{least}, decades{}
	p.plot.Y.Min, p.plot.Y.Max = least, most
	p.log = true
}

// TicksX puts the ticks of the horizontal axis at the given values.
func (p *Panel) TicksX(values ...float64) {
	at := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		at[i] = plot.Tick{Value: v, Label: Figure(v)}
	}
	p.plot.X.Tick.Marker = at
}

// Mark draws a vertical line with a text at its upper end.
func (p *Panel) Mark(at float64, words string) {
	p.plot.Add(mark{at, words})
	p.marked = p.marked || words != ""
}

type mark struct {
	at    float64
	words string
}

// Plot draws the mark.
func (m mark) Plot(c draw.Canvas, p *plot.Plot) {
	toX, _ := p.Transforms(&c)
	x := toX(m.at)
	if x < c.Min.X || x > c.Max.X {
		return
	}
	c.StrokeLine2(draw.LineStyle{Color: text.color(), Width: 1, Dashes: []vg.Length{4, 3}}, x, c.Min.Y, x, c.Max.Y)
	c.FillText(styled(textSize, draw.YTop), vg.Point{X: x + 4, Y: c.Max.Y}, m.words)
}

// prepare lengthens the vertical axis if marks have texts, so that the texts are above the curves.
func (p *Panel) prepare() {
	switch {
	case p.marked && p.log:
		p.plot.Y.Max *= math.Pow(p.plot.Y.Max/p.plot.Y.Min, headroom-1)
	case p.marked:
		p.plot.Y.Max *= headroom
	}
}

// axisRoom returns the width of the vertical axis with its labels.
func (p *Panel) axisRoom(c draw.Canvas) vg.Length { return p.plot.DataCanvas(c).Min.X - c.Min.X }

func (p *Panel) draw(c draw.Canvas) {
	left := p.plot.DataCanvas(c).Min.X
	if p.rows != nil {
		left = c.Min.X
		c = p.rows.place(c, p.plot)
	}
	p.plot.Draw(c)
	p.drawKeys(c, vg.Point{X: left, Y: p.plot.DataCanvas(c).Max.Y + keyRoom/2})
}

// drawKeys writes the keys in a row.
func (p *Panel) drawKeys(c draw.Canvas, at vg.Point) {
	style := styled(textSize, draw.YCenter)
	x, y := at.X, at.Y
	for _, k := range p.keys {
		c.StrokeLine2(k.line, x, y, x+keyWidth, y)
		c.FillText(style, vg.Point{X: x + keyWidth + 5, Y: y}, k.name)
		x += 2*keyWidth + style.Width(k.name)*wider
	}
}

// ticks places the ticks as the library does, and writes all digits of whole numbers.
type ticks struct{}

// Ticks returns the ticks of an axis.
func (ticks) Ticks(least, most float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(least, most)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = Figure(all[i].Value)
		}
	}
	return all
}

// decades places ticks with a label at the powers of ten, and small ticks between them.
type decades struct{}

// Ticks returns the ticks of an axis.
func (decades) Ticks(least, most float64) (all []plot.Tick) {
	for v := least; v <= most*1.001; v *= 10 {
		all = append(all, plot.Tick{Value: v, Label: Figure(v)})
		for i := 2.0; i < 10 && i*v < most; i++ {
			all = append(all, plot.Tick{Value: i * v})
		}
	}
	return all
}

// floor is a logarithmic scale that has no values below the field least.
type floor struct{ least float64 }

// Normalize returns the position of x between the ends of the axis, from 0 to 1.
func (f floor) Normalize(least, most, x float64) float64 {
	return math.Log(max(x, f.least)/least) / math.Log(most/least)
}

// Figure returns a value as text. Thousands are grouped. Values below 100 have up to two digits after the point, and
// values below 0.1 have up to four.
func Figure(v float64) string {
	if math.Abs(v) < 0.1 {
		return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
	}
	if math.Abs(v) < 100 {
		return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
