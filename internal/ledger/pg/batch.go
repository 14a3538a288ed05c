package pg

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// Bounds of one batch's life. Together they keep the wait of a caller whose database is gone under ten seconds.
const (
	attemptTimeout = 4 * time.Second       // one transaction, from acquiring the connection to the answer to COMMIT
	batchTimeout   = 9 * time.Second       // all attempts
	retriesMax     = 4                     // transient failures in a row
	retryDelay     = 20 * time.Millisecond // doubled each time, with full jitter
	passesMax      = 1000                  // transactions one batch may take to catch up with missed periods
)

// verdict is what a failed attempt means for the batch.
type verdict string

const (
	verdictRetry   verdict = "retry"   // nothing was written: run it again
	verdictUnknown verdict = "unknown" // COMMIT may have happened: run it again, and never answer "failed"
	verdictData    verdict = "data"    // this batch can never be written as it is: find the operation at fault
)

// runBatch decides and writes calls and gives each its answer. It never fails as a whole.
func (l *Ledger) runBatch(ctx context.Context, calls []*ledger.Call) {
	p := newPlan(calls)
	failures, unknown := 0, false
	for {
		var committing bool
		err := p.repeat(passesMax, func() (next ledger.Next, err error) {
			next, committing, err = l.attempt(ctx, p)
			if err == nil {
				failures = 0
			}
			return next, err
		})
		switch {
		case err == nil:
			return
		case errors.Is(err, errNoEnd), errors.Is(err, errNotEnough):
			l.log.Error("ledger batch given up", "calls", len(calls), "outcome_unknown", unknown, "error", err)
			failAll(calls, unknown, err)
			return
		}
		v := classify(err, committing)
		l.metrics.failedAttempts.WithLabelValues(string(v)).Inc()
		unknown = unknown || v == verdictUnknown
		p.everyMonth = p.everyMonth || isKeyConflict(err)
		failures++
		spent := failures > retriesMax
		switch {
		case v == verdictData, spent && !unknown && isPersistentConflict(err):
			l.isolate(ctx, calls, err)
			return
		case spent || ctx.Err() != nil:
			l.log.Error("ledger batch given up", "calls", len(calls), "outcome_unknown", unknown, "error", err)
			failAll(calls, unknown, err)
			return
		}
		l.log.Warn("ledger batch failed; running it again", "calls", len(calls), "outcome_unknown", unknown, "error", err)
		pause(ctx, failures)
	}
}

// isolate finds the operation that PostgreSQL refuses by halving, so that its neighbours are served.
func (l *Ledger) isolate(ctx context.Context, calls []*ledger.Call, cause error) {
	if len(calls) == 1 {
		c := calls[0]
		l.log.Error("ledger operation refused by the database", "tenant", c.ID.Tenant, "operation_id", c.ID.Key, "error", cause)
		l.metrics.isolated.Inc()
		c.Reset()
		c.Err = &ledger.Error{Code: ledger.CodeInternal, Detail: "the operation could not be stored; nothing was changed", Cause: cause}
		return
	}
	half := len(calls) / 2
	l.runBatch(ctx, calls[:half])
	l.runBatch(ctx, calls[half:])
}

func failAll(calls []*ledger.Call, unknown bool, cause error) {
	e := &ledger.Error{Code: ledger.CodeUnavailable, Detail: "the ledger cannot reach its database; nothing was done", RetryAfter: time.Second, Cause: cause}
	if missing, ok := errors.AsType[*noPartitionError](cause); ok {
		e = missing.answer()
	}
	if unknown {
		e = &ledger.Error{
			Code: ledger.CodeOutcomeUnknown, RetryAfter: time.Second, Cause: cause,
			Detail: "the connection to the database was lost at commit; retry with the same Idempotency-Key to learn the outcome",
		}
	}
	for _, c := range calls {
		c.Reset()
		c.Err = e
	}
}

// pause waits before a retry, longer after each failure, with full jitter.
func pause(ctx context.Context, failures int) {
	limit := retryDelay << (failures - 1)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(limit))) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// classify translates a failed attempt. It is the one place that looks into driver errors of the write path. committing: COMMIT was
// sent.
func classify(err error, committing bool) verdict {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if _, missing := journal.MissingMonth(err); missing {
		return verdictRetry // the partition was made, or could not be made now
	}
	switch {
	case errors.Is(err, errRolledBack):
		return verdictRetry
	case !answered || pgErr.Severity == "FATAL" || pgErr.Severity == "PANIC":
		// The server did not say what became of the transaction.
		if committing {
			return verdictUnknown
		}
		return verdictRetry
	}
	switch pgErr.Code {
	case "40P01", "40001", "23505", "55P03", "57014", "25006", "53300", "53400", "55006":
		return verdictRetry
	}
	switch pgErr.Code[:2] {
	case "08", "57", "53":
		return verdictRetry
	}
	return verdictData
}

// isKeyConflict reports a unique violation of the journal: an entry with one of the batch's keys is where the look-up did not expect it,
// or another instance has just written it.
func isKeyConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505" && strings.HasPrefix(pgErr.TableName, "entries")
}

// isPersistentConflict reports a unique violation that survived all retries: one operation can never be stored. A transient
// conflict is with a row of another instance, and the next attempt finds that row.
func isPersistentConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505"
}
