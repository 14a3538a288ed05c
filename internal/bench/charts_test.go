package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCharts_NothingToShow_LeftOut(t *testing.T) {
	t.Parallel()
	baseline := []Variant{{Name: plsqlHot, Rates: []float64{1800}, Median: 1800}}
	for name, c := range map[string]struct {
		of   Results
		want []string
	}{
		"no target":     {Results{Variants: baseline}, []string{"throughput.svg"}},
		"no fixed rate": {Results{Variants: append(baseline, Variant{Name: debitsHot, Rates: []float64{60e3}, Median: 60e3})}, []string{"ratios.svg", "throughput.svg"}},
		"no ratio": {
			Results{Variants: baseline, OpenLoops: []OpenLoop{{Name: "check", Rate: 1000}}},
			[]string{"latency.svg", "throughput.svg"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, old := range []string{"latency.svg", "ratios.svg"} { // from an earlier run of all variants
				require.NoError(t, os.WriteFile(filepath.Join(dir, old), nil, 0o600))
			}
			c.of.judge()
			require.NoError(t, c.of.write(dir))
			drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
			require.NoError(t, err)
			for i := range drawn {
				info, err := os.Stat(drawn[i])
				require.NoError(t, err)
				require.NotZero(t, info.Size(), "%s is the earlier run's", drawn[i])
				drawn[i] = filepath.Base(drawn[i])
			}
			require.Equal(t, c.want, drawn)
		})
	}
}
