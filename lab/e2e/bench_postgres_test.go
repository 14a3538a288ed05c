package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench"
	benchreport "github.com/quotasvc/quotasvc/lab/bench/report"
)

// This is the short form of `make bench-postgres`. It measures one setting that needs a restart and a socket, and one
// setting with a standby.
func TestBenchPostgres_ShortForm_ComparesSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var progress, log logBuffer
	r, err := bench.RunPostgres(t.Context(), bench.Config{
		Programs: bench.Programs{Exe: quotasvc(t), Dir: dir, Progress: &progress, Log: &log},
		Rounds:   1, Rates: []int{100},
		Slice: 200 * time.Millisecond, OpenFor: 200 * time.Millisecond, Connections: 8, Tenants: 20, Batch: 10,
		Only: []string{"socket", "remote_apply"},
	})
	require.NoError(t, err, "%v\n%s\n%s", err, progress.tail(), log.tail())
	assert.True(t, len(r.Settings) == 4 && r.Journal >= r.Answered && r.Answered != 0,
		"%d settings, %d debits were answered, %d are in the journal", len(r.Settings), r.Answered, r.Journal)
	for _, s := range r.Settings {
		assert.True(t, s.Ratio.Median > 0 && (!s.Base || s.Ratio.Median == 1) && s.P99[0] > 0 && s.Errors <= 0,
			"%s: %s: %+v", s.Group, s.Name, s)
	}
	var table, markdown strings.Builder
	assert.NoError(t, r.Print(&benchreport.Printer{Out: &table}))
	r.Markdown(&markdown)
	for _, text := range []string{"synchronous_commit = remote_apply", "Unix socket"} {
		assert.True(t, strings.Contains(table.String(), text) && strings.Contains(markdown.String(), "| "+text+" |"),
			"%s is missing:\n%s\n%s", text, table.String(), markdown.String())
	}
	info, err := os.Stat(filepath.Join(dir, "postgres.svg"))
	assert.True(t, err == nil && info.Size() >= 1000, "the picture: %v, %v", info, err)
}
