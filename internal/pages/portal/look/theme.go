package look

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// contrastMin is the contrast that WCAG 2 (AA) requires for texts.
const contrastMin = 4.5

// colour has the values of red, green and blue.
type colour [3]uint8

// Theme has the colours for light mode and for dark mode, in this order.
type Theme [2]mode

// mode has the colours of the background, the texts and the links, in light or in dark mode.
type mode struct{ ground, text, accent colour }

// defaults are the colours of a page without a theme.
var defaults = Theme{
	{ground: colour{0xfb, 0xfb, 0xfa}, text: colour{0x1d, 0x1f, 0x21}, accent: colour{0x1f, 0x5f, 0xbf}},
	{ground: colour{0x15, 0x17, 0x1a}, text: colour{0xe7, 0xe8, 0xea}, accent: colour{0x83, 0xb4, 0xff}},
}

// ParseTheme parses colours such as "accent=#0a7d4f,accent-dark=#5fd3a1". A colour that the text does not
// set has its default value.
func ParseTheme(text string) (*Theme, error) {
	t := defaults
	places := map[string]*colour{
		"ground": &t[0].ground, "text": &t[0].text, "accent": &t[0].accent, "ground-dark": &t[1].ground, "text-dark": &t[1].text, "accent-dark": &t[1].accent,
	}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		place := places[name]
		if place == nil {
			return nil, fmt.Errorf("the theme has %.64q; the colours are ground, text and accent, and the same with -dark", name)
		}
		if err := place.parse(value); err != nil {
			return nil, fmt.Errorf("the theme's %s: %w", name, err)
		}
	}
	for i, m := range t {
		suffix := [...]string{"", "-dark"}[i]
		for _, front := range []struct {
			name string
			colour
		}{{"text", m.text}, {"accent", m.accent}} {
			if c := contrast(front.colour, m.ground); c < contrastMin {
				return nil, fmt.Errorf("the theme's %s%s (%s) cannot be read on its ground%s (%s): the contrast is %.1f, and %.1f is needed",
					front.name, suffix, front.colour, suffix, m.ground, c, contrastMin)
			}
		}
	}
	return &t, nil
}

// parse sets the colour from a text in the form #rrggbb.
func (c *colour) parse(text string) error {
	bits, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 24)
	if err != nil || len(text) != 7 || text[0] != '#' || text[1] == '+' {
		return fmt.Errorf("%.64q is no colour; write #rrggbb", text)
	}
	*c = colour{uint8(bits >> 16), uint8(bits >> 8), uint8(bits)} //nolint:gosec // each conversion keeps 8 of the 24 bits
	return nil
}

// String returns the colour in the form #rrggbb.
func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// mix returns a mixture of two colours. share, from 0 to 1, is the share of front.
func mix(front, back colour, share float64) (out colour) {
	for i := range out {
		out[i] = uint8(math.Round(float64(front[i])*share + float64(back[i])*(1-share)))
	}
	return out
}

// light returns the relative luminance of a colour, as WCAG 2 defines it.
func (c colour) light() float64 {
	var sum float64
	for i, weight := range [...]float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// contrast returns the contrast ratio of two colours, from 1 to 21.
func contrast(a, b colour) float64 {
	lo, hi := a.light(), b.light()
	if lo > hi {
		lo, hi = hi, lo
	}
	return (hi + 0.05) / (lo + 0.05)
}

// on returns black or white, whichever has more contrast with the background.
func on(back colour) colour {
	black, white := colour{}, colour{0xff, 0xff, 0xff}
	if contrast(black, back) > contrast(white, back) {
		return black
	}
	return white
}

// dim returns a weaker text colour for less important texts. If the contrast of all weaker colours is too low, it
// returns the text colour.
func (m mode) dim() colour {
	for _, share := range []float64{0.7, 0.8, 0.9} {
		if c := mix(m.text, m.ground, share); contrast(c, m.ground) >= contrastMin {
			return c
		}
	}
	return m.text
}

// style returns a stylesheet that sets the colours as CSS variables, which the pages' own stylesheet uses.
func (t *Theme) style() []byte {
	var out bytes.Buffer
	for i, m := range t {
		vars := fmt.Sprintf(":root{--ground:%s;--text:%s;--accent:%s;--on-accent:%s;--dim:%s;--line:%s;--rest:%s}",
			m.ground, m.text, m.accent, on(m.accent), m.dim(), mix(m.text, m.ground, 0.18), mix(m.text, m.ground, 0.12))
		if i == 1 {
			vars = "@media (prefers-color-scheme:dark){" + vars + "}"
		}
		out.WriteString(vars + "\n")
	}
	return out.Bytes()
}
