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
	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

const (
	// listEvery is the pause between two searches for new events. It is about the time until an event is listed.
	listEvery = 500 * time.Millisecond

	// dueEvery is the pause between two searches for due events of idle tenants. These events are emitted within a
	// minute, even if one search fails.
	dueEvery = 20 * time.Second

	// advanceEvery is the pause between two searches for changes of tenants whose instant has come. It is the delay of
	// their events. Requests do not wait for it: they follow a change at its instant.
	advanceEvery = 2 * time.Second

	// forgetEvery is the average time between two removals of old marks.
	forgetEvery = time.Hour

	// callTimeout bounds one search for new events, one count of them, and one transaction that handles reminders.
	callTimeout = 10 * time.Second

	// sweepTimeout bounds one sweep and the removal of old marks after it. The next sweep continues where this one
	// stopped.
	sweepTimeout = 10 * time.Minute
)

// DispatcherConfig configures a Dispatcher.
type DispatcherConfig struct {
	Pool           *pgxpool.Pool                                 // pool of the database's writer; it is not closed. Required
	Sweep          func(context.Context) error                   // updates idle balances and emits their due events. Required
	AdvanceTenants func(context.Context) error                   // puts due changes of tenants into force, with their events; may be nil
	Clock          interface{ Now() time.Time }                  // the ledger. Required
	Each           func(context.Context, pgx.Tx, []Listed) error // gets new events in the transaction that lists them; may be nil
	Listed         func()                                        // called after each such transaction; may be nil
	Log            *slog.Logger                                  // required
	Metrics        prometheus.Registerer                         // required
}

// Dispatcher assigns positions to new events, and emits due events of idle tenants.
type Dispatcher struct {
	cfg    DispatcherConfig
	cancel context.CancelFunc
	done   sync.WaitGroup

	listed          prometheus.Counter
	waiting, oldest prometheus.Gauge
}

// NewDispatcher returns a dispatcher that does nothing before Start. It panics if its metrics are registered already.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	if cfg.Each == nil {
		cfg.Each = func(context.Context, pgx.Tx, []Listed) error { return nil }
	}
	if cfg.Listed == nil {
		cfg.Listed = func() {}
	}
	return &Dispatcher{
		cfg: cfg, cancel: func() {},
		listed: metric.Counter(cfg.Metrics, "quotasvc_events_listed_total",
			"Events that this instance has added to the list."),
		waiting: metric.Gauge(cfg.Metrics, "quotasvc_events_waiting", "Committed events that are not in the list yet."),
		oldest: metric.Gauge(cfg.Metrics, "quotasvc_events_oldest_waiting_seconds",
			"Age of the oldest event that is not in the list yet; 0 if there is none."),
	}
}

// Start starts the goroutines.
func (d *Dispatcher) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.done.Go(func() { d.every(ctx, listEvery, d.list) })
	d.done.Go(func() { d.every(ctx, dueEvery, d.due) })
	if d.cfg.AdvanceTenants != nil {
		d.done.Go(func() { d.every(ctx, advanceEvery, d.advance) })
	}
}

// Stop ends the goroutines and waits for them. A transaction that is open is committed or rolled back.
func (d *Dispatcher) Stop(context.Context) error {
	d.cancel()
	d.done.Wait()
	return nil
}

// every calls the function `do` repeatedly until ctx ends. Between two calls it waits for 75 to 100 % of pause. If
// several successive calls fail, it logs only the first failure.
func (d *Dispatcher) every(ctx context.Context, pause time.Duration, do func(context.Context) error) {
	failing := false
	for ctx.Err() == nil {
		err := do(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			d.cfg.Log.Warn("events are delayed", "error", err)
		}
		if err == nil && failing {
			d.cfg.Log.Info("events are emitted again")
		}
		failing = err != nil
		backoff.Sleep(ctx, pause*3/4+rand.N(pause/4)) // random, so that instances do not search at the same time
	}
}

// list assigns positions to all new events.
func (d *Dispatcher) list(ctx context.Context) error {
	for {
		n, err := d.listOnce(ctx)
		if n > 0 {
			d.listed.Add(float64(n))
			d.cfg.Listed()
		}
		if err != nil || n < numberMax {
			return err
		}
	}
}

func (d *Dispatcher) listOnce(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return Number(ctx, d.cfg.Pool, d.cfg.Each)
}

func (d *Dispatcher) advance(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return d.cfg.AdvanceTenants(ctx)
}

// due emits the events that are due, and sometimes removes old marks.
func (d *Dispatcher) due(ctx context.Context) error {
	if err := d.measure(ctx); err != nil {
		return err
	}
	if err := d.remind(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if err := d.cfg.Sweep(ctx); err != nil {
		return err
	}
	if rand.N(forgetEvery) > dueEvery { // this happens once per forgetEvery on average, so no time needs to be stored
		return nil
	}
	for {
		more, err := Forget(ctx, d.cfg.Pool, d.cfg.Clock.Now())
		if err != nil || !more {
			return err
		}
	}
}

func (d *Dispatcher) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, oldest, err := Waiting(ctx, d.cfg.Pool)
	if err != nil {
		return err
	}
	d.waiting.Set(float64(n))
	d.oldest.Set(oldest.Seconds())
	return nil
}

func (d *Dispatcher) remind(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = d.remindOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dispatcher) remindOnce(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, more, err = Remind(ctx, d.cfg.Pool, d.cfg.Clock.Now())
	return more, err
}
