package breaker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

// Config configures a breaker. All fields are required.
type Config struct {
	Name    string // name of the server, for the log
	Probe   func(ctx context.Context) error
	Every   time.Duration // pause between a failed probe and the next probe
	Timeout time.Duration // time limit of one probe
	Log     *slog.Logger
}

// Breaker is open while its server cannot be reached.
type Breaker struct {
	cfg    Config
	cause  atomic.Pointer[error] // why the server cannot be reached; nil: the breaker is closed
	kick   chan struct{}         // contains a value while a suspicion has not been checked yet
	served atomic.Int64          // time of the last call of Served, in Unix nanoseconds
	cancel context.CancelFunc
	ended  chan struct{}
}

// New returns a closed breaker. Stop ends its goroutine.
func New(cfg Config) *Breaker {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Breaker{cfg: cfg, kick: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	go b.run(ctx)
	return b
}

// Cause returns why the server could not be reached. It returns nil while the breaker is closed.
func (b *Breaker) Cause() error {
	if cause := b.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Suspect reports that the server did not answer. The breaker soon probes the server. Suspect does not block.
func (b *Breaker) Suspect() {
	select {
	case b.kick <- struct{}{}:
	default: // the next probe checks this suspicion, too
	}
}

// Served reports that the server has just answered a request. If a probe that began before this report fails, the
// failure does not open the breaker.
func (b *Breaker) Served() { b.served.Store(time.Now().UnixNano()) }

// Stop ends the probes. An open breaker stays open.
func (b *Breaker) Stop() {
	b.cancel()
	<-b.ended
}

func (b *Breaker) run(ctx context.Context) {
	defer close(b.ended)
	for {
		select {
		case <-b.kick:
		case <-ctx.Done():
			return
		}
		if !b.examine(ctx) {
			return
		}
	}
}

// examine probes until a probe succeeds, or until a caller gets an answer during a probe. It returns false if ctx
// ends first.
func (b *Breaker) examine(ctx context.Context) bool {
	var since time.Time
	for {
		began := time.Now().UnixNano()
		err := b.probe(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil, b.served.Load() > began:
			if b.cause.Swap(nil) != nil {
				b.cfg.Log.Info("server is back", "server", b.cfg.Name, "away_seconds", time.Since(since).Seconds())
			}
			return true
		case b.cause.Swap(&err) == nil:
			since = time.Now()
			b.cfg.Log.Error("server is away; requests that need it are refused", "server", b.cfg.Name, "error", err)
		}
		if !backoff.Sleep(ctx, b.cfg.Every) {
			return false
		}
	}
}

func (b *Breaker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	return b.cfg.Probe(ctx)
}
