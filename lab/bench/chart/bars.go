package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	barRoom   = vg.Length(20) // height of a bar and of the gap to the next bar
	barHeight = vg.Length(13)
	axisRoom  = vg.Length(44) // height of the horizontal axis with its ticks and label
	gap       = vg.Length(6)  // between a bar and its name and note

	// wider is the factor by which a text may become wider if a viewer has no font of the chart and uses another one.
	wider = 1.2
)

// Bars configures a panel of horizontal bars. The first bar is at the top.
type Bars struct {
	X    string // label of the axis
	Bars []Bar
	Line float64 // position of a vertical line; notes begin right of the line. 0: no line
	Cut  float64 // longer bars end here, and their notes contain the value. 0: no cut
}

// Bar is a bar with a name at its left, parts from left to right, and a note at its end.
type Bar struct {
	Name  string
	Parts []Part
	Note  string
}

// Part is a section of a bar, with its length on the axis and its color.
type Part struct {
	Value float64
	Ink   Ink
}

func (b *Bar) length() (sum float64) {
	for _, part := range b.Parts {
		sum += part.Value
	}
	return sum
}

// rows draws the bars of a panel.
type rows struct {
	Bars

	most  float64   // end of the longest bar
	left  vg.Length // position where the names begin
	names vg.Length // width of the names
}

// NewBars returns a panel of bars.
func NewBars(config Bars) *Panel {
	p := NewPanel(config.X, "")
	p.rows = &rows{Bars: config}
	style := styled(textSize, draw.YCenter)
	for _, b := range config.Bars {
		p.rows.most = max(p.rows.most, b.length())
		p.rows.names = max(p.rows.names, style.Width(b.Name)*wider+gap)
	}
	if config.Cut > 0 {
		p.rows.most = min(p.rows.most, config.Cut)
	}
	p.plot.HideY()
	p.plot.Y.Min, p.plot.Y.Max = -0.6, float64(len(config.Bars))-0.4
	p.plot.X.Tick.Marker = upTo{p.rows}
	p.plot.Add(p.rows)
	if config.Line > 0 {
		p.Mark(config.Line, "")
	}
	p.height = vg.Length(len(config.Bars))*barRoom + axisRoom
	return p
}

// place reserves space for the names at the left of the axis and for the notes at the right of the bars. For the
// notes, it lengthens the axis by the longest note.
func (r *rows) place(c draw.Canvas, p *plot.Plot) draw.Canvas {
	style := styled(textSize, draw.YCenter)
	r.left = c.Min.X
	c = draw.Crop(c, r.names, 0, 0, 0)
	width, part := c.Size().X, 1.0 // part of the axis up to the end of the longest bar
	for _, b := range r.Bars.Bars {
		note := style.Width(b.Note)*wider + gap
		if end := r.noteAt(&b); end > 0 {
			part = min(part, float64((width-note)/width)*r.most/end)
		}
	}
	p.X.Min, p.X.Max = 0, r.most/max(part, 0.25)
	return c
}

// noteAt returns the value on the axis at which the note of a bar begins.
func (r *rows) noteAt(b *Bar) float64 { return max(min(b.length(), r.most), r.Line) }

// Plot draws the bars.
func (r *rows) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := styled(textSize, draw.YCenter)
	for i, b := range r.Bars.Bars {
		sum, y := 0.0, toY(float64(len(r.Bars.Bars)-1-i))
		c.FillText(style, vg.Point{X: r.left, Y: y}, b.Name)
		for _, part := range b.Parts {
			left, right := toX(min(sum, r.most)), toX(min(sum+part.Value, r.most))
			c.FillPolygon(part.Ink.color(), []vg.Point{
				{X: left, Y: y - barHeight/2}, {X: right, Y: y - barHeight/2}, {X: right, Y: y + barHeight/2}, {X: left, Y: y + barHeight/2},
			})
			sum += part.Value
		}
		c.FillText(style, vg.Point{X: toX(r.noteAt(&b)) + gap, Y: y}, b.Note)
	}
}

// upTo places the ticks of the axis. It places no ticks beyond the end of the longest bar, where the notes are.
type upTo struct{ *rows }

// Ticks returns the ticks of an axis.
func (u upTo) Ticks(least, _ float64) []plot.Tick { return ticks{}.Ticks(least, u.most) }
