package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/notice"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// tx is one transaction of a batch on one connection: of the writers, or of the readers for checks.
type tx struct {
	ledger *Ledger
	conn   *pgx.Conn
	batch  *ledger.Batch
	// locked are the plan's balances that another transaction has locked. It is read only where the plan does not wait for them.
	locked keySet
	// unborn are the plan's balances that have no row yet. If the batch changes them, it makes the rows.
	unborn keySet
	ahead  *loading           // what was read with the lock, for all balances of the plan; nil: nothing
	wishes events.Subscribers // who is told that a period opened
	began  time.Time          // the instance's clock, before PostgreSQL was asked for its own
	// termsChanged is when terms last changed for a tenant that may have balances already.
	termsChanged time.Time
	changedNow   map[string]time.Time // by tenant: when terms that apply at once were last made; tenants without such terms are missing
	newestMonth  ledger.Month         // the latest month that holds entries
}

// inTx runs do on a connection of the writers, and rolls back if it fails. On Citus, all that it reads and writes belongs to the shard group of
// the plan's calls; nil: it asks the coordinator.
func (l *Ledger) inTx(ctx context.Context, p *plan, do func(ctx context.Context, t *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime(ctx))
	defer cancel()
	pool := l.writers
	if l.nodes != nil {
		pool = l.writersFor(p)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil && pool != l.writers { // the coordinator is asked until the node is reached again
		l.nodes.Lost(pool, err)
		pool = l.writers
		conn, err = pool.Acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("acquire writer connection: %w", err)
	}
	defer conn.Release()
	t := &tx{ledger: l, conn: conn.Conn(), batch: ledger.NewBatch()}
	if err = do(ctx, t); err != nil {
		l.restoreCode(err)
		t.rollBack(ctx)
		err = l.makeMissing(ctx, conn, pool, err)
		t.dropIfReadOnly(err)
		if t.conn.IsClosed() {
			// Where one connection died, the idle ones most likely have died with it.
			pool.Reset()
		}
	}
	return err
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

// attempt runs the batch through one transaction: at most one round trip for what the operations refer to, one to lock and
// read, one for grants and terms if lock has not read them, one to write and commit. Of these, a plain debit needs the second and the last.
// committing: COMMIT was sent.
func (l *Ledger) attempt(ctx context.Context, p *plan) (next ledger.Next, committing bool, err error) {
	err = l.inTx(ctx, p, func(ctx context.Context, t *tx) error {
		if err := t.locate(ctx, p); err != nil {
			return err
		}
		p.arrange()
		p.bearing = false
		if err := t.lock(ctx, p); err != nil {
			return err
		}
		if len(t.locked) > 0 {
			if p.hold(t.locked, t.ledger.learned); len(p.calls) == 0 {
				t.rollBack(ctx)
				return nil
			}
		}
		if missing := t.missing(p); len(missing) > 0 {
			if ok, err := t.bear(ctx, missing, p); err != nil {
				return err
			} else if !ok {
				t.rollBack(ctx)
				next.CatchUp = true // the next transaction finds the rows, or why there are none
				return t.createBalances(ctx, missing, p)
			}
		}
		if err := t.readMore(ctx, p); err != nil {
			return err
		}
		next = t.batch.Decide(p.calls)
		if next.All || len(next.More) > 0 {
			l.learned.addKeys(next.More, p.calls)
			t.rollBack(ctx)
			return nil
		}
		changes, out := t.batch.Changes(), &pgx.Batch{}
		if p.audited && !next.CatchUp { // else no call was decided
			if err := auditlog.Queue(out, linesOf(p.calls)); err != nil {
				return err
			}
		}
		committing = len(changes.Books) > 0
		return t.commit(ctx, out, &changes)
	})
	return next, committing, err
}

// lock is the first round trip: it locks the balances, then reads the clock and what is stored under the batch's keys.
func (t *tx) lock(ctx context.Context, p *plan) error {
	b, q := t.batch, t.ledger.sql
	b.Absent, b.Located = p.absent, *p.located
	tenants, meters, subjects := columnsOf(p.keys)
	out := &pgx.Batch{}
	t.began = t.ledger.clock.Begin()
	out.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	statement := "LockBalances"
	var existing []ledger.BalanceKey
	switch p.locking {
	case lockBriefly: // lockTimeout is the connection's setting; on Citus the node's connection needs it as well
		if t.ledger.cluster != nil {
			out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockTimeout))
		}
	case lockPatiently:
		out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockPatience))
	case lockFree:
		// No row is waited for. What is left to wait for is DDL, and nobody can be served before it ends.
		out.Queue("SET LOCAL lock_timeout = " + milliseconds(tableLockTimeout))
		statement = "LockFreeBalances"
	}
	if len(p.keys) > 0 || t.ledger.cluster == nil { // Citus does not know on which node to lock nothing
		out.Queue(q[statement], tenants, meters, subjects).Query(scanBalances(b.Books))
	}
	if p.locking == lockFree {
		out.Queue(q["ExistingBalances"], tenants, meters, subjects).Query(scanKeys(&existing))
	}
	of := slices.Compact(slices.Clone(tenants))
	if len(of) == 0 {
		of = append(of, p.ids[0].Tenant) // the clock of the node that knows the batch's keys
	}
	out.Queue(q["Clock"], of).QueryRow(t.scanClock)
	t.queueKeys(out, p)
	if !p.plain {
		t.ledger.queueTargets(out, b, &p.targets, slices.Concat(p.targets.NewGrants, p.targets.KeyGrants, p.reissued))
	}
	if len(p.named) == 0 && t.ledger.need.Load() >= needLikely {
		t.ahead = t.load(out, p.keys, p.keys, nil)
	}
	if err := send(ctx, t.conn, out); err != nil {
		return err
	}
	if p.locking == lockFree {
		t.locked = setOf(slices.DeleteFunc(existing, func(k ledger.BalanceKey) bool { return b.Books[k] != nil }))
	}
	return t.remember(ctx, p)
}

