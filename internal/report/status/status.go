package status

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// sampleEvery is the pause between two reads of the counters.
	sampleEvery = 5 * time.Second

	// window is the time over which the present rates are computed. It is long enough for steady rates.
	window = time.Minute
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Config configures a Board. Every field is required.
type Config struct {
	// Reports reads the records.
	Reports *history.Reader

	// Clock is the ledger's clock.
	Clock interface{ Now() time.Time }

	// Counted provides the metrics of requests.
	Counted prometheus.Gatherer

	// Faults returns the parts of this instance that do not work. It must return without waiting.
	Faults func() []Fault

	// Log receives a line if the counters cannot be read.
	Log *slog.Logger
}

// Fault is a part of the service that does not work correctly, with the reason.
type Fault struct{ Part, Reason string }

// Requests is the number of requests that this instance has answered since From, by their result.
type Requests struct {
	From                      time.Time
	Answered, Refused, Failed int64 // Answered includes Refused and Failed
}

// Status is the state of the service.
type Status struct {
	At        time.Time
	StartedAt time.Time
	Requests  Requests
	Faults    []Fault
	Records   *Records // nil: the records could not be read
}

// Board reports the state of the service. Create it with New.
type Board struct {
	cfg     Config
	sql     map[string]string
	started time.Time
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	samples []Requests // oldest first. A sample has the counters at the instant From, counted since the process began

	records recorded
}

// New returns a board. The caller must call Start.
func New(cfg Config) *Board {
	now := time.Now()
	return &Board{
		cfg: cfg, sql: namedsql.Must(namedsql.Plain, sqlFiles), started: now, cancel: func() {},
		samples: []Requests{{From: now}}, records: recorded{turn: make(chan struct{}, 1)},
	}
}

// Start starts the goroutine that reads the counters.
func (b *Board) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.done.Go(func() { backoff.Every(ctx, sampleEvery, b.sample) })
}

// Stop ends the goroutine that reads the counters.
func (b *Board) Stop(context.Context) error {
	b.cancel()
	b.done.Wait()
	return nil
}

// Read returns the state of the service.
func (b *Board) Read(ctx context.Context) Status {
	now := time.Now()
	s := Status{At: b.cfg.Clock.Now().UTC(), StartedAt: b.started.UTC(), Requests: b.since(now), Faults: b.cfg.Faults()}
	var err error
	if s.Records, err = b.readRecords(ctx); err != nil {
		s.Faults = append(s.Faults, Fault{Part: "records", Reason: "refusals and jobs cannot be read: " + detail(err)})
	}
	return s
}

// detail returns the text of an error that callers may see.
func detail(err error) string {
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return e.Detail
	}
	return "the request has ended"
}

// sample stores the present counters, and drops samples that the window no longer needs.
func (b *Board) sample(now time.Time) {
	counted, err := count(b.cfg.Counted)
	if err != nil {
		b.cfg.Log.Warn("the counters of requests cannot be read", "error", err)
		return
	}
	counted.From = now
	b.mu.Lock()
	defer b.mu.Unlock()
	b.samples = append(b.samples, counted)
	for len(b.samples) > 2 && !b.samples[1].From.After(now.Add(-window)) {
		b.samples = b.samples[1:]
	}
}

// since returns the requests that were answered in the window before now.
func (b *Board) since(now time.Time) Requests {
	b.sample(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	first, last := b.samples[0], b.samples[len(b.samples)-1]
	return Requests{From: first.From.UTC(), Answered: last.Answered - first.Answered, Refused: last.Refused - first.Refused, Failed: last.Failed - first.Failed}
}
