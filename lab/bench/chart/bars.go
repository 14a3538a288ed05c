package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	barRoom   = vg.Length(20) // of a bar and the gap to the next
	barHeight = vg.Length(13)
	axisRoom  = vg.Length(44) // of the horizontal axis, its ticks and label
	gap       = vg.Length(6)  // between a bar and its name and note

	// wider is how much wider than its own font's a text may become where that font is missing.
	wider = 1.2
)

// Bars configures a panel of bars, the first at the top.
type Bars struct {
	X    string // label of the axis
	Bars []Bar
	Line float64 // where a vertical line is drawn; notes begin right of it. 0: none
	Cut  float64 // longer bars end here; their notes tell the value. 0: none
}

// Bar is a name, parts from left to right, and a note at their end.
type Bar struct {
	Name  string
	Parts []Part
	Note  string
}

// Part is a piece of a bar.
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

// rows draws bars.
type rows struct {
	Bars

	most  float64   // where the longest bar ends
	left  vg.Length // where the names begin
	names vg.Length // the room that they need
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

// place leaves room for the names left of the axis, and for the notes right of the bars: the axis becomes longer by the longest.
func (r *rows) place(c draw.Canvas, p *plot.Plot) draw.Canvas {
	style := styled(textSize, draw.YCenter)
	r.left = c.Min.X
	c = draw.Crop(c, r.names, 0, 0, 0)
	width, part := c.Size().X, 1.0 // of the axis that ends where the longest bar does
	for _, b := range r.Bars.Bars {
		note := style.Width(b.Note)*wider + gap
		if end := r.noteAt(&b); end > 0 {
			part = min(part, float64((width-note)/width)*r.most/end)
		}
	}
	p.X.Min, p.X.Max = 0, r.most/max(part, 0.25)
	return c
}

// noteAt returns where the note of a bar begins.
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

// upTo has no ticks in the room of the notes.
type upTo struct{ *rows }

// Ticks returns the ticks of an axis.
func (u upTo) Ticks(least, _ float64) []plot.Tick { return ticks{}.Ticks(least, u.most) }
