package pg

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// Time limits of an operation. A caller is answered within five seconds, even if the database fails. Half a second of
// that is for the work outside the ledger.
const (
	// refusalMax is the time from the arrival of an operation to its answer.
	refusalMax = 4500 * time.Millisecond
	// queueMax bounds the time in the queue of a lane. The remaining time is enough for two attempts on a slow
	// server.
	queueMax = 2 * time.Second
	// parkedMax is the time until a parked operation is refused. The remaining time is enough for a last attempt.
	parkedMax = 4 * time.Second
	// attemptTimeout bounds one transaction, from acquiring the connection to the answer to COMMIT.
	attemptTimeout = 4 * time.Second
	// rerunReserve is the time that an attempt leaves for another attempt, which finds out whether a lost COMMIT took
	// effect.
	rerunReserve = 500 * time.Millisecond
	// slowAttempt is the duration of an attempt after which the database is probed. A normal attempt takes some
	// milliseconds.
	slowAttempt = time.Second
	// retriesMax is the number of transient failures in a row after which a batch is refused.
	retriesMax = 4
	// retriesHalved is retriesMax for a half of a batch that the database has refused. The whole batch has already
	// used its retries.
	retriesHalved = 1
	// retryDelay bounds the pause after the first failure. The bound is doubled with each further failure. The pause
	// has full jitter.
	retryDelay = 20 * time.Millisecond
	// passesMax is the number of transactions that a batch may take to catch up with missed periods.
	passesMax = 1000
)

// limits are how long a caller waits.
type limits struct {
	answer time.Duration // from the arrival of an operation to its answer
	queue  time.Duration // in the queue of a lane
}

var promisedLimits = limits{answer: refusalMax, queue: queueMax}

// verdict says what the end of an attempt means for its batch.
type verdict string

const (
	verdictDone     verdict = "done"      // every call was answered or parked
	verdictRowTaken verdict = "row_taken" // another transaction is creating the same row; nothing was written
	verdictLocked   verdict = "locked"    // another transaction kept a balance locked; nothing was written
	verdictRetry    verdict = "retry"     // another transient failure; nothing was written
	verdictUnknown  verdict = "unknown"   // COMMIT may have happened: run the batch again, and never answer "failed"
	verdictData     verdict = "data"      // this batch can never be written as it is: find the operation at fault
	verdictBug      verdict = "bug"       // decisions request more data without an end
)

// runBatches runs the plan's calls, with one batch for each shard group. Afterwards, the calls that wait for locked
// balances have no answer: they are in p.parked.
func (l *Ledger) runBatches(ctx context.Context, p *plan) {
	for _, part := range l.byGroup(p) {
		l.runBatch(ctx, part)
		if part != p {
			p.parked = append(p.parked, part.parked...)
		}
	}
}

// runBatch runs attempts until each of the plan's calls is answered or parked. It never fails as a whole. It
// implements the table of doc.go: after each attempt, the verdict and the state give the next state.
func (l *Ledger) runBatch(ctx context.Context, p *plan) {
	failures := 0
	for {
		// Attempts are repeated while each succeeds and the decisions need more rows.
		var reached progress
		err := p.repeat(passesMax, func() (next ledger.Next, err error) {
			next, reached, err = l.attempt(ctx, p)
			if err == nil {
				failures = 0
			}
			return next, err
		})
		result := p.verdictOf(err, reached)
		switch result {
		case verdictDone:
			l.breaker.Served()
			return
		case verdictBug:
			l.giveUp(p, reasonIntegrity, err)
			return
		case verdictRowTaken:
			p.state = stateRowsFirst
		case verdictLocked:
			if p.state == stateWaitLong {
				p.parkAll()
				return
			}
			p.state = stateSkipLocked
		case verdictRetry, verdictUnknown, verdictData:
			failures++
			if !l.mayRetry(ctx, p, result, err, failures) {
				return
			}
			pause(ctx, failures)
		}
	}
}

// verdictOf returns the verdict on an attempt that ended with err in the plan's state. reached says how far the
// attempt came.
func (p *plan) verdictOf(err error, reached progress) verdict {
	switch {
	case err == nil:
		return verdictDone
	case errors.Is(err, errNoEnd), errors.Is(err, errNotEnough):
		return verdictBug
	case reached.creating && isRowTaken(err):
		return verdictRowTaken
	case p.state != stateSkipLocked && !reached.committing && isLockTimeout(err):
		return verdictLocked
	}
	return classify(err, reached.committing)
}

