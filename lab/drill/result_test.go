package drill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResult_Write_StoresJSONAndChart(t *testing.T) {
	t.Parallel()
	r := newResult(&Config{Seed: 7})
	r.fault(Failover, 10*time.Second, time.Second)
	r.fault(KillRedis, 20*time.Second, time.Second)
	for i := range 100 {
		r.Timeline = append(r.Timeline, Moment{At: time.Duration(i) * time.Second / 2, Done: 40 * i, Unanswered: i})
	}
	dir := t.TempDir()
	require.NoError(t, r.write(dir))
	for name, want := range map[string]string{"drill.json": `"Seed": 7`, "drill.svg": "<svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		assert.True(t, err == nil && strings.Contains(string(text), want),
			"%s does not contain %s: %v", name, want, err)
	}
}

func TestResult_RunTooShortForChart_WritesJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, newResult(&Config{}).write(dir))
	_, err := os.Stat(filepath.Join(dir, "drill.json"))
	assert.NoError(t, err)
}

func TestResult_Violations_EachTurnsVerdictRed(t *testing.T) {
	t.Parallel()
	clean := func() *Result { return &Result{Verified: true} }
	v := clean().Violations()
	assert.Empty(t, v, "a clean run has %q", v)
	for name, spoil := range map[string]func(*Result){
		"lost": func(r *Result) { r.AtEnd.Lost = 1 }, "twice": func(r *Result) { r.AtEnd.Twice = 1 },
		"present": func(r *Result) { r.AtOnce.Present = 1 }, "unknown": func(r *Result) { r.AtEnd.Unknown = 1 },
		"negative": func(r *Result) { r.Negative = 1 }, "open": func(r *Result) { r.StillOpen = 1 }, "crashed": func(r *Result) { r.Crashed = 1 },
		"wrong": func(r *Result) { r.Wrong = map[string]int{"answer": 1} }, "not verified": func(r *Result) { r.Verified = false },
		"stopped":  func(r *Result) { r.BadStops = []string{"an instance"} },
		"over":     func(r *Result) { r.Limits.All.Beyond = 1 },
		"restored": func(r *Result) { r.Restores = []Restored{{Verified: false}} },
		"gone":     func(r *Result) { r.Restores = []Restored{{Verified: true, Findings: Findings{Lost: 1}}} },
	} {
		r := clean()
		spoil(r)
		var out strings.Builder
		require.NoError(t, r.Print(&out), name)
		assert.Len(t, r.Violations(), 1, name)
		assert.Contains(t, out.String(), "FAILED", name)
	}
}
