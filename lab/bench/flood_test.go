package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// slicesOf returns the sample of a slice with this p99 and these answers.
func slicesOf(p99 time.Duration, answers map[int]int64) *sample {
	s := &sample{latency: newHistogram(), answers: answers}
	for range 100 {
		_ = s.latency.RecordValue(p99.Microseconds())
	}
	return s
}

func floodOf(quiet, loud time.Duration, transactions int64) *FloodResult {
	f := newFloodSlices("rate limited", "rate limited")
	f.add(slicesOf(quiet, nil), slicesOf(loud, nil), []map[int]int64{{429: 900, 0: 100}})
	r := &FloodResult{Rate: 500, Factor: floodFactor, Floods: []FloodSlices{f}, Costs: []FloodCost{{Name: "rate limited", Refused: 500, Transactions: transactions, most: 0.02}}}
	r.judge()
	return r
}

func TestFlood_Targets_RatioWithinRoundAndTransactions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quiet, loud time.Duration
		cost        int64
		met         bool
	}{{2 * time.Millisecond, 2900 * time.Microsecond, 10, true}, {2 * time.Millisecond, 3100 * time.Microsecond, 10, false}, {time.Second, time.Second, 11, false}} {
		r := floodOf(c.quiet, c.loud, c.cost)
		require.Equal(t, c.met, r.Met(), "%+v", r.Targets)
		require.Len(t, r.Targets, 2)
	}
	none := floodOf(time.Second, time.Second, 0)
	none.Costs[0].Refused = 0
	none.judge()
	require.False(t, none.Met(), "nothing was refused")
	failed := floodOf(time.Second, time.Second, 0)
	failed.Floods[0].Errors = 1
	failed.judge()
	require.False(t, failed.Met(), "a debit of the others failed")
}

func TestFlood_Result_ReportAndPictureWritten(t *testing.T) {
	t.Parallel()
	r, dir := floodOf(time.Millisecond, time.Millisecond, 1), t.TempDir()
	require.NoError(t, r.write(dir))
	for _, name := range []string{"flood.json", "flood.svg"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Greater(t, info.Size(), int64(300))
	}
	var out strings.Builder
	require.NoError(t, r.Print(&report.Printer{Out: &out}))
	require.Contains(t, out.String(), "not taken: 100, 429: 900")
}

func TestFlood_Config_Bounds(t *testing.T) {
	t.Parallel()
	good := FloodConfig{Rate: 10, Connections: 3, Rounds: 1, Slice: time.Second}
	require.NoError(t, good.validate())
	for _, change := range []func(*FloodConfig){
		func(c *FloodConfig) { c.Rate = 9 }, func(c *FloodConfig) { c.Rate = openRateMax/floodFactor + 1 }, func(c *FloodConfig) { c.Connections = 2 },
		func(c *FloodConfig) { c.Rounds = 0 }, func(c *FloodConfig) { c.Slice = time.Millisecond },
	} {
		bad := good
		change(&bad)
		require.Error(t, bad.validate())
	}
}
