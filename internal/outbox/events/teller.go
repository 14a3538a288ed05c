package events

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// listEvery is the time between two looks for events to list: about how late an event is.
	listEvery = 500 * time.Millisecond

	// dueEvery is the time between two looks for what comes due on idle tenants. It is told within a minute, and a look may fail once.
	dueEvery = 20 * time.Second

	// forgetEvery is the time between two removals of old marks.
	forgetEvery = time.Hour

	// callTimeout bounds a transaction of a teller.
	callTimeout = 10 * time.Second

	// sweepTimeout bounds a sweep: the next one goes on.
	sweepTimeout = 10 * time.Minute
)

// TellerConfig configures a Teller.
type TellerConfig struct {
	Pool    *pgxpool.Pool                                 // of the database's writer; it is not closed. Required
	Sweep   func(context.Context) error                   // works off what is due on balances that nobody uses. Required
	Clock   interface{ Now() time.Time }                  // the ledger. Required
	Each    func(context.Context, pgx.Tx, []Listed) error // gets new events in the transaction that lists them; nil: nobody
	Listed  func()                                        // called after such a transaction has committed; nil: nobody
	Log     *slog.Logger                                  // required
	Metrics prometheus.Registerer                         // required
}

// Teller lists new events, and tells what comes due on tenants that nobody uses.
type Teller struct {
	cfg    TellerConfig
	cancel context.CancelFunc
	done   sync.WaitGroup

	listed          prometheus.Counter
	waiting, oldest prometheus.Gauge
}

// NewTeller returns a teller. It panics if the registry has its metrics already.
func NewTeller(cfg TellerConfig) *Teller {
	if cfg.Each == nil {
		cfg.Each = func(context.Context, pgx.Tx, []Listed) error { return nil }
	}
	if cfg.Listed == nil {
		cfg.Listed = func() {}
	}
	t := &Teller{
		cfg: cfg, cancel: func() {},
		listed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_events_listed_total", Help: "Events that this instance has put into the list.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_events_waiting", Help: "Events that are committed and in no list yet.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_events_oldest_waiting_seconds", Help: "Age of the oldest event that is in no list yet; 0: there is none.",
		}),
	}
	cfg.Metrics.MustRegister(t.listed, t.waiting, t.oldest)
	return t
}

// Start starts the goroutines.
func (t *Teller) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.done.Go(func() { t.every(ctx, listEvery, t.list) })
	t.done.Go(func() { t.every(ctx, dueEvery, t.due) })
}

// Stop ends the goroutines. What they have begun is rolled back, or done.
func (t *Teller) Stop(context.Context) error {
	t.cancel()
	t.done.Wait()
	return nil
}

// every calls do, rests about d, and begins again, until ctx ends. It logs the first of several failures.
func (t *Teller) every(ctx context.Context, d time.Duration, do func(context.Context) error) {
	failing := false
	for ctx.Err() == nil {
		err := do(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			t.cfg.Log.Warn("events are late", "error", err)
		}
		if err == nil && failing {
			t.cfg.Log.Info("events are told again")
		}
		failing = err != nil
		backoff.Sleep(ctx, d*3/4+rand.N(d/4)) // instances do not all look at once
	}
}

// list lists what is new.
func (t *Teller) list(ctx context.Context) error {
	for {
		n, err := t.listOnce(ctx)
		if n > 0 {
			t.listed.Add(float64(n))
			t.cfg.Listed()
		}
		if err != nil || n < numberMax {
			return err
		}
	}
}

func (t *Teller) listOnce(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return Number(ctx, t.cfg.Pool, t.cfg.Each)
}

// due tells what has come due.
func (t *Teller) due(ctx context.Context) error {
	if err := t.measure(ctx); err != nil {
		return err
	}
	if err := t.remind(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if err := t.cfg.Sweep(ctx); err != nil {
		return err
	}
	if rand.N(forgetEvery) > dueEvery { // about once in forgetEvery, without a clock to be kept
		return nil
	}
	for {
		more, err := Forget(ctx, t.cfg.Pool, t.cfg.Clock.Now())
		if err != nil || !more {
			return err
		}
	}
}

func (t *Teller) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, oldest, err := Waiting(ctx, t.cfg.Pool)
	if err != nil {
		return err
	}
	t.waiting.Set(float64(n))
	t.oldest.Set(oldest.Seconds())
	return nil
}

func (t *Teller) remind(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = t.remindOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *Teller) remindOnce(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, more, err = Remind(ctx, t.cfg.Pool, t.cfg.Clock.Now())
	return more, err
}
