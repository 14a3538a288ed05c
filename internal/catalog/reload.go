package catalog

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// reloadShare and reloadPauseMax bound the share of time that reads take: see invariant 2 of reloadLoop.
	reloadShare    = 5
	reloadPauseMax = 500 * time.Millisecond

	// reloadRetryFirst and reloadRetryLast are the shortest and the longest pause after a failed read. PostgreSQL
	// usually restarts within seconds.
	reloadRetryFirst, reloadRetryLast = 50 * time.Millisecond, 2 * time.Second
)

// reloadConfig configures a reloadLoop. All fields are required.
type reloadConfig struct {
	What  string // name of the data that Read reads, for the log
	Read  func(context.Context) error
	Every time.Duration // the period of reads without a trigger
	Now   func() time.Time
	Ended func(err error) // is called after each read of Run
	Log   *slog.Logger
}

// reloadLoop keeps one copy in memory current. It reads after a change was announced (Trigger), and periodically.
//
//  1. After Trigger a read begins. If Trigger is called several times before the read begins, one read is enough.
//  2. The reads of Run take at most a fifth of the time, so that many changes do not cause as many reads. A pause
//     lasts at most half a second, so a change waits at most for a pause and a read.
//  3. If CatchUp returns a nil error, the copy has all changes for which Trigger was called before CatchUp. CatchUp
//     reads at most once for each trigger. Without a new trigger it does not read.
//  4. Two reads never run at the same time.
//
// All methods may be called from any goroutine. Only one goroutine may call Run, which ends with its context. After a
// failed read the copy in memory does not change, and Run tries again with growing pauses.
type reloadLoop struct {
	cfg     reloadConfig
	kick    chan struct{} // capacity 1: has an element while a read is due
	reading chan struct{} // held while a read runs

	triggers atomic.Uint64 // the number of triggers
	seen     atomic.Uint64 // the number of triggers when the newest successful read began
}

// newReloadLoop returns a loop that reads nothing until Run or CatchUp.
func newReloadLoop(cfg reloadConfig) *reloadLoop {
	return &reloadLoop{cfg: cfg, kick: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
}

// Trigger makes a read due.
func (l *reloadLoop) Trigger() {
	l.triggers.Add(1)
	select {
	case l.kick <- struct{}{}:
	default: // a read is due already and has not begun
	}
}

// CatchUp waits until all changes that were announced before the call are read. It starts a read itself, without the
// pauses of Run. It returns false at once if all these changes were already read. Otherwise it returns true and the
// error of the read, or of ctx.
func (l *reloadLoop) CatchUp(ctx context.Context) (waited bool, err error) {
	triggers := l.triggers.Load()
	if l.seen.Load() >= triggers {
		return false, nil
	}
	return true, l.read(ctx, triggers)
}

// read waits until no other read runs, and then reads. It does not read if another read began after the given number
// of triggers and succeeded. If triggers is 0, it always reads.
func (l *reloadLoop) read(ctx context.Context, triggers uint64) error {
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if triggers > 0 && l.seen.Load() >= triggers {
		return nil
	}
	begun := l.triggers.Load()
	err := l.cfg.Read(ctx)
	if err == nil {
		l.seen.Store(begun)
	}
	return err
}

// Run reads when a read is due, and periodically, until ctx ends.
func (l *reloadLoop) Run(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.Every)
	defer ticker.Stop()
	failing := false
	for retry := backoff.New(reloadRetryFirst, reloadRetryLast); ; {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-ticker.C:
		}
		began := l.cfg.Now()
		err := l.read(ctx, 0)
		if ctx.Err() != nil {
			return
		}
		l.cfg.Ended(err)
		if err != nil {
			if !failing {
				l.cfg.Log.Warn("catalogue cannot be reloaded; the previous copy stays in use",
					"what", l.cfg.What, "error", err)
			}
			failing = true
			if !retry.Wait(ctx) {
				return
			}
			l.Trigger()
			continue
		}
		if failing {
			l.cfg.Log.Info("catalogue reloaded again", "what", l.cfg.What)
		}
		failing = false
		retry.Reset()
		if !backoff.Sleep(ctx, min((reloadShare-1)*l.cfg.Now().Sub(began), reloadPauseMax)) {
			return
		}
	}
}