// mayRetry records a failed attempt and reports whether the batch runs again in the same state. failures is the number
// of failed attempts in a row. If the batch does not run again, mayRetry has run its halves or refused its calls.
func (l *Ledger) mayRetry(ctx context.Context, p *plan, result verdict, err error, failures int) bool {
	l.metrics.failedAttempts.WithLabelValues(string(result)).Inc()
	if suggestsAway(err) {
		l.breaker.Suspect()
	}
	if result == verdictUnknown {
		p.mayBeStored = true
	}
	if isKeyConflict(err) {
		p.search = searchEveryMonth
	}
	spent := failures > p.retries
	switch {
	case result == verdictData, spent && !p.mayBeStored && isPersistentConflict(err):
		l.halve(ctx, p, err)
		return false
	case spent || ctx.Err() != nil:
		l.giveUp(p, reasonOf(err), err)
		return false
	}
	l.log.Warn("ledger batch failed; running it again",
		"calls", len(p.calls), "outcome_unknown", p.mayBeStored, "error", err)
	return true
}

// halve finds the operation that PostgreSQL refuses: it runs each half of the batch by itself, so that the other
// operations are served.
func (l *Ledger) halve(ctx context.Context, p *plan, cause error) {
	if len(p.calls) == 1 {
		c := p.calls[0]
		l.log.Error("ledger operation refused by the database", "tenant", c.ID.Tenant, "operation_id", c.ID.Key,
			"outcome_unknown", p.mayBeStored, "error", cause)
		l.metrics.isolated.Inc()
		l.refuseAll(p.calls, p.mayBeStored, reasonIntegrity, cause)
		return
	}
	middle := len(p.calls) / 2
	for _, calls := range [][]*ledger.Call{p.calls[:middle], p.calls[middle:]} {
		half := newPlan(calls)
		half.state = p.state
		half.mayBeStored = p.mayBeStored
		half.retries = retriesHalved
		l.runBatch(ctx, half)
		p.parked = append(p.parked, half.parked...)
	}
}

func (l *Ledger) giveUp(p *plan, r reason, cause error) {
	l.log.Error("ledger batch given up",
		"calls", len(p.calls), "outcome_unknown", p.mayBeStored, "reason", string(r), "error", cause)
	l.refuseAll(p.calls, p.mayBeStored, r, cause)
}

// refuseAll answers calls with the reason. It answers with outcome_unknown if the calls may be stored, because an
// attempt's COMMIT was not answered.
func (l *Ledger) refuseAll(calls []*ledger.Call, mayBeStored bool, r reason, cause error) {
	if mayBeStored {
		r = reasonUnknown
	}
	e := refusal(r, cause)
	l.metrics.refused.WithLabelValues(string(r)).Add(float64(len(calls)))
	for _, c := range calls {
		c.Reset()
		c.Err = e
	}
}

// pause waits before a retry, longer after each failure, with full jitter.
func pause(ctx context.Context, failures int) {
	backoff.Sleep(ctx, rand.N(retryDelay<<(failures-1))+time.Millisecond)
}

// classify returns the verdict on a failed attempt. committing means that COMMIT was sent.
func classify(err error, committing bool) verdict {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if _, missing := journal.MissingMonth(err); missing {
		return verdictRetry // the missing partition was created, or could not be created now
	}
	switch {
	case errors.Is(err, errRolledBack):
		return verdictRetry
	case !answered || pgErr.Severity == "FATAL" || pgErr.Severity == "PANIC":
		// The server did not answer, so the outcome of the transaction is unknown.
		if committing {
			return verdictUnknown
		}
		return verdictRetry
	case committing && commitUnclear(pgErr):
		return verdictUnknown
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

// isKeyConflict reports whether err is a unique violation of the journal. Then an entry with one of the batch's keys
// is in a month that the look-up did not read, or another instance has just written it.
func isKeyConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505" && (strings.HasPrefix(pgErr.TableName, "entries") || citusName(pgErr, "entries"))
}

// isRowTaken reports whether another transaction has created the row of a balance, or took too long to create it.
func isRowTaken(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	ofBalances := pgErr.TableName == "balances" || citusName(pgErr, "balances")
	return isLockTimeout(err) || pgErr.Code == "23505" && ofBalances
}

// isPersistentConflict reports whether err is a unique violation. If it remains after all retries, one operation can
// never be stored. A transient conflict is a conflict with a row of another instance, and the next attempt finds that
// row.
func isPersistentConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505"
}