// scanClock takes what the Clock statement returns. The batch's instant is the one on which PostgreSQL's clock and the instance's agree.
func (t *tx) scanClock(row pgx.Row) error {
	var now, tenants, plans, newest time.Time
	var immediate []string
	var since []time.Time
	if err := row.Scan(&now, &tenants, &plans, &newest, &immediate, &since); err != nil {
		return err
	}
	if len(immediate) > 0 {
		t.changedNow = make(map[string]time.Time, len(immediate))
		for i, tenant := range immediate {
			t.changedNow[tenant] = since[i]
		}
	}
	t.newestMonth = ledger.MonthOf(newest)
	t.batch.Now = t.ledger.clock.Agree(t.began, now)
	if t.termsChanged = tenants; plans.After(tenants) {
		t.termsChanged = plans
	}
	return nil
}

// missing lists the plan's balances that have no row and are not known to be absent.
func (t *tx) missing(p *plan) []ledger.BalanceKey {
	var out []ledger.BalanceKey
	for _, k := range p.keys {
		if _, ok := t.batch.Books[k]; ok || t.locked.has(k) {
			continue
		}
		if _, ok := p.absent[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}

// bear gives missing balances empty books, for the batch to make their rows. It returns false if the rows have to be made before: another
// transaction makes them at the same time, or some cannot be made.
func (t *tx) bear(ctx context.Context, keys []ledger.BalanceKey, p *plan) (bool, error) {
	if p.rowsFirst || p.locking != lockBriefly {
		return false, nil
	}
	tenants, meters := distinct(keys)
	var homes int
	if err := t.conn.QueryRow(ctx, t.ledger.sql["KeepHomes"], tenants, meters).Scan(&homes); err != nil {
		return false, fmt.Errorf("look up the homes of balances: %w", err)
	}
	if homes < len(tenants)+len(meters) {
		return false, nil
	}
	t.unborn, p.bearing = setOf(keys), true
	for _, k := range keys {
		t.batch.Books[k] = ledger.NewBook(ledger.BalanceRow{BalanceKey: k})
		t.batch.Books[k].LoadGrants(nil, nil) // grants and holds are made with a balance that has a row
	}
	return true, nil
}

// createBalances makes missing rows in a transaction of its own, and notes in p why others cannot be made.
func (t *tx) createBalances(ctx context.Context, keys []ledger.BalanceKey, p *plan) error {
	tenants, meters, subjects := columnsOf(keys)
	err := t.insertMissing(ctx, tenants, meters, subjects)
	if isLockTimeout(err) && p.locking != lockBriefly {
		p.hold(setOf(keys), t.ledger.learned) // the tenant or the meter is locked
		return nil
	}
	if err != nil {
		return fmt.Errorf("create balances: %w", err)
	}
	rows, err := t.conn.Query(ctx, t.ledger.sql["WhyAbsent"], tenants, meters)
	if err != nil {
		return fmt.Errorf("look up missing balances: %w", err)
	}
	if p.absent == nil {
		p.absent = map[ledger.BalanceKey]ledger.Absence{}
	}
	return scanAbsent(keys, p.absent)(rows)
}

// insertMissing runs CreateBalances. On Citus the node learns how long to wait for a lock within a transaction only.
func (t *tx) insertMissing(ctx context.Context, tenants, meters, subjects []string) error {
	if t.ledger.cluster == nil {
		_, err := t.conn.Exec(ctx, t.ledger.sql["CreateBalances"], tenants, meters, subjects)
		return err
	}
	out := &pgx.Batch{}
	out.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockTimeout))
	out.Queue(t.ledger.sql["CreateBalances"], tenants, meters, subjects)
	queueCommit(out)
	err := send(ctx, t.conn, out)
	if err != nil {
		t.ledger.restoreCode(err)
		t.rollBack(ctx)
	}
	return err
}

