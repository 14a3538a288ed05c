package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/period"
)

// Bounds of one batch's life. Together they keep the wait of a caller whose database is gone under ten seconds.
const (
	attemptTimeout = 4 * time.Second       // one transaction, from acquiring the connection to COMMIT's answer
	batchTimeout   = 9 * time.Second       // all attempts
	retriesMax     = 4                     // transient failures in a row
	retryDelay     = 20 * time.Millisecond // doubled each time, with full jitter
	passesMax      = 1000                  // transactions one batch may take to catch up with missed periods
)

// verdict is what a failed attempt means for the batch.
type verdict int

const (
	verdictRetry   verdict = iota // nothing was written: run it again
	verdictUnknown                // COMMIT may have happened: run it again, and never answer "failed"
	verdictData                   // this batch can never be written as it is: find the culprit
)

// execute decides and writes calls and gives each its answer. It never fails as a whole.
func (l *Ledger) execute(ctx context.Context, calls []*call) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	l.executeWithin(ctx, calls)
}

func (l *Ledger) executeWithin(ctx context.Context, calls []*call) {
	a := newAttempt(calls)
	failures, unknown := 0, false
	for passes := 0; passes < passesMax; passes++ {
		again, err := l.try(ctx, a)
		if err == nil && !again {
			return
		}
		if err == nil {
			failures = 0
			continue
		}
		v := classify(err, a.committed)
		l.metrics.failedAttempts.WithLabelValues(v.String()).Inc()
		if v == verdictData {
			l.isolate(ctx, calls, err)
			return
		}
		unknown = unknown || v == verdictUnknown
		failures++
		if failures > retriesMax && !unknown && staysTaken(err) {
			l.isolate(ctx, calls, err)
			return
		}
		if failures > retriesMax || ctx.Err() != nil {
			l.log.Error("ledger batch given up", "calls", len(calls), "outcome_unknown", unknown, "error", err)
			failAll(calls, unknown, err)
			return
		}
		l.log.Warn("ledger batch is run again", "calls", len(calls), "outcome_unknown", unknown, "error", err)
		pause(ctx, failures)
	}
	failAll(calls, unknown, errors.New("catching up with missed periods took too many transactions"))
}

// isolate finds the call that PostgreSQL refuses by halving, so that its neighbours are served.
func (l *Ledger) isolate(ctx context.Context, calls []*call, cause error) {
	if len(calls) == 1 {
		l.log.Error("ledger operation refused by the database", "tenant", calls[0].id.tenant, "operation_id", calls[0].id.id, "error", cause)
		l.metrics.isolated.Inc()
		calls[0].reset()
		calls[0].err = &Error{Code: CodeInternal, Detail: "the operation could not be stored; nothing was changed", cause: cause}
		return
	}
	half := len(calls) / 2
	l.executeWithin(ctx, calls[:half])
	l.executeWithin(ctx, calls[half:])
}

func failAll(calls []*call, unknown bool, cause error) {
	e := &Error{Code: CodeUnavailable, Detail: "the ledger cannot reach its database; nothing was done", RetryAfter: time.Second, cause: cause}
	if unknown {
		e = &Error{
			Code: CodeOutcomeUnknown, RetryAfter: time.Second, cause: cause,
			Detail: "the connection to the database was lost at commit; retry with the same Idempotency-Key to learn the outcome",
		}
	}
	for _, c := range calls {
		c.reset()
		c.err = e
	}
}

func pause(ctx context.Context, failures int) {
	limit := retryDelay << (failures - 1)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(limit))) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// try runs the batch through one transaction. again = true: the transaction committed, or made rows, but the batch has to
// be read once more before it is answered.
func (l *Ledger) try(ctx context.Context, a *attempt) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	a.committed = false
	conn, err := l.writers.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("acquire writer connection: %w", err)
	}
	defer conn.Release()
	tx := batchTx{ledger: l, conn: conn.Conn(), attempt: a}
	again, err = tx.run(ctx)
	if err != nil {
		tx.rollback(ctx)
		tx.dropIfReadOnly(err)
		if tx.conn.IsClosed() {
			// Where one connection died, the idle ones most likely have too.
			l.writers.Reset()
		}
	}
	return again, err
}

