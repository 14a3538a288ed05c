package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench"
	"github.com/quotasvc/quotasvc/lab/bench/growth"
)

// growthOf returns the configuration of a run of `make bench-growth` with tiny sizes. Most of its time is the start
// of servers and processes.
func growthOf(t *testing.T) (bench.GrowthConfig, *logBuffer) {
	t.Helper()
	progress := &logBuffer{}
	z := bench.GrowthTiny
	z.Tenants, z.Base, z.Entries, z.EntryTenants, z.Instances, z.Months, z.Rules = []int{20, 60}, 20, []int{1000}, 20, []int{2}, []int{24}, []int{100}
	z.Fillfactors, z.Debits, z.MonthTenants, z.MonthRate = []int{60}, 2000, 100, 30
	return bench.GrowthConfig{
		Programs: bench.Programs{Exe: quotasvc(t), Dir: t.TempDir(), Progress: progress, Log: progress},
		Sizes:    z, Rounds: 1, Slice: 100 * time.Millisecond, OpenFor: 200 * time.Millisecond,
		Connections: 8, Rate: 50, DiskShare: 1,
	}, progress
}

// This is the short form of `make bench-growth`. Other tests run at the same time, so its results mean nothing, and
// requests may time out. The run itself checks that every answered debit is in the journal. It also checks that
// `quotasvc verify` accepts the journals that were written without the service.
func TestGrowth_ShortForm_MeasuresEveryStep(t *testing.T) {
	t.Parallel()
	cfg, progress := growthOf(t)
	r, err := bench.Growth(t.Context(), cfg)
	require.NoError(t, err, "%v\n%s", err, progress.tail())
	for _, name := range growth.Names() {
		s := r.Step(name)
		require.NotNil(t, s, "%s was not measured", name)
		for _, z := range s.Sizes {
			for _, l := range z.Loads {
				assert.True(t, len(l.Rates) == 1 && l.Rates[0] != 0 && l.P99s[0] != 0 &&
					(z.Verified != 0 || s.Name == growth.Tenants), "%s, %s: %+v", name, z.Label, l)
			}
		}
		for _, l := range s.Layouts {
			debits := int64(cfg.Sizes.Debits)
			if strings.HasSuffix(l.Label, "a fifth of the debits") {
				debits /= 5
			}
			assert.True(t, l.Debits == debits && l.Updates != 0 && l.Hot > 0 && l.Hot <= 1 && l.Heap != 0 && l.WAL != 0,
				"%s: %+v", l.Label, l)
		}
	}
	layouts := r.Step(growth.Balances).Layouts
	m := r.Step(growth.MonthEnd).Month
	assert.Greater(t, layouts[0].Hot, layouts[1].Hot,
		"an open snapshot keeps dead rows, and updates should find less room")
	assert.EqualValues(t, cfg.Sizes.MonthTenants, m.Rolled+m.Lazily, "%d debits failed", m.Errors)
	assert.True(t, m.Rolled != 0 && m.Lazily != 0 && len(m.Phases) == 4,
		"%d balances were rolled by the job and %d by debits", m.Rolled, m.Lazily)
	for _, name := range []string{"growth.json", "growth-targets.svg", "growth-throughput.svg", "growth-latency.svg", "growth-balances.svg", "growth-month-end.svg"} {
		_, err = os.Stat(filepath.Join(cfg.Dir, name))
		assert.NoError(t, err)
	}
	left, err := filepath.Glob(filepath.Join(cfg.Dir, "data-*"))
	assert.True(t, err == nil && len(left) <= 0, "data is left: %v, %v", left, err)
	cfg.Exe = "/no/such/binary" // no program is needed, because all results are stored
	_, err = bench.Growth(t.Context(), cfg)
	assert.NoError(t, err, "the second run measured again")
	t.Log(progress.tail())
}

// A run fails if a journal is wrong.
func TestGrowth_JournalChanged_IsNoticed(t *testing.T) {
	t.Parallel()
	cfg, progress := growthOf(t)
	cfg.Only = []string{growth.Journal}
	cfg.Tamper = func(ctx context.Context, url string) error {
		db, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer db.Close(ctx)
		_, err = db.Exec(ctx, "UPDATE entries SET requested = 2 WHERE seq = 2 AND tenant_id = 't-000007'")
		return err
	}
	_, err := bench.Growth(t.Context(), cfg)
	assert.True(t, err != nil && strings.Contains(err.Error(), "verify"), "%v\n%s", err, progress.tail())
}