// readMore reads grants and terms of the balances that need them. In the normal case none does, and nothing is read.
func (t *tx) readMore(ctx context.Context, p *plan) error {
	var grants, terms []ledger.BalanceKey
	for k, book := range t.batch.Books {
		needsGrants, needsTerms := t.lacks(book, p.demand[k])
		if needsTerms || p.all {
			terms = append(terms, k)
		}
		if (needsGrants || p.all) && !t.unborn.has(k) {
			grants = append(grants, k)
		}
	}
	if len(p.keys) > 0 { // a roll knows its balances too late
		t.learn(2*max(len(grants), len(terms)) > len(t.batch.Books))
	}
	if len(grants)+len(terms)+len(p.named) == 0 {
		return nil
	}
	more := t.ahead
	if more == nil {
		out := &pgx.Batch{}
		more = t.load(out, grants, terms, p.named)
		if err := send(ctx, t.conn, out); err != nil {
			return err
		}
	}
	more.attach(t.batch.Books, grants, terms, t.ledger.learned)
	if len(t.changedNow) > 0 {
		t.markUncut(terms)
	}
	return nil
}

// A batch adds one to the ledger's need if most of its balances needed grants or terms, and takes off needLost if not. So the need grows while more
// than two of three batches are such, as after a month's end. A large batch of which few balances need them is none: what it reads for nothing costs
// more than a round trip.
const (
	needLikely = 4
	needMax    = 8
	needLost   = 2
)

// learn remembers whether most balances of this batch needed grants or terms. Of batches that end at the same moment one may be forgotten.
func (t *tx) learn(needed bool) {
	now := t.ledger.need.Load()
	next := max(now-needLost, 0)
	if needed {
		next = min(now+1, needMax)
	}
	if next != now {
		t.ledger.need.CompareAndSwap(now, next)
	}
}

