package pace

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// ChunkMin and chunkMax bound the rows that one transaction of a roll locks, chunkTime is how long it should take: debits of these tenants
	// wait for it, and all others beside it. A single transaction of 256 rows takes some 50 ms, in which the p99 of others' debits grew to 46 times.
	ChunkMin  = 16
	chunkMax  = 256
	chunkTime = 4 * time.Millisecond

	// restBusy and restIdle are the pause after a transaction, in times of how long it took, while others work on the database and while none do.
	// With restBusy a roll takes a third of one core, and less where PostgreSQL is busy. With 5 and chunks of half the size it was a third as fast, and the p99
	// of debits beside it no lower: that is what debits take which roll their own balance.
	restBusy, restIdle = 2, 0.25
	restMax            = time.Second

	// busyCommits is the number of others' transactions per second from which on PostgreSQL counts as busy. An idle instance makes some ten.
	busyCommits = 100

	// askEvery is how often a job asks. Sessions report their transactions up to a second late, and ownLate is the part of the job's own that may be missing.
	askEvery = 5 * time.Second
	ownLate  = 0.25
)

// Next returns the number of rows that takes about chunkTime, if chunk took so long. It at most doubles, and falls at once.
func Next(chunk int, took time.Duration) int {
	fits := int(float64(chunk) * float64(chunkTime) / float64(max(took, time.Microsecond)))
	return min(max(fits, ChunkMin), 2*chunk, chunkMax)
}

// Pace is the pace of one job: it holds back, until the database's transactions show that nobody else works. The zero value holds back. It is for one goroutine.
type Pace struct {
	own     int64     // transactions of the job since asked
	asked   time.Time // when PostgreSQL was last asked; zero: not yet
	commits int64     // of the database, then
	idle    bool
}

// Due reports whether it is time to ask PostgreSQL how many transactions it has committed, for Count.
func (p *Pace) Due() bool { return time.Since(p.asked) >= askEvery }

// Count notes the database's transactions as of now.
func (p *Pace) Count(commits int64, now time.Time) {
	others, own := float64(commits-p.commits-p.own), float64(p.own)
	p.idle = !p.asked.IsZero() && commits >= p.commits && others < busyCommits*now.Sub(p.asked).Seconds()+ownLate*own
	p.asked, p.commits, p.own = now, commits, 0
}

// Wait pauses after a transaction that took so long. It ends early with ctx.
func (p *Pace) Wait(ctx context.Context, took time.Duration) {
	p.own++
	backoff.Sleep(ctx, p.rest(took))
}

func (p *Pace) rest(took time.Duration) time.Duration {
	factor := float64(restBusy)
	if p.idle {
		factor = restIdle
	}
	return min(time.Duration(factor*float64(took)), restMax)
}
