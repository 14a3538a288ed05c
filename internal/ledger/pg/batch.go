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

// runBatch decides and writes calls and gives each its answer. It returns the calls that wait for locked balances; these have no answer. It
// never fails as a whole. unknown: an earlier attempt may have been carried out.
func (l *Ledger) runBatch(ctx context.Context, calls []*ledger.Call, how locking, unknown bool) []heldCall {
	return l.runPlan(ctx, newPlan(calls), how, unknown, retriesMax)
}

func (l *Ledger) runPlan(ctx context.Context, p *plan, how locking, unknown bool, retries int) []heldCall {
	p.locking = how
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
			return p.heldAfter(unknown)
		case errors.Is(err, errNoEnd), errors.Is(err, errNotEnough):
			l.giveUp(p, unknown, reasonIntegrity, err)
			return p.heldAfter(unknown)
		case isLockTimeout(err) && !committing && p.locking == lockBriefly:
			p.locking = lockFree
			continue
		case isLockTimeout(err) && !committing && p.locking == lockPatiently:
			p.holdAll()
			return p.heldAfter(unknown)
		}
		v := classify(err, committing)
		l.metrics.failedAttempts.WithLabelValues(string(v)).Inc()
		if suggestsAway(err) {
			l.breaker.Suspect()
		}
		unknown = unknown || v == verdictUnknown
		p.everyMonth = p.everyMonth || isKeyConflict(err)
		failures++
		spent := failures > retries
		switch {
		case v == verdictData, spent && !unknown && isPersistentConflict(err):
			return append(p.heldAfter(unknown), l.isolate(ctx, p, unknown, err)...)
		case spent || ctx.Err() != nil:
			l.giveUp(p, unknown, reasonOf(err), err)
			return p.heldAfter(unknown)
		}
		l.log.Warn("ledger batch failed; running it again", "calls", len(p.calls), "outcome_unknown", unknown, "error", err)
		pause(ctx, failures)
	}
}

// heldAfter returns the held calls. unknown: an attempt's COMMIT was not answered.
func (p *plan) heldAfter(unknown bool) []heldCall {
	for i := range p.held {
		p.held[i].unknown = unknown
	}
	return p.held
}

// isolate finds the operation that PostgreSQL refuses by halving, so that its neighbours are served.
func (l *Ledger) isolate(ctx context.Context, p *plan, unknown bool, cause error) []heldCall {
	if len(p.calls) == 1 {
		c := p.calls[0]
		l.log.Error("ledger operation refused by the database", "tenant", c.ID.Tenant, "operation_id", c.ID.Key, "outcome_unknown", unknown, "error", cause)
		l.metrics.isolated.Inc()
		l.refuseAll(p.calls, unknown, reasonIntegrity, cause)
		return nil
	}
	half := len(p.calls) / 2
	return append(l.runPlan(ctx, newPlan(p.calls[:half]), p.locking, unknown, retriesIsolating),
		l.runPlan(ctx, newPlan(p.calls[half:]), p.locking, unknown, retriesIsolating)...)
}

func (l *Ledger) giveUp(p *plan, unknown bool, r reason, cause error) {
	l.log.Error("ledger batch given up", "calls", len(p.calls), "outcome_unknown", unknown, "reason", string(r), "error", cause)
	l.refuseAll(p.calls, unknown, r, cause)
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

// attemptTime returns how long an attempt within ctx may take: it leaves time for another one.
func attemptTime(ctx context.Context) time.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return attemptTimeout
	}
	left := time.Until(end)
	if left > 2*rerunReserve {
		left -= rerunReserve
	}
	return min(left, attemptTimeout)
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
