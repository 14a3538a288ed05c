package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// workersPerWebhook bounds the concurrent calls to one receiver, on each instance.
	workersPerWebhook = 4

	// followEvery is the pause between two checks for webhooks that other instances have created or deleted.
	followEvery = time.Second

	// leavePatience bounds the wait for the running calls of one queue while the queue is closed. leaveTimeout bounds
	// the wait for all such queues in one check, because new webhooks wait for the check.
	leavePatience = 50 * time.Millisecond
	leaveTimeout  = 500 * time.Millisecond

	// pollEvery is the pause between two polls of a queue. Normally a notification starts new jobs at once, without a
	// poll.
	pollEvery = 15 * time.Second

	// fetchPause is the shortest pause between two fetches of the jobs of one webhook. Each fetch returns at most
	// workersPerWebhook jobs, so an instance delivers at most 200 events a second to a webhook.
	fetchPause = 20 * time.Millisecond

	// sweepEvery is the time between two removals of jobs whose webhook was deleted. Such jobs remain if they ran
	// when the webhook was deleted.
	sweepEvery = 10 * time.Minute

	// measureEvery is the time between two counts of pending deliveries.
	measureEvery = 15 * time.Second

	// jobsKept is how long River keeps jobs that have ended. The table webhook_deliveries has more details.
	jobsKept = 10 * time.Minute

	// pendingMax bounds the count of pending deliveries. A higher count would not change what an operator does.
	pendingMax = 100_000

	// deliveriesAtOnce bounds the rows that one statement inserts.
	deliveriesAtOnce = 5000
)

// Config configures a Service.
type Config struct {
	Pool         *pgxpool.Pool         // pool of the database's writer; it is not closed. Required
	DB           *pgstore.Store        // required
	AllowPrivate bool                  // whether receivers may have private addresses
	Log          *slog.Logger          // required
	Metrics      prometheus.Registerer // required

	pace pace // set by tests; zero values mean the constants
}

// pace has the durations that tests shorten.
type pace struct{ call, follow, sweep, poll time.Duration }

// Service stores webhooks and delivers events to them.
type Service struct {
	Store

	cfg     Config
	sender  *Sender
	metrics *metrics
	client  *river.Client[pgx.Tx]
	queues  map[string]bool // ids of webhooks whose queues this instance serves; used only by the goroutine of follow

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New returns a service that delivers no events before Start. It panics if the registry already has the metrics of a
// Service.
func New(cfg Config) (*Service, error) {
	cfg.pace = pace{
		call: cmp.Or(cfg.pace.call, callTimeout), follow: cmp.Or(cfg.pace.follow, followEvery), sweep: cmp.Or(cfg.pace.sweep, sweepEvery), poll: cmp.Or(cfg.pace.poll, pollEvery),
	}
	guard := &Guard{AllowPrivate: cfg.AllowPrivate}
	s := &Service{cfg: cfg, sender: newSender(guard, cfg.pace.call), metrics: newMetrics(cfg.Metrics), queues: map[string]bool{}, cancel: func() {}}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{pool: cfg.Pool, sender: s.sender, metrics: s.metrics})
	never := []string{}
	client, err := river.NewClient(riverpgxv5.New(cfg.Pool), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1, FetchPollInterval: time.Minute}}, // River needs one queue
		Workers:                     workers,
		JobTimeout:                  jobTimeout(cfg.pace.call),
		RescueStuckJobsAfter:        jobTimeout(cfg.pace.call) + rescueSlack,
		FetchPollInterval:           cfg.pace.poll,
		FetchCooldown:               fetchPause,
		CompletedJobRetentionPeriod: jobsKept,
		CancelledJobRetentionPeriod: jobsKept,
		DiscardedJobRetentionPeriod: jobsKept,
		ReindexerIndexNames:         never, // only the owner of the tables may reindex
		Logger:                      slog.New(quiet{cfg.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("webhooks: job queue: %w", err)
	}
	s.client = client
	s.Store = Store{db: cfg.DB, guard: guard, jobs: jobs{client}}
	return s, nil
}

// Start starts the deliveries. ctx bounds only the start itself.
func (s *Service) Start(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	if err := s.client.Start(running); err != nil {
		cancel()
		return fmt.Errorf("webhooks: start the job queue: %w", err)
	}
	s.done.Go(func() { s.follow(running) })
	return nil
}

// stopPatience is how long Stop waits for calls in progress. While PostgreSQL is away, the job queue would try to
// deregister for a long time, and other parts of the service must be stopped, too.
const stopPatience = 2 * time.Second