// load queues the reads of grants and terms. Where terms are read, a period most likely opens.
func (t *tx) load(out *pgx.Batch, grants, terms []ledger.BalanceKey, named []ledger.GrantKey) *loading {
	if len(terms) > 0 {
		t.wishes.Queue(out)
	}
	return t.ledger.queueLoad(out, grants, terms, named)
}

// lacks gives the book what is known of its plan, and reports whether a decision that draws up to most needs its grants or terms as well.
func (t *tx) lacks(book *ledger.Book, most int64) (grants, terms bool) {
	if book.Plan != "" {
		book.Terms = t.ledger.learned.allowance(book.BalanceKey, book.Plan, book.PlanVersion)
	}
	grants, terms = book.Lacks(t.batch.Now, t.termsChanged.Add(termsCommitMargin), most)
	cut := len(t.changedNow) > 0 && t.mayBeCut(book)
	return grants || cut, terms || cut
}

// markUncut keeps which of the balances, whose terms were read, have an open period that the newest terms of its
// tenant do not end early.
func (t *tx) markUncut(keys []ledger.BalanceKey) {
	for _, k := range keys {
		if at, ok := t.changedNow[k.Tenant]; ok && t.batch.Books[k].Uncut() {
			t.ledger.learned.markUncut(k, uncutPeriod{start: t.batch.Books[k].Start, terms: at})
		}
	}
}

// mayBeCut reports whether terms of its tenant that apply at once may end the open period of the book early. It returns
// false if it is known that they do not.
func (t *tx) mayBeCut(book *ledger.Book) bool {
	at, ok := t.changedNow[book.Tenant]
	return ok && !t.ledger.learned.isUncut(book.BalanceKey, uncutPeriod{start: book.Start, terms: at}) && book.MayBeCut(at.Add(termsCommitMargin))
}

// commit is the last round trip: it runs what out has already, writes the changes and commits. Then it hands the changed balances to the cache.
func (t *tx) commit(ctx context.Context, out *pgx.Batch, changes *ledger.Changes) error {
	months := t.ledger.unlisted(changes.Entries)
	if len(months) > 0 {
		out.Queue(t.ledger.sql["InsertMonths"], monthColumn(months))
	}
	if len(changes.Books) > 0 {
		queueChanges(t.ledger.sql, out, changes, t.unborn)
		if told := notice.Of(changes); !told.Empty() {
			if err := events.Emit(ctx, t.conn, out, told, &t.wishes); err != nil {
				return err
			}
		}
	}
	queueCommit(out)
	if err := send(ctx, t.conn, out); err != nil || len(changes.Books) == 0 {
		return err
	}
	for _, m := range months {
		t.ledger.listedMonths.Store(m, true)
	}
	copies := make([]ledger.BalanceCopy, len(changes.Books))
	for i, book := range changes.Books {
		copies[i] = book.Copy(t.batch.Now)
	}
	t.ledger.cfg.OnCommit(copies)
	return nil
}

// errRolledBack reports that PostgreSQL answered COMMIT with ROLLBACK.
var errRolledBack = errors.New("ledger: transaction was rolled back at commit")

// queueCommit queues COMMIT and turns PostgreSQL's silent ROLLBACK into an error.
func queueCommit(out *pgx.Batch) {
	out.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
}

func (t *tx) rollBack(ctx context.Context) {
	if t.conn.IsClosed() {
		return
	}
	// If this fails, the pool closes the connection, which is inside a failed transaction.
	_, _ = t.conn.Exec(ctx, "ROLLBACK")
}

// dropIfReadOnly closes a connection to a server that was demoted, so that the pool dials the new primary.
func (t *tx) dropIfReadOnly(err error) {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "25006" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = t.conn.Close(ctx)
	}
}

// send runs queued statements in one round trip.
func send(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("pipelined batch: %w", err)
	}
	return nil
}
