package chart

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	gonumtext "gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	pageWidth = 9.5 * vg.Inch
	margin    = vg.Length(14)
	titleRoom = vg.Length(24)
	keyRoom   = vg.Length(20) // space above each panel, for its keys
	titleSize = 13
	textSize  = 10
)

// Page is a picture with a title and one or more panels.
type Page struct {
	Title  string
	About  string // what the picture shows, for readers who do not see it
	Panels []*Panel
}

// Save writes the page to a file.
func (p *Page) Save(path string) error {
	height := 2*margin + titleRoom
	tallest := vg.Length(0)
	for _, panel := range p.Panels {
		tallest = max(tallest, panel.height)
	}
	height += vg.Length(len(p.Panels)) * (tallest + keyRoom)
	canvas := vgsvg.New(pageWidth, height)
	all := draw.New(canvas)
	all.FillPolygon(page.color(), []vg.Point{all.Min, {X: all.Max.X, Y: all.Min.Y}, all.Max, {X: all.Min.X, Y: all.Max.Y}})
	all.FillText(styled(titleSize, draw.YTop), vg.Point{X: margin, Y: all.Max.Y - margin}, p.Title)

	inner := draw.Crop(all, margin, -margin, margin, -margin-titleRoom)
	canvases := make([]draw.Canvas, len(p.Panels))
	axis := vg.Length(0) // width of the widest labels of a vertical axis
	for i, panel := range p.Panels {
		panel.prepare()
		each := inner.Size().Y / vg.Length(len(p.Panels))
		canvases[i] = draw.Crop(inner, 0, -2*margin, vg.Length(len(p.Panels)-1-i)*each, -vg.Length(i)*each-keyRoom)
		axis = max(axis, panel.axisRoom(canvases[i]))
	}
	for i, panel := range p.Panels {
		panel.draw(draw.Crop(canvases[i], axis-panel.axisRoom(canvases[i]), 0, 0, 0))
	}
	return p.write(canvas, path)
}

// write writes the file. It adds the parts that the canvas does not write: the title and the description, the
// fallback fonts, and the dark colors.
func (p *Page) write(canvas *vgsvg.Canvas, path string) error {
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	before, after, found := strings.Cut(b.String(), `xmlns:xlink="http://www.w3.org/1999/xlink">`)
	if !found {
		return fmt.Errorf("draw %s: the canvas wrote no SVG element", path)
	}
	out := before + `role="img" aria-labelledby="t d">` + "\n<title id=\"t\">" + html.EscapeString(p.Title) + "</title>\n<desc id=\"d\">" +
		html.EscapeString(p.About) + "</desc>\n" + darkStyle() +
		strings.ReplaceAll(after, "font-family:Liberation Sans", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif")
	if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// styled returns the style of a text that begins at its point.
func styled(size vg.Length, y gonumtext.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: text.color(), Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, XAlign: draw.XLeft, YAlign: y,
		Handler: plot.DefaultTextHandler,
	}
}
