package pg

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A roll makes long pauses at first, and while other transactions commit in the database. If only the roll commits,
// its pauses are short.
func TestThrottle_FollowsWhatOthersCommit(t *testing.T) {
	t.Parallel()
	var p throttle
	now := time.Unix(1_700_000_000, 0)
	took := 4 * time.Millisecond
	for _, step := range []struct {
		why     string
		own     int64 // transactions of the roll
		commits int64 // transactions of the database in 5 s
		want    time.Duration
	}{
		{"nothing is known yet", 100, 0, sleepBusy * took},
		{"only the roll works", 500, 500, took / 4},
		{"an instance idles beside it", 500, 600, took / 4},
		{"the roll's own are reported late", 1000, 700, took / 4},
		{"and then at once", 1000, 1200, took / 4},
		{"others work", 500, 3000, sleepBusy * took},
		{"others work, and the roll sleeps", 0, 2500, sleepBusy * took},
		{"the counters were reset", 500, -100_000, sleepBusy * took},
		{"the others have ended", 500, 520, took / 4},
	} {
		p.own = step.own
		now = now.Add(loadEvery)
		p.count(p.commits+step.commits, now)
		assert.Equal(t, step.want, p.sleepTime(took), "the sleep of the roll: %s", step.why)
	}
	assert.Equal(t, sleepMax, p.sleepTime(time.Hour), "the sleep of the roll after an hour")
}

func TestNextChunk_FitsIntoItsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chunk int
		took  time.Duration
		want  int
	}{
		{16, 0, 32},
		{16, time.Millisecond, 32},
		{64, 2 * time.Millisecond, 128},
		{200, time.Millisecond, 256},
		{256, 32 * time.Millisecond, 32},
		{256, time.Second, 16},
		{1, time.Second, 2},
		{1, time.Millisecond, 2},
		{20, 4 * time.Millisecond, 20},
	} {
		assert.Equal(t, c.want, nextChunk(c.chunk, c.took), "next, after %d balances took %s", c.chunk, c.took)
	}
}
