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

// Bounds of an operation's life. A caller is answered within five seconds, whatever happens to the database; half a second of that is for
// what happens around the ledger.
const (
	refusalMax       = 4500 * time.Millisecond // from the arrival of an operation to its answer
	queueMax         = 2 * time.Second         // in the queue of a lane: what is left is enough for an attempt on a slow server and a second one
	shelfMax         = 4 * time.Second         // set aside: what is left is enough for a last attempt
	attemptTimeout   = 4 * time.Second         // one transaction, from acquiring the connection to the answer to COMMIT
	rerunReserve     = 500 * time.Millisecond  // what an attempt leaves for a second one, which learns what became of a lost COMMIT
	slowAttempt      = time.Second             // after this the database is probed: attempts take some milliseconds
	retriesMax       = 4                       // transient failures in a row
	retriesIsolating = 1                       // likewise, in the search for an operation that can never be stored: the whole batch has had its retries
	retryDelay       = 20 * time.Millisecond   // doubled each time, with full jitter
	passesMax        = 1000                    // transactions one batch may take to catch up with missed periods
)

// verdict is what a failed attempt means for the batch.
type verdict string

const (
	verdictRetry   verdict = "retry"   // nothing was written: run it again
	verdictUnknown verdict = "unknown" // COMMIT may have happened: run it again, and never answer "failed"
	verdictData    verdict = "data"    // this batch can never be written as it is: find the operation at fault
)

// runBatch decides and writes the plan's calls and gives each its answer. It never fails as a whole. The calls that wait for locked balances
// have no answer; it leaves them in p.held.
func (l *Ledger) runBatch(ctx context.Context, p *plan) {
	l.runAttempts(ctx, p)
	for i := range p.held {
		p.held[i].unknown = p.held[i].unknown || p.unknown
	}
}

func (l *Ledger) runAttempts(ctx context.Context, p *plan) {
	failures := 0
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
			l.breaker.Served()
			return
		case errors.Is(err, errNoEnd), errors.Is(err, errNotEnough):
			l.giveUp(p, reasonIntegrity, err)
			return
		case p.bearing && isRowTaken(err):
			p.bearing, p.rowsFirst = false, true
			continue
		case isLockTimeout(err) && !committing && p.locking == lockBriefly:
			p.locking = lockFree
			continue
		case isLockTimeout(err) && !committing && p.locking == lockPatiently:
			p.holdAll()
			return
		}
		v := classify(err, committing)
		l.metrics.failedAttempts.WithLabelValues(string(v)).Inc()
		if suggestsAway(err) {
			l.breaker.Suspect()
		}
		p.unknown = p.unknown || v == verdictUnknown
		p.everyMonth = p.everyMonth || isKeyConflict(err)
		failures++
		spent := failures > p.retries
		switch {
		case v == verdictData, spent && !p.unknown && isPersistentConflict(err):
			l.isolate(ctx, p, err)
			return
		case spent || ctx.Err() != nil:
			l.giveUp(p, reasonOf(err), err)
			return
		}
		l.log.Warn("ledger batch failed; running it again", "calls", len(p.calls), "outcome_unknown", p.unknown, "error", err)
		pause(ctx, failures)
	}
}

// isolate finds the operation that PostgreSQL refuses by halving, so that its neighbours are served.
func (l *Ledger) isolate(ctx context.Context, p *plan, cause error) {
	if len(p.calls) == 1 {
		c := p.calls[0]
		l.log.Error("ledger operation refused by the database", "tenant", c.ID.Tenant, "operation_id", c.ID.Key, "outcome_unknown", p.unknown, "error", cause)
		l.metrics.isolated.Inc()
		l.refuseAll(p.calls, p.unknown, reasonIntegrity, cause)
		return
	}
	middle := len(p.calls) / 2
	for _, calls := range [][]*ledger.Call{p.calls[:middle], p.calls[middle:]} {
		half := newPlan(calls)
		half.locking, half.unknown, half.retries = p.locking, p.unknown, retriesIsolating
		l.runBatch(ctx, half)
		p.held = append(p.held, half.held...)
	}
}

func (l *Ledger) giveUp(p *plan, r reason, cause error) {
	l.log.Error("ledger batch given up", "calls", len(p.calls), "outcome_unknown", p.unknown, "reason", string(r), "error", cause)
	l.refuseAll(p.calls, p.unknown, r, cause)
}

// refuseAll answers calls with the reason, or with outcome_unknown if an attempt's COMMIT was not answered.
func (l *Ledger) refuseAll(calls []*ledger.Call, unknown bool, r reason, cause error) {
	if unknown {
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

// isKeyConflict reports a unique violation of the journal: an entry with one of the batch's keys is where the look-up did not expect it,
// or another instance has just written it.
func isKeyConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505" && (strings.HasPrefix(pgErr.TableName, "entries") || citusName(pgErr, "entries"))
}

// isRowTaken reports that another transaction has made a row of balances, or was making it for too long.
func isRowTaken(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return isLockTimeout(err) || ok && pgErr.Code == "23505" && (pgErr.TableName == "balances" || citusName(pgErr, "balances"))
}

// isPersistentConflict reports a unique violation that survived all retries: one operation can never be stored. A transient
// conflict is with a row of another instance, and the next attempt finds that row.
func isPersistentConflict(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505"
}
