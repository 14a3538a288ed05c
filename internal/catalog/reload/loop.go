package reload

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// share and pauseMax bound the time that reads take: see the package.
	share    = 5
	pauseMax = 500 * time.Millisecond

	// retryFirst and retryLast bound the pauses after failed reads: PostgreSQL restarts within seconds.
	retryFirst, retryLast = 50 * time.Millisecond, 2 * time.Second
)

// Config configures a Loop. All fields are required.
type Config struct {
	What  string // is read, for the log
	Read  func(context.Context) error
	Every time.Duration // the period of reads without a trigger
	Now   func() time.Time
	Ended func(err error) // is called after each read of Run
	Log   *slog.Logger
}

// Loop keeps one copy current.
type Loop struct {
	cfg     Config
	kick    chan struct{} // capacity 1: a read is due
	reading chan struct{} // held while a read runs

	triggers atomic.Uint64 // how many there were
	seen     atomic.Uint64 // how many there were when the newest read that succeeded began
}

// New returns a loop that does nothing until Run.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, kick: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
}

// Trigger makes a read due.
func (l *Loop) Trigger() {
	l.triggers.Add(1)
	select {
	case l.kick <- struct{}{}:
	default: // one is due already and has not begun to read
	}
}

// CatchUp waits until everything that was announced before is read. It reads itself, without the pauses of Run. It returns false if nothing was
// announced that is not read, at once, and the error of the read, or of ctx.
func (l *Loop) CatchUp(ctx context.Context) (waited bool, err error) {
	triggers := l.triggers.Load()
	if l.seen.Load() >= triggers {
		return false, nil
	}
	return true, l.read(ctx, triggers)
}

// read reads unless another read has seen so many triggers before its turn came. 0: it reads.
func (l *Loop) read(ctx context.Context, triggers uint64) error {
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
func (l *Loop) Run(ctx context.Context) {
	ticker := time.NewTicker(l.cfg.Every)
	defer ticker.Stop()
	failing := false
	for retry := backoff.New(retryFirst, retryLast); ; {
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
				l.cfg.Log.Warn("catalogue cannot be reloaded; the previous copy stays in use", "what", l.cfg.What, "error", err)
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
		if !backoff.Sleep(ctx, min((share-1)*l.cfg.Now().Sub(began), pauseMax)) {
			return
		}
	}
}
