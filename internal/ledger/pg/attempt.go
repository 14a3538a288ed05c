package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/notice"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// progress says how far an attempt came before it ended.
type progress struct {
	creating   bool // the attempt was to create rows of balances in the batch's transaction
	committing bool // COMMIT was sent, with something to write
}

// attempt runs the batch in one transaction of at most four round trips. The first looks up the rows to which
// operations refer. The second locks and reads. The third reads grants and terms if the second has not read them. The
// last writes and commits. A plain debit needs only the second and the last. If decisions lack rows, next names these
// rows, and nothing was written.
func (l *Ledger) attempt(ctx context.Context, p *plan) (next ledger.Next, reached progress, err error) {
	err = l.inTx(ctx, p, func(ctx context.Context, t *tx) error {
		// Find out which balances to lock: the balances that the calls name, and the balances of the holds, grants
		// and operations to which the calls refer.
		if err := t.locate(ctx, p); err != nil {
			return err
		}
		p.arrange()
		// Lock and read the balances. In stateSkipLocked the calls that need locked balances are parked, and the
		// other calls go on.
		if err := t.lock(ctx, p); err != nil {
			return err
		}
		if len(t.locked) > 0 {
			if p.park(t.locked, l.learned); len(p.calls) == 0 {
				t.rollBack(ctx)
				return nil
			}
		}
		// Balances without a row get a row with the batch, or in a separate transaction before the next attempt.
		if missing := t.missing(p); len(missing) > 0 {
			added, err := t.addNewBalances(ctx, missing, p)
			if err != nil {
				return err
			}
			if !added {
				t.rollBack(ctx)
				next.CatchUp = true // the next attempt finds the rows, or the reason why they cannot exist
				return t.createMissing(ctx, missing, p)
			}
			reached.creating = true
		}
		if err := t.readMore(ctx, p); err != nil {
			return err
		}
		// Decide. If the decisions need balances that are not locked, the next attempt locks them.
		next = t.batch.Decide(p.calls)
		if next.All || len(next.More) > 0 {
			l.learned.addKeys(next.More)
			t.rollBack(ctx)
			return nil
		}
		// Write and commit.
		changes := t.batch.Changes()
		out := &pgx.Batch{}
		if !next.CatchUp { // otherwise no call was decided
			if lines := linesOf(p.calls); len(lines) > 0 {
				if err := auditlog.Queue(out, lines); err != nil {
					return err
				}
			}
		}
		reached.committing = len(changes.Books) > 0
		return t.commit(ctx, out, &changes)
	})
	return next, reached, err
}

// lock makes the round trip that locks the balances, and then reads the clock and the entries stored under the
// batch's keys.
func (t *tx) lock(ctx context.Context, p *plan) error {
	t.batch.Absent = p.absent
	t.batch.Located = *p.located
	tenants, meters, subjects := columnsOf(p.keys)
	out := &pgx.Batch{}
	t.began = t.ledger.clock.Begin()
	out.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	existing := t.queueLocks(out, p, tenants, meters, subjects)
	of := slices.Compact(slices.Clone(tenants))
	if len(of) == 0 {
		of = append(of, p.ids[0].Tenant) // the clock of the node that stores the batch's keys
	}
	out.Queue(t.ledger.sql["Clock"], of).QueryRow(t.scanClock)
	t.queueKeys(out, p)
	if !p.targets.None() {
		newGrants := slices.Concat(p.targets.NewGrants, p.targets.KeyGrants, p.reissued)
		t.ledger.queueTargets(out, t.batch, p, newGrants)
	}
	if len(p.named) == 0 && t.ledger.need.Load() >= needLikely {
		t.ahead = t.load(out, p, p.keys, p.keys)
	}
	if err := send(ctx, t.conn, out); err != nil {
		return err
	}
	if p.state == stateSkipLocked {
		wasFree := func(k ledger.BalanceKey) bool { return t.batch.Books[k] != nil }
		t.locked = setOf(slices.DeleteFunc(*existing, wasFree))
	}
	return t.remember(ctx, p)
}

// queueLocks queues the statements that lock the plan's balances as its state requires. In stateSkipLocked, existing
// receives the balances that have a row.
func (t *tx) queueLocks(out *pgx.Batch, p *plan, tenants, meters, subjects []string) (existing *[]ledger.BalanceKey) {
	existing = new([]ledger.BalanceKey)
	statement := "LockBalances"
	switch p.state {
	case stateUsual, stateRowsFirst:
		// lockTimeout is the connection's setting. On Citus the node's connection needs it as well.
		if t.ledger.cluster != nil {
			out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockTimeout))
		}
	case stateWaitLong:
		out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockPatience))
	case stateSkipLocked:
		// The statements wait for no row. They can only wait for DDL, and no request can be served before the DDL
		// ends.
		out.Queue("SET LOCAL lock_timeout = " + milliseconds(tableLockTimeout))
		statement = "LockFreeBalances"
	}
	if len(p.keys) > 0 || t.ledger.cluster == nil { // Citus cannot choose a node for a lock of no rows
		out.Queue(t.ledger.sql[statement], tenants, meters, subjects).Query(scanBalances(t.batch.Books))
	}
	if p.state == stateSkipLocked {
		out.Queue(t.ledger.sql["ExistingBalances"], tenants, meters, subjects).Query(scanKeys(existing))
	}
	return existing
}

// scanClock reads the row of the Clock statement. The batch's instant is derived from PostgreSQL's clock and the
// instance's clock (package clock).
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
	t.plansChanged = plans
	t.termsChanged = period.Later(tenants, plans)
	return nil
}