// batchTx is one transaction of a batch on one connection.
type batchTx struct {
	ledger  *Ledger
	conn    *pgx.Conn
	attempt *attempt
	machine machine
	// termsChanged is when terms last changed for a tenant that may have balances.
	termsChanged time.Time
}

func (tx *batchTx) rollback(ctx context.Context) {
	if tx.conn.IsClosed() {
		return
	}
	// A connection left inside a failed transaction is closed by the pool; that is the fallback here.
	_, _ = tx.conn.Exec(ctx, "ROLLBACK")
}

// dropIfReadOnly closes a connection to a server that was demoted, so that the pool dials the new primary.
func (tx *batchTx) dropIfReadOnly(err error) {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "25006" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = tx.conn.Close(ctx)
	}
}

func (tx *batchTx) run(ctx context.Context) (again bool, err error) {
	a := tx.attempt
	if !a.located {
		if a.found, err = tx.ledger.locate(ctx, tx.conn, a.refs); err != nil {
			return false, err
		}
		a.extra = tx.ledger.hints.keysFor(a.calls)
		a.located = true
	}
	a.plan()
	if err := tx.lock(ctx); err != nil {
		return false, err
	}
	if absent := tx.unknownKeys(); len(absent) > 0 {
		tx.rollback(ctx)
		return true, tx.ledger.createBalances(ctx, tx.conn, absent, a.absent)
	}
	if err := tx.readMore(ctx); err != nil {
		return false, err
	}
	m := &tx.machine
	more, err := m.advanceAll()
	for _, c := range a.calls {
		if more || err != nil {
			break
		}
		err = m.decide(c)
	}
	if more, ok := errors.AsType[*errNeedKeys](err); ok {
		a.extra = append(a.extra, more.keys...)
		tx.ledger.hints.learn(more.keys, a.calls)
		tx.rollback(ctx)
		return true, nil
	}
	if errors.Is(err, errNotLoaded) && !a.force {
		a.force = true
		tx.rollback(ctx)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := tx.commit(ctx); err != nil {
		return false, err
	}
	return more, nil
}

// lock is the first round trip: lock the balances, then read the clock and what is stored of the batch's keys.
func (tx *batchTx) lock(ctx context.Context) error {
	a, q := tx.attempt, tx.ledger.queries
	m := &tx.machine
	*m = newMachine()
	m.absent, m.found = a.absent, a.found
	cols := columnsOf(a.keys)
	tenants, ids := make([]string, len(a.opKeys)), make([]string, len(a.opKeys))
	for i, k := range a.opKeys {
		tenants[i], ids[i] = k.tenant, k.id
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(q["LockBalances"], cols.tenants, cols.meters, cols.subjects).Query(scanBalances(m.books))
	b.Queue(q["Clock"]).QueryRow(tx.scanClock)
	b.Queue(q["StoredEntries"], tenants, ids, keyMonths(tx.ledger.estimate())).Query(scanLines(m.stored))
	tx.ledger.queueTaken(b, m, a.grantIDs())
	tx.ledger.queueState(b, m, a.refs)
	if err := sendBatch(ctx, tx.conn, b); err != nil {
		return err
	}
	tx.ledger.observe(m.now)
	for _, lines := range m.stored {
		slices.SortFunc(lines, func(a, b line) int { return int(a.line - b.line) })
	}
	return nil
}

func (tx *batchTx) scanClock(row pgx.Row) error {
	var tenants, plans time.Time
	if err := row.Scan(&tx.machine.now, &tenants, &plans); err != nil {
		return err
	}
	tx.machine.now = tx.machine.now.UTC()
	tx.termsChanged = later(tenants, plans)
	return nil
}

// queueTaken asks which of the grant ids that are wanted exist already.
func (l *Ledger) queueTaken(b *pgx.Batch, m *machine, wanted []grantKey) {
	if len(wanted) == 0 {
		return
	}
	keys, names := make([]key, len(wanted)), make([]string, len(wanted))
	for i, w := range wanted {
		keys[i], names[i] = w.key, w.id
	}
	c := columnsOf(keys)
	b.Queue(l.queries["TakenGrants"], c.tenants, c.meters, c.subjects, names).Query(scanTaken(m.taken))
}

func scanTaken(into map[grantKey]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k grantKey
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &k.id}, func() error {
			into[k] = true
			return nil
		})
		return err
	}
}

