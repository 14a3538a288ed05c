package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

var (
	// ErrAway matches the error of every request that Redis did not answer. Redis is down, slow or read-only, the
	// slot is moving, or the queue is full. It may be unknown whether a script ran.
	ErrAway = errors.New("redis did not answer")

	// ErrScript matches an error reply of a script itself, and a reply that the caller cannot read. Redis works. The
	// cause is a bug, or a value that another program stored.
	ErrScript = errors.New("redis script")

	// ErrStopped means that the store was stopped before the request was sent. Nothing was done.
	ErrStopped = errors.New("redis store: stopped")

	// ErrUnfinished means that the store was stopped while the request was in Redis. The outcome is unknown.
	ErrUnfinished = errors.New("redis store: stopped before the reply")

	// ErrMoving also matches ErrAway. The slot is moving to another node, and the keys of the call are on both nodes.
	// The call did not run.
	ErrMoving error = &failure{causeSlotMoving, "the slot is moving to another node", true}
)

// The causes of errors that match ErrAway: values of the label cause in metrics.
const (
	causeRedis        = "redis"
	causeBreakerOpen  = "breaker_open"
	causeSlotMoving   = "slot_moving"
	causeSlotUnserved = "slot_unserved"
	causeQueueSlow    = "queue_slow"
	causeQueueFull    = "queue_full"

	// CauseStaleWindow is for AwayBecause: by Redis's clock, the request belongs to another calendar window.
	CauseStaleWindow = "stale_window"
	// CauseValue is for AwayBecause: a stored value cannot be read.
	CauseValue = causeRedis
)

func causes() []string {
	return []string{causeRedis, causeBreakerOpen, causeSlotMoving, causeSlotUnserved, CauseStaleWindow, causeQueueSlow, causeQueueFull}
}

// failure is an error that matches ErrAway.
type failure struct {
	cause string
	text  string
	// healthy means that the shard itself works, and that the failure concerns only one slot or value. The breaker
	// does not count such a failure.
	healthy bool
}

func (f *failure) Error() string { return ErrAway.Error() + ": " + f.text }

// Is makes errors.Is match ErrAway.
func (f *failure) Is(target error) bool { return target == ErrAway }

var (
	errOpen     = &failure{causeBreakerOpen, "the breaker is open", false}
	errReadOnly = &failure{causeRedis, "it rejects writes", false}
	errUnserved = &failure{causeSlotUnserved, "no node serves the slot", true}
	errLate     = &failure{causeQueueSlow, "the request waited too long in the queue", true}
	errFull     = &failure{causeQueueFull, "the queue is full", true}
)

// AwayBecause returns an error that matches ErrAway, for a failure that only the sender of a request can detect. The
// breaker does not count it.
func AwayBecause(cause, text string) error { return &failure{cause, text, true} }

// ScriptError is an error reply of a script itself. The script changed nothing.
type ScriptError struct {
	Code string // the first word of the reply: ERR, or another one that the script defines
	Text string // the whole reply
}

func (e *ScriptError) Error() string { return ErrScript.Error() + ": " + e.Text }

// Is makes errors.Is match ErrScript.
func (e *ScriptError) Is(target error) bool { return target == ErrScript }

// blamesShard reports whether err means that the whole shard does not answer. It returns false if only one slot or
// value is affected.
func blamesShard(err error) bool {
	if !errors.Is(err, ErrAway) {
		return false
	}
	f, known := errors.AsType[*failure](err)
	return !known || !f.healthy
}

// classify wraps an error of go-redis in an error that matches ErrAway.
func classify(err error) error {
	switch {
	case isMoving(err):
		return fmt.Errorf("%w: %w", ErrMoving, err)
	case redis.HasErrorPrefix(err, "CLUSTERDOWN Hash slot not served"):
		return fmt.Errorf("%w: %w", errUnserved, err)
	case rejectsWrites(err):
		return fmt.Errorf("%w: %w", errReadOnly, err)
	default:
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
}

// isMoving reports whether a node of a cluster refused a command because the slot is moving. The command did not run.
// The client follows a limited number of redirections, and this command needed more.
func isMoving(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || redis.IsTryAgainError(err)
}

// rejectsWrites reports whether err is the reply of a server that refuses commands that write. Such a server is a
// replica, is out of memory, or cannot save its data. It still answers reads, but its data may lack the latest writes.
func rejectsWrites(err error) bool {
	codes := []string{"READONLY ", "OOM ", "MISCONF ", "NOREPLICAS "}
	return slices.ContainsFunc(codes, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}

// translate turns an error of a lane, or of the function that sends its batches, into an error of this package or of
// ctx. It counts failures of Redis.
func (s *Store) translate(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrAway), errors.Is(err, ErrScript):
	case ctxError(ctx) != nil:
		return ctxError(ctx)
	case errors.Is(err, lane.ErrLate):
		err = fmt.Errorf("%w: %w", errLate, err)
	case errors.Is(err, lane.ErrFull):
		err = fmt.Errorf("%w: %w", errFull, err)
	case errors.Is(err, lane.ErrUnfinished):
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	case errors.Is(err, lane.ErrStopped):
		return ErrStopped
	default:
		return fmt.Errorf("redis store: %w", err)
	}
	if errors.Is(err, ErrAway) {
		cause := causeRedis
		if f, known := errors.AsType[*failure](err); known {
			cause = f.cause
		}
		s.metrics.failures.WithLabelValues(cause).Inc()
	}
	return err
}

// ctxError returns why ctx has ended, or nil if ctx has not ended. If the deadline of ctx has passed, ctx counts as
// ended, even if its timer has not fired yet.
func ctxError(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