// readMore reads grants and terms of the balances that need them. Normally no balance needs them, and nothing is
// read.
func (t *tx) readMore(ctx context.Context, p *plan) error {
	var grants, terms []ledger.BalanceKey
	for k, book := range t.batch.Books {
		needsGrants, needsTerms := t.lacks(book, p.demand[k])
		if needsTerms || p.reads == readAll {
			terms = append(terms, k)
		}
		if (needsGrants || p.reads == readAll) && !t.newBalances.has(k) {
			grants = append(grants, k)
		}
	}
	if len(p.keys) > 0 { // a roll knows its balances only after the lock
		t.noteNeed(2*max(len(grants), len(terms)) > len(t.batch.Books))
	}
	if len(grants)+len(terms)+len(p.named) == 0 {
		return nil
	}
	more := t.ahead
	if more == nil {
		out := &pgx.Batch{}
		more = t.load(out, p, grants, terms)
		if err := send(ctx, t.conn, out); err != nil {
			return err
		}
	}
	more.attach(t.batch.Books, grants, terms, t.ledger.learned)
	t.ledger.learned.keepNewest(more.terms.Plans, t.plansChanged)
	if err := t.ledger.readPastUse(ctx, t.conn, t.batch.Books, terms, t.batch.Now); err != nil {
		return err
	}
	t.markUnchanged(terms)
	return nil
}

// A batch adds one to the ledger's need if most of its balances needed grants or terms, and subtracts needLost if not.
// So the need grows while more than two of three batches add to it, as after a month's end. A large batch with few such
// balances subtracts, because reading ahead for all its balances would cost more than the saved round trip.
const (
	needLikely = 4
	needMax    = 8
	needLost   = 2
)

// noteNeed raises the ledger's need if most balances of this batch needed grants or terms, and lowers the need if not.
// If batches end at the same moment, one of them may not be counted.
func (t *tx) noteNeed(needed bool) {
	now := t.ledger.need.Load()
	next := max(now-needLost, 0)
	if needed {
		next = min(now+1, needMax)
	}
	if next != now {
		t.ledger.need.CompareAndSwap(now, next)
	}
}

// load queues the reads of grants and terms. If terms are read, most likely a new period opens. So load also queues the
// read of the subscribers of that event.
func (t *tx) load(out *pgx.Batch, p *plan, grants, terms []ledger.BalanceKey) *loading {
	if len(terms) > 0 {
		t.subscribers.Queue(out)
	}
	return t.ledger.queueLoad(out, p, grants, terms)
}

// lacks gives the book the known allowance of its plan. It reports whether a decision that draws at most `most` units
// also needs the book's grants or terms.
func (t *tx) lacks(book *ledger.Book, most int64) (grants, terms bool) {
	if book.Plan != "" {
		book.Terms = t.ledger.learned.allowance(book.BalanceKey, book.Plan, book.PlanVersion)
	}
	grants, terms = book.Lacks(t.batch.Now, t.termsChanged.Add(termsCommitMargin), most)
	cut := t.mayChange(book)
	return grants || cut, terms || cut
}

// markUnchanged remembers the balances whose open period neither the newest terms of the tenant nor a newer version of
// its plan changes, and until when. The terms of all balances in keys were read.
func (t *tx) markUnchanged(keys []ledger.BalanceKey) {
	for _, k := range keys {
		book := t.batch.Books[k]
		at, agreed := t.changedNow[k.Tenant]
		if !agreed && !t.newVersion(book) {
			continue
		}
		if until := book.UnchangedUntil(period.Later(at, t.batch.Now)); !until.IsZero() {
			p := unchangedPeriod{start: book.Start, terms: at, plans: t.plansChanged, until: until}
			t.ledger.learned.markUnchanged(k, p)
		}
	}
}

// mayChange reports whether the tenant's terms that apply at once, or a newer version of its plan, may change the open
// period of the book. It returns false if it is known that they do not.
func (t *tx) mayChange(book *ledger.Book) bool {
	at, agreed := t.changedNow[book.Tenant]
	if !t.newVersion(book) && !(agreed && book.MayChange(at.Add(termsCommitMargin))) {
		return false
	}
	p := unchangedPeriod{start: book.Start, terms: at, plans: t.plansChanged, until: t.batch.Now}
	return !t.ledger.learned.isUnchanged(book.BalanceKey, p)
}

// newVersion reports whether the tenant's plan may have a newer version than the open period of the book.
func (t *tx) newVersion(book *ledger.Book) bool {
	switch {
	case !book.Opened() || !t.plansChanged.After(epoch):
		return false
	case book.Plan == "": // the row does not name the plan, which lacks the meter
		return true
	}
	return !t.ledger.learned.isNewest(book.Plan, book.PlanVersion, t.plansChanged)
}

// commit is the last round trip: it runs the statements that out already contains, writes the changes and commits. Then
// it passes the changed balances to the cache.
func (t *tx) commit(ctx context.Context, out *pgx.Batch, changes *ledger.Changes) error {
	months := t.ledger.unlisted(changes.Entries)
	if len(months) > 0 {
		out.Queue(t.ledger.sql["InsertMonths"], monthColumn(months))
	}
	if len(changes.Books) > 0 {
		queueChanges(t.ledger.sql, out, changes, t.newBalances)
		if emitted := notice.Of(changes); !emitted.Empty() {
			if err := events.Emit(ctx, t.conn, out, emitted, &t.subscribers); err != nil {
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