// unknownKeys lists keys without a row that are not known to be absent for a reason.
func (tx *batchTx) unknownKeys() []key {
	var out []key
	for _, k := range tx.attempt.keys {
		if _, ok := tx.machine.books[k]; ok {
			continue
		}
		if _, ok := tx.attempt.absent[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}

// readMore reads grants and terms of the balances that need them. In the normal case none does, and nothing is read.
func (tx *batchTx) readMore(ctx context.Context) error {
	a, m := tx.attempt, &tx.machine
	var grants, terms []key
	for k, b := range m.books {
		due := !b.nextEvent.After(m.now)
		endless := b.opened() && !b.end.Before(period.Forever)
		stale := endless && tx.termsChanged.After(b.updatedAt.Add(-termsCommitMargin))
		if !due && b.plan != "" {
			b.terms = tx.ledger.terms.get(k, b.plan, b.planVersion)
			stale = stale || b.terms == nil
		}
		if due || stale || a.force {
			terms = append(terms, k)
		}
		if due || a.force || b.headRemaining < a.demand[k] {
			grants = append(grants, k)
		}
	}
	named := a.found.namedGrants()
	if len(grants)+len(terms)+len(named) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	more := tx.ledger.queueLoad(b, grants, terms, named)
	if err := sendBatch(ctx, tx.conn, b); err != nil {
		return err
	}
	more.attach(m.books, tx.ledger.terms)
	return nil
}

// commit is the last round trip: write and commit. A batch that changed nothing only ends its transaction.
func (tx *batchTx) commit(ctx context.Context) error {
	b := &pgx.Batch{}
	writes := tx.machine.queueWrites(tx.ledger.queries, b)
	queueCommit(b)
	tx.attempt.committed = writes
	if err := sendBatch(ctx, tx.conn, b); err != nil {
		return err
	}
	if writes {
		tx.ledger.published(&tx.machine)
	}
	return nil
}

// createBalances makes missing rows in a transaction of its own and notes why others cannot be made.
func (l *Ledger) createBalances(ctx context.Context, conn *pgx.Conn, keys []key, absent map[key]missing) error {
	c := columnsOf(keys)
	if _, err := conn.Exec(ctx, l.queries["CreateBalances"], c.tenants, c.meters, c.subjects); err != nil {
		return fmt.Errorf("create balances: %w", err)
	}
	rows, err := conn.Query(ctx, l.queries["WhyAbsent"], c.tenants, c.meters)
	if err != nil {
		return fmt.Errorf("look up missing balances: %w", err)
	}
	reasons, err := scanReasons(rows)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if why, ok := reasons[[2]string{k.Tenant, k.Meter}]; ok {
			absent[k] = why
		}
	}
	return nil
}

// classify translates a failed attempt; it is the one place that looks into driver errors of the write path.
func classify(err error, committed bool) verdict {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, errRolledBack):
		return verdictRetry
	case !answered || pgErr.Severity == "FATAL" || pgErr.Severity == "PANIC":
		// The server did not say what became of the transaction.
		if committed {
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

// staysTaken says of an error that is still there after retries that one of the operations can never be written. A row that is there
// already is mostly another instance's, of a moment ago, and found when the batch runs again.
func staysTaken(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23505"
}

func (v verdict) String() string {
	switch v {
	case verdictRetry:
		return "retry"
	case verdictUnknown:
		return "unknown"
	case verdictData:
		return "data"
	}
	return "other"
}
