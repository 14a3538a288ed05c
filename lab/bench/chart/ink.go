package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// Ink is a color with a meaning.
type Ink int

// These are the inks. Met and Missed are only for targets.
const (
	Service Ink = iota
	Baseline
	Second // a second curve next to Service
	Third
	Met
	Missed
	text
	faint
	page
)

// shades contains an ink's color on a light background and its color on a dark background.
type shades struct{ light, dark color.RGBA }

func (i Ink) shades() shades {
	return [...]shades{
		Service:  {color.RGBA{0x1f, 0x6f, 0xc4, 0xff}, color.RGBA{0x58, 0xa6, 0xff, 0xff}},
		Baseline: {color.RGBA{0x8c, 0x95, 0x9f, 0xff}, color.RGBA{0x76, 0x81, 0x8d, 0xff}},
		Second:   {color.RGBA{0xd9, 0x7b, 0x29, 0xff}, color.RGBA{0xff, 0xa6, 0x57, 0xff}},
		Third:    {color.RGBA{0x82, 0x50, 0xdf, 0xff}, color.RGBA{0xbc, 0x8c, 0xff, 0xff}},
		Met:      {color.RGBA{0x2d, 0xa4, 0x4e, 0xff}, color.RGBA{0x3f, 0xb9, 0x50, 0xff}},
		Missed:   {color.RGBA{0xcf, 0x22, 0x2e, 0xff}, color.RGBA{0xf8, 0x51, 0x49, 0xff}},
		text:     {color.RGBA{0x24, 0x29, 0x2f, 0xff}, color.RGBA{0xe6, 0xed, 0xf3, 0xff}},
		faint:    {color.RGBA{0xd0, 0xd7, 0xde, 0xff}, color.RGBA{0x30, 0x36, 0x3d, 0xff}},
		page:     {color.RGBA{0xff, 0xff, 0xff, 0xff}, color.RGBA{0x0d, 0x11, 0x17, 0xff}},
	}[i]
}

func (i Ink) color() color.Color { return i.shades().light }

// darkStyle returns the CSS rules that replace the light colors on a dark background. The canvas writes colors into
// the style of each element, so the selectors of the rules match those styles.
func darkStyle() string {
	hex := func(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
	var b strings.Builder
	b.WriteString("<style>@media (prefers-color-scheme: dark) {\n")
	for i := Service; i <= page; i++ {
		s := i.shades()
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "[style*=\"%s:%s\"] { %s: %s !important }\n", property, hex(s.light), property, hex(s.dark))
		}
	}
	b.WriteString("}</style>\n")
	return b.String()
}
