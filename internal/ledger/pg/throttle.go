package pg

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// chunkMin and chunkMax bound the rows that one transaction of a roll locks. chunkTime is how long the
	// transaction should take: debits of its tenants wait for it, and all other debits share PostgreSQL with it. One
	// transaction of 256 rows takes about 50 ms, in which the p99 of other debits grew 46-fold.
	chunkMin  = 16
	chunkMax  = 256
	chunkTime = 4 * time.Millisecond

	// sleepBusy and sleepIdle are the pause after a transaction, as a multiple of its duration. sleepBusy applies
	// while other clients use the database, and sleepIdle while no other client uses it. With sleepBusy a roll takes
	// a third of one core, and less if PostgreSQL is busy. With sleepBusy = 5 and chunks of half the size, a roll
	// took three times as long. The p99 of debits during the roll was no lower, because it comes from debits that
	// roll their own balance.
	sleepBusy = 2
	sleepIdle = 0.25
	sleepMax  = time.Second

	// busyCommits is a number of transactions per second. If other clients make as many or more, PostgreSQL counts as
	// busy. An idle instance makes about ten.
	busyCommits = 100

	// loadEvery is how often a roll reads how busy PostgreSQL is. Sessions report their transactions up to a second
	// late. ownLate is the part of the roll's own transactions that may be missing.
	loadEvery = 5 * time.Second
	ownLate   = 0.25
)

// nextChunk returns the number of rows that need about chunkTime, if `chunk` rows needed the time `took`. The result is
// at most twice `chunk`, so it grows in steps. It can decrease in one step.
func nextChunk(chunk int, took time.Duration) int {
	fits := int(float64(chunk) * float64(chunkTime) / float64(max(took, time.Microsecond)))
	return min(max(fits, chunkMin), 2*chunk, chunkMax)
}

// throttle makes a roll sleep between its transactions, so that requests find PostgreSQL idle. It sleeps long
// (sleepBusy) until the database's counter of transactions shows no other load. The zero value sleeps long. It is for
// one goroutine. It does not query PostgreSQL itself: its caller queries PostgreSQL when due returns true.
type throttle struct {
	own     int64     // transactions of the roll since readAt
	readAt  time.Time // when the counter was last read; zero: not yet
	commits int64     // the counter at readAt
	idle    bool
}

// due reports whether the caller should read PostgreSQL's number of committed transactions and pass it to count.
func (t *throttle) due() bool { return time.Since(t.readAt) >= loadEvery }

// count records how many transactions the database had committed at the instant `now`, and decides whether the database
// is idle.
func (t *throttle) count(commits int64, now time.Time) {
	own := float64(t.own)
	others := float64(commits-t.commits) - own
	allowed := busyCommits*now.Sub(t.readAt).Seconds() + ownLate*own
	t.idle = !t.readAt.IsZero() && commits >= t.commits && others < allowed
	t.readAt = now
	t.commits = commits
	t.own = 0
}

// wait sleeps after a transaction. took is the duration of the transaction. wait ends early if ctx ends.
func (t *throttle) wait(ctx context.Context, took time.Duration) {
	t.own++
	backoff.Sleep(ctx, t.sleepTime(took))
}

func (t *throttle) sleepTime(took time.Duration) time.Duration {
	factor := float64(sleepBusy)
	if t.idle {
		factor = sleepIdle
	}
	return min(time.Duration(factor*float64(took)), sleepMax)
}
