package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestPercentFor_LiveHeap_ReachesGoalWithinBounds(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 1000, 1 << 20: 1000, 8 << 20: 900, 16 << 20: 400, 20 << 20: 300, 30 << 20: 150, 40 << 20: 100,
		42 << 20: 75, 60 << 20: 75, 79 << 20: 75, 80 << 20: 100, 8 << 30: 100,
	} {
		got := percentFor(live)
		assert.True(t, got == want, "%d MiB alive: %d%%, want %d%%", live>>20, got, want)
	}
}

// The test is not parallel, because all tests of the process share the percentage.
func TestTuneCollector_Collections_AdaptedThenRestored(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(percentDefault)
	defer debug.SetGCPercent(before)
	stop := tuneCollector()
	current := func() int {
		p := debug.SetGCPercent(percentDefault)
		debug.SetGCPercent(p)
		return p
	}
	testenv.Eventually(t, func() bool {
		runtime.GC()
		return current() != percentDefault
	}, "another percentage after a collection")
	stop()
	got := current()
	assert.True(t, got == percentDefault, "%d%% afterwards", got)
	t.Setenv("GOGC", "70")
	debug.SetGCPercent(70)
	stop = tuneCollector()
	runtime.GC()
	runtime.GC()
	stop()
	assert.True(t, current() == 70, "GOGC=70 has become %d", current())
}