// Stop ends deliveries. Calls in progress may finish until ctx ends, but not longer than stopPatience. Calls that
// were cut off are repeated by another instance or by the next process.
func (s *Service) Stop(ctx context.Context) error {
	calm, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	err := s.client.Stop(calm)
	if err != nil && calm.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = s.client.StopAndCancel(last)
	}
	s.cancel()
	s.done.Wait()
	s.sender.Close()
	if err != nil { // PostgreSQL is away: the job queue cannot deregister
		s.cfg.Log.Warn("the job queue of webhooks was not stopped in order; deliveries in progress are tried again within a minute", "error", err)
	}
	return nil
}

// follow opens and closes queues until ctx ends, so that each webhook has a queue. It also removes old jobs.
func (s *Service) follow(ctx context.Context) {
	failing, again := false, false
	measured, swept := time.Time{}, time.Time{}
	for ctx.Err() == nil {
		gone, err := s.followOnce(ctx)
		if err == nil && (gone || again || time.Since(swept) >= s.cfg.pace.sweep) {
			swept, again = time.Now(), gone // sweep again later: the job queue stores the end of a job with a delay
			err = s.sweep(ctx)
		}
		if err == nil && time.Since(measured) >= measureEvery {
			measured = time.Now()
			err = s.measure(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			s.cfg.Log.Warn("changes of webhooks cannot be read", "error", err)
		}
		failing = err != nil
		backoff.Sleep(ctx, s.cfg.pace.follow)
	}
}

// followOnce opens the queues of new webhooks and closes those of deleted webhooks. It reports whether it closed a
// queue.
func (s *Service) followOnce(ctx context.Context) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, _ := s.cfg.Pool.Query(ctx, queries["WebhookIDs"])
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if s.queues[id] {
			continue
		}
		if err := s.client.Queues().Add(id, river.QueueConfig{MaxWorkers: workersPerWebhook}); err != nil {
			return false, fmt.Errorf("work on the queue of %s: %w", id, err)
		}
		s.queues[id] = true
	}
	if gone, err = s.leave(ctx, ids); err != nil {
		return gone, err
	}
	s.metrics.webhooks.Set(float64(len(s.queues)))
	return gone, nil
}

// leave closes the queues of deleted webhooks, and reports whether it has closed a queue. A closed queue starts no
// more jobs. If the calls of a queue take long, leave does not wait for them, and a later check closes the queue. So
// new webhooks do not wait.
func (s *Service) leave(ctx context.Context, ids []string) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	for id := range s.queues {
		if slices.Contains(ids, id) {
			continue
		}
		err := s.removeQueue(ctx, id)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			if ctx.Err() != nil {
				return gone, nil
			}
		case err != nil && !errors.As(err, new(*river.QueueNotFoundError)):
			return gone, fmt.Errorf("leave the queue of %s: %w", id, err)
		default:
			delete(s.queues, id)
			gone = true
		}
	}
	return gone, nil
}

func (s *Service) removeQueue(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	return s.client.Queues().Remove(ctx, id)
}

// sweep removes the jobs of deleted webhooks.
func (s *Service) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rows, _ := s.cfg.Pool.Query(ctx, queries["QueuesOfNobody"], job{}.Kind())
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, queue := range gone {
		if _, err := s.cfg.Pool.Exec(ctx, queries["DeleteJobs"], queue); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var count int
	var oldest float64
	if err := s.cfg.Pool.QueryRow(ctx, queries["CountPending"], pendingMax).Scan(&count, &oldest); err != nil {
		return err
	}
	s.metrics.pending.Set(float64(count))
	s.metrics.oldest.Set(oldest)
	return nil
}

// Queue inserts the deliveries of new events, in the transaction that lists these events.
func (s *Service) Queue(ctx context.Context, tx pgx.Tx, found []events.Listed) error {
	rows, _ := tx.Query(ctx, queries["ActiveWebhooks"])
	active, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Webhook, err error) {
		err = row.Scan(&w.ID, &w.Types, &w.Tenant)
		return w, err
	})
	if err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	var all []queued
	for i := range active {
		all = append(all, active[i].of(found)...)
	}
	for part := range slices.Chunk(all, deliveriesAtOnce) {
		made, err := insertDeliveries(ctx, tx, "InsertDeliveries", part)
		if err != nil {
			return err
		}
		if err := s.jobs.insert(ctx, tx, made); err != nil {
			return err
		}
	}
	return nil
}

// quiet passes on only warnings and errors. River's lines about its start and stop do not help operators.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
