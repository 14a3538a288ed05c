package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

const (
	// keepTrying is the age from which a delivery that fails is not attempted again.
	keepTrying = 3 * 24 * time.Hour

	// rescueSlack is how long after the timeout of a job the process that runs the job counts as dead. River searches
	// for such jobs every 30 s, so the job is tried again within a minute.
	rescueSlack = 3 * time.Second

	// storeTimeout bounds the statements before a call, the statements after a call, and each check of the queues.
	storeTimeout = 3 * time.Second

	// faultPause is the pause after a job that could not be carried out, because PostgreSQL was away or the process
	// died.
	faultPause = 2 * time.Second

	// jobAttemptsMax bounds the attempts of a job that could not be carried out. Calls that failed at the receiver do
	// not count here.
	jobAttemptsMax = 10_000
)

// pauses returns the pauses after failed calls of a receiver. The last pause is repeated.
func pauses() []time.Duration {
	return []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour}
}

// pauseAfter returns the pause after this number of failed calls: a value of pauses plus a random part of up to a
// tenth. So deliveries that failed at the same time are not all repeated at the same time.
func pauseAfter(attempts int) time.Duration {
	all := pauses()
	d := all[min(max(attempts, 1), len(all))-1]
	return d + rand.N(d/10)
}

// jobTimeout returns the time limit of a job: the time limit of the call, and some seconds for the statements before
// and after the call.
func jobTimeout(call time.Duration) time.Duration { return call + 4*time.Second }

// job is the data of a delivery in River's table of jobs.
type job struct {
	Webhook  string `json:"webhook"`
	Position int64  `json:"position"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "webhook_delivery" }

// jobs inserts jobs into River's table.
type jobs struct{ client *river.Client[pgx.Tx] }

// insert inserts a job for each delivery in a transaction. The job is in the queue of its webhook.
func (j jobs) insert(ctx context.Context, tx pgx.Tx, all []queued) error {
	if len(all) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(all))
	for i, q := range all {
		params[i] = river.InsertManyParams{Args: job{q.webhook, q.position}, InsertOpts: &river.InsertOpts{Queue: q.webhook, MaxAttempts: jobAttemptsMax}}
	}
	if _, err := j.client.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("queue deliveries: %w", err)
	}
	return nil
}

// worker carries out deliveries.
type worker struct {
	river.WorkerDefaults[job]

	pool    *pgxpool.Pool
	sender  *Sender
	metrics *metrics
}

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[job]) time.Duration { return jobTimeout(w.sender.timeout) }

// NextRetry implements river.Worker, for jobs that could not be carried out. If the receiver fails, the job is
// snoozed instead.
func (w *worker) NextRetry(*river.Job[job]) time.Time { return time.Now().Add(faultPause) }

// Work implements river.Worker. It makes at most one attempt.
func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	d, err := w.read(ctx, j.Args)
	if err != nil || d == nil {
		return err
	}
	switch {
	case d.url == nil:
		return w.end(ctx, j.Args, StatusSkipped, "the webhook was deleted")
	case *d.state == Paused:
		return w.end(ctx, j.Args, StatusSkipped, "the webhook was paused")
	case d.event == nil && !d.old && time.Since(time.UnixMicro(j.Args.Position)) < events.Kept:
		return river.JobSnooze(faultPause) // on Citus, the event may become visible later than the job
	case d.event == nil:
		return w.end(ctx, j.Args, StatusDead, "the event is older than 90 days")
	}
	m, err := NewMessage(d.event)
	if err != nil {
		return err
	}
	out := w.sender.Send(ctx, *d.url, d.secrets, m)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return river.JobSnooze(0) // this instance is stopping; another instance takes the job
	}
	return w.record(ctx, j.Args, d, out)
}

// attempt has the data that one attempt needs.
type attempt struct {
	attempts   int
	old        bool // the delivery is older than keepTrying, so this attempt is the last one
	url, state *string
	secrets    [][]byte
	event      *events.Listed
}

// read returns the data for an attempt. It returns nil if the delivery is no longer pending.
func (w *worker) read(ctx context.Context, a job) (*attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var d attempt
	var status, tenant string
	err := w.pool.QueryRow(ctx, queries["SelectDelivery"], a.Webhook, a.Position, keepTrying.Seconds()).Scan(&status, &d.attempts, &tenant, &d.old, &d.url, &d.state)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && status != StatusPending {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	if d.url == nil {
		return &d, nil
	}
	rows, _ := w.pool.Query(ctx, queries["EventAt"], tenant, a.Position)
	found, err := pgx.CollectRows(rows, events.Scan)
	if err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	if len(found) > 0 {
		d.event = &found[0]
	}
	if d.secrets, err = secrets(ctx, w.pool, a.Webhook); err != nil {
		return nil, err
	}
	return &d, nil
}

// record stores the outcome of an attempt. If another attempt follows, it snoozes the job.
func (w *worker) record(ctx context.Context, a job, d *attempt, out Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // stored even after the deadline: the call was made
	defer cancel()
	status, pause := StatusDelivered, time.Duration(0)
	switch {
	case out.Error == "":
	case d.old:
		status = StatusDead
	default:
		status, pause = StatusPending, pauseAfter(d.attempts+1)
	}
	var next *float64
	if pause > 0 {
		seconds := pause.Seconds()
		next = &seconds
	}
	_, err := w.pool.Exec(ctx, queries["RecordAttempt"], a.Webhook, a.Position, status, out.Status, out.Latency.Milliseconds(), out.Error, next)
	if err != nil {
		return fmt.Errorf("store the outcome of a delivery: %w", err)
	}
	w.metrics.attempted(status, out)
	if pause > 0 {
		return river.JobSnooze(pause)
	}
	return nil
}

func (w *worker) end(ctx context.Context, a job, status, why string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := w.pool.Exec(ctx, queries["EndDelivery"], a.Webhook, a.Position, status, why); err != nil {
		return fmt.Errorf("end a delivery: %w", err)
	}
	w.metrics.ended(status)
	return nil
}
