package chart

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigure_Values_Readable(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 0.1: "0.1", 0.0025: "0.0025", 1.25: "1.25", 99: "99", 100.4: "100", 999: "999", 1000: "1,000", 25000: "25,000", 1234567: "1,234,567", -1000: "-1,000",
	} {
		require.Equal(t, want, Figure(v))
	}
}

func TestPage_Saved_HasTitleDescriptionAndWholeText(t *testing.T) {
	t.Parallel()
	bars := NewBars(Bars{X: "debits/s", Bars: []Bar{
		{Name: "echo, a bare handler with a long name", Parts: []Part{{46345, Baseline}}, Note: "46,345"},
		{Name: "debits", Parts: []Part{{13681, Service}, {2, Missed}}, Note: "4.5 x, wanted at most 3 x: missed"},
	}})
	bars.Key("service", Service)
	curves := NewPanel("requests/s", "ms")
	curves.LogY(0.1, 1000)
	curves.TicksX(1000, 10000)
	curves.Add(Curve{Name: "check, p99", Ink: Service, Dots: true, Points: []Point{{1000, 0.02}, {10000, 40}}}, Curve{Name: "nothing"})
	curves.Mark(5000, "Redis killed")
	path := filepath.Join(t.TempDir(), "a.svg")
	require.NoError(t, (&Page{Title: "Speed <now>", About: "How fast.", Panels: []*Panel{bars, curves}}).Save(path))
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(file)
	require.NoError(t, xml.Unmarshal(file, new(struct{})), "not XML")
	for _, want := range []string{
		`role="img" aria-labelledby="t d"`, `<title id="t">Speed &lt;now&gt;</title>`, `<desc id="d">How fast.</desc>`, "sans-serif", "prefers-color-scheme: dark",
		">46,345<", ">4.5 x, wanted at most 3 x: missed<", ">echo, a bare handler with a long name<", ">check, p99<", ">Redis killed<", ">10,000<", ">1,000<",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, ">nothing<")
	require.NotContains(t, text, "Serif;")
	require.Positive(t, strings.Count(text, "#1F6FC4"))
}
