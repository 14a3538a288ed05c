package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// rollSaveEvery is the time between two records of a roll's progress, and between two renewals of its slot.
	rollSaveEvery = time.Second
	// sweepWhole is how often a sweep begins with the earliest due balance. Otherwise a sweep begins where the last
	// sweep ended. Only two kinds of due balances lie before that position: balances that were locked during that
	// sweep, and balances that an entry has made due since then, with a due instant long before the entry.
	sweepWhole = time.Minute
	// sweepOverlap is how long before the end of the last sweep the next sweep begins. It is longer than any
	// transaction, because a sweep sees a balance that a transaction makes due only after the transaction's COMMIT.
	sweepOverlap = 10 * time.Second
	// rollSlot is how long a process keeps the slot without renewing it. A process that does not renew it for this
	// time has ended or hangs.
	rollSlot = 10 * time.Second
	// rollEvents bounds the events that one transaction of a roll processes. Such a transaction writes about 6,000
	// rows, and takes much less than attemptTimeout even on a slow disk.
	rollEvents = 2000
	// rollsMax bounds the rolls that one process runs at once. More rolls would slow down live requests.
	rollsMax = 4
	// rollAsideMax bounds the balances that one roll sets aside. So many failures have a common cause, which a person
	// must find.
	rollAsideMax = 100
)

// RollStatus is the state of a roll.
type RollStatus string

// The states of a roll. A roll is abandoned if it is still running but has stored no heartbeat for a minute: usually
// its process has ended. A new roll continues its work.
const (
	RollRunning   RollStatus = "running"
	RollDone      RollStatus = "done"
	RollFailed    RollStatus = "failed"
	RollAbandoned RollStatus = "abandoned"
)

// Roll is one run over the balances that have events due.
type Roll struct {
	ID         string
	AsOf       time.Time // the roll processes the balances that have events due at or before this instant
	Status     RollStatus
	Total      int64 // balances due when it began
	Processed  int64 // balances that were processed; may exceed Total when more become due
	SetAside   int64 // balances that could not be written, each named in the log; they stay due
	Error      string
	StartedAt  time.Time
	FinishedAt time.Time // zero while running
}

// StartRoll begins a roll in the background and returns at once. asOf nil means now; it must not lie in the future.
func (l *Ledger) StartRoll(ctx context.Context, asOf *time.Time) (Roll, error) {
	var roll Roll
	err := l.jobs.start(func() (func(context.Context), error) {
		var err error
		if roll, err = l.beginRoll(ctx, asOf); err != nil {
			return nil, err
		}
		running := roll // the caller's copy stays as it is
		return func(ctx context.Context) {
			if err := l.runRoll(ctx, &running, func(Roll) {}); err != nil {
				l.log.Error("roll failed", "roll_id", running.ID, "error", err)
			}
		}, nil
	})
	switch {
	case errors.Is(err, errJobsFull):
		return Roll{}, errcode.Errorf(errcode.QueueFull, "", "%d rolls are running on this instance; wait for one to end", rollsMax)
	case errors.Is(err, errStopping):
		return Roll{}, unavailable("start a roll", errStopping)
	case err != nil:
		return Roll{}, err
	}
	return roll, nil
}

// RunRoll runs a roll and returns when it is done. It calls progress after every chunk.
//
// Balances are right without rolls: every decision and every read first processes the due events. A roll writes the
// due events of balances that nobody uses: it closes the last period that was used, and ends holds and grants. If
// only idle periods pass, it writes nothing. It can be stopped at any time. A balance that cannot be written is set
// aside, and the roll goes on. The balance stays due for the next roll.
func (l *Ledger) RunRoll(ctx context.Context, asOf *time.Time, progress func(Roll)) (Roll, error) {
	roll, err := l.beginRoll(ctx, asOf)
	if err != nil {
		return Roll{}, err
	}
	progress(roll)
	err = l.runRoll(ctx, &roll, progress)
	return roll, err
}

// Sweep runs small rolls repeatedly, without a record: it processes events that have become due on balances that
// nobody uses. Each instance has a sweep. A run of more than one transaction needs the slot. There is only one slot,
// so at a month's end only one process works.
type Sweep struct {
	ledger *Ledger
	holder string              // name of the sweep as the slot's holder
	aside  []ledger.BalanceKey // balances that it could not write; rolls try them again
	start  duePosition         // all events due before this position were processed
	whole  time.Time           // when the sweep last began with the earliest due balance
}

// NewSweep returns a sweep. Its methods are for one goroutine.
func (l *Ledger) NewSweep() *Sweep { return &Sweep{ledger: l, holder: "sweep-" + rand.Text()} }

// Run processes the events that are due now. It pauses between transactions as a roll does. If a roll or another
// sweep has the slot, Run leaves the remaining events to the holder of the slot.
func (s *Sweep) Run(ctx context.Context) error {
	now, err := s.ledger.askTime(ctx, s.ledger.readers)
	if err != nil {
		return unavailable("ask PostgreSQL for the time", err)
	}
	if time.Since(s.whole) >= sweepWhole {
		s.start, s.whole = duePosition{}, time.Now()
	}
	r := &roller{Roll: &Roll{ID: "sweep", AsOf: now}, ledger: s.ledger, chunk: chunkMin, start: s.start, from: s.start, aside: s.aside}
	defer func() { s.aside = r.aside }()
	var kept time.Time
	var sleeper throttle // always in busy mode, because nobody waits for a sweep
	for ctx.Err() == nil {
		began := time.Now()
		done, err := r.next(ctx)
		if err != nil {
			return err
		}
		if done {
			s.start = duePosition{due: now.Add(-sweepOverlap)}
			return nil
		}
		if time.Since(kept) >= rollSaveEvery {
			if mine, err := s.ledger.takeSlot(ctx, s.holder, false); !mine || err != nil {
				return err
			}
			kept = time.Now()
		}
		sleeper.wait(ctx, time.Since(began))
	}
	return ctx.Err()
}

// takeSlot takes or keeps the only slot for processing due events, and reports whether holder has it. A roll takes it
// from any holder, because a person waits for the roll. Sweeps then end within rollSaveEvery. Two rolls take the slot
// from each other, which harms no roll.
func (l *Ledger) takeSlot(ctx context.Context, holder string, isRoll bool) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err = l.readers.QueryRow(ctx, l.sql["TakeRollSlot"], holder, isRoll, rollSlot).Scan(&mine)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, unavailable("take the slot for rolls", err)
	}
	return mine, nil
}

func (l *Ledger) beginRoll(ctx context.Context, asOf *time.Time) (Roll, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	roll := Roll{ID: "roll-" + rand.Text(), Status: RollRunning}
	err := pgx.BeginFunc(ctx, l.readers, func(tx pgx.Tx) error {
		now, err := l.askTime(ctx, tx)
		if err != nil {
			return err
		}
		roll.AsOf = now
		if asOf != nil {
			if asOf.After(now) {
				return errcode.Errorf(errcode.InvalidArgument, "as_of", "must not lie in the future; it is %s now", now.Format(time.RFC3339))
			}
			if e := ledger.ValidateInstant("as_of", *asOf); e != nil {
				return e
			}
			roll.AsOf = period.Micros(*asOf)
		}
		if err := tx.QueryRow(ctx, l.sql["CountDue"], roll.AsOf).Scan(&roll.Total); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, l.sql["InsertRoll"], roll.ID, roll.AsOf, roll.Total).Scan(&roll.StartedAt); err != nil {
			return err
		}
		return recordRoll(ctx, tx, &roll)
	})
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return Roll{}, e
	}
	if err != nil {
		return Roll{}, unavailable("begin roll", err)
	}
	return roll, nil
}

// lookAround reads PostgreSQL's counter of transactions, to see whether other clients work. On Citus each node has
// its own counter, so a roll always pauses there as if PostgreSQL were busy.
func (l *Ledger) lookAround(ctx context.Context, t *throttle) error {
	if l.cluster != nil || !t.due() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var commits int64
	if err := l.readers.QueryRow(ctx, l.sql["Commits"]).Scan(&commits); err != nil {
		return unavailable("read PostgreSQL's load", err)
	}
	t.count(commits, time.Now())
	return nil
}

// roller is a running roll or sweep.
type roller struct {
	*Roll

	ledger *Ledger
	chunk  int         // balances of the next transaction
	start  duePosition // all events due before this position were processed
	from   duePosition // events due before this position were processed, or are on locked balances
	// aside are the balances that this roll could not write. It leaves them out from then on; the next roll tries them
	// again.
	aside    []ledger.BalanceKey
	failures int  // attempts that failed in a row
	slow     bool // the newest balance was set aside because it was slow, and no balance was written since
}

func (l *Ledger) runRoll(ctx context.Context, roll *Roll, progress func(Roll)) error {
	r := &roller{Roll: roll, ledger: l, chunk: chunkMin}
	var saved time.Time
	var sleeper throttle
	for {
		began := time.Now()
		if began.Sub(saved) >= rollSaveEvery {
			if err := l.keepRoll(ctx, roll); err != nil {
				l.log.Warn("roll progress not saved", "roll_id", roll.ID, "error", err)
			}
			if err := l.lookAround(ctx, &sleeper); err != nil {
				l.log.Warn("PostgreSQL's load could not be read; the roll keeps its pace", "roll_id", roll.ID, "error", err)
			}
			saved, began = began, time.Now()
		}
		done, err := r.next(ctx)
		switch {
		case err != nil:
			roll.Status, roll.Error = RollFailed, err.Error()
			return errors.Join(fmt.Errorf("roll %s: %w", roll.ID, err), l.saveRoll(context.WithoutCancel(ctx), roll))
		case done:
			roll.Status = RollDone
			roll.FinishedAt = l.Now()
			progress(*roll)
			return l.saveRoll(context.WithoutCancel(ctx), roll)
		}
		progress(*roll)
		sleeper.wait(ctx, time.Since(began))
	}
}

// next advances one chunk and reports whether nothing was due. A chunk that PostgreSQL refuses, or that takes too
// long, is halved. A single balance that is refused again and again is set aside. It fails when PostgreSQL does not
// answer, or when too many balances were set aside.
func (r *roller) next(ctx context.Context) (done bool, err error) {
	began := time.Now()
	out, err := r.ledger.rollOnce(ctx, r.AsOf, r.chunk, r.from, r.aside)
	if err == nil {
		r.failures, r.slow, r.chunk = 0, false, nextChunk(r.chunk, time.Since(began))
		r.Processed += int64(out.finished)
		for k, why := range out.broken {
			if err := r.setAside(k, why); err != nil {
				return false, err
			}
		}
		whole := r.from == r.start
		if r.from = out.next; out.taken == nil {
			r.from = r.start // begin again, for balances that were locked
		}
		return out.taken == nil && whole, nil
	}
	fault := faultOf(err)
	r.failures++
	switch {
	case ctx.Err() != nil:
		return false, err
	case fault != faultAway && r.chunk > 1:
		r.ledger.log.Warn("roll halves its chunk", "roll_id", r.ID, "balances", r.chunk, "error", err)
		r.chunk, r.failures = r.chunk/2, 0
		return false, nil
	case r.failures <= retriesMax:
		pause(ctx, r.failures)
		return false, nil
	case fault == faultAway, fault == faultSlow && r.slow: // PostgreSQL is slow as a whole, not only one balance
		return false, err
	}
	if out.taken == nil { // the row itself could not be read
		if out.taken, err = r.ledger.firstDue(ctx, r.AsOf, r.from, r.aside); err != nil {
			return false, err
		}
	}
	r.failures, r.slow = 0, fault == faultSlow
	for _, k := range out.taken {
		if err := r.setAside(k, err); err != nil {
			return false, err
		}
	}
	return false, nil
}

// setAside leaves k out of the rest of the roll. It fails if rollAsideMax balances are set aside already.
func (r *roller) setAside(k ledger.BalanceKey, why error) error {
	r.ledger.log.Error("roll sets a balance aside: see docs/operations/jobs.md, rolls", "roll_id", r.ID,
		"tenant", k.Tenant, "meter", k.Meter, "subject", k.Subject, "error", why)
	if len(r.aside) == rollAsideMax {
		return fmt.Errorf("more than %d balances cannot be written: %w", rollAsideMax, why)
	}
	r.aside = append(r.aside, k)
	r.SetAside = int64(len(r.aside))
	return nil
}

// fault is the reason why a chunk of a roll failed.
type fault string

const (
	faultData fault = "data" // PostgreSQL refuses a row to be written, or a row cannot be read or computed
	faultSlow fault = "slow" // the transaction took too long
	faultAway fault = "away" // PostgreSQL does not answer
)

// errPanicked is the error of a chunk whose computation has panicked.
var errPanicked = errors.New("ledger: panic")

func faultOf(err error) fault {
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, errPanicked), isUnreadable(err), isPersistentConflict(err):
		return faultData
	case errors.Is(err, context.DeadlineExceeded), answered && (pgErr.Code == "57014" || pgErr.Code == "55P03"):
		return faultSlow
	}
	return faultAway
}

// keepRoll records the progress of a roll and keeps its slot.
func (l *Ledger) keepRoll(ctx context.Context, roll *Roll) error {
	_, err := l.takeSlot(ctx, roll.ID, true)
	return errors.Join(err, l.saveRoll(ctx, roll))
}

func (l *Ledger) saveRoll(ctx context.Context, roll *Roll) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if _, err := l.readers.Exec(ctx, l.sql["UpdateRoll"], roll.ID, string(roll.Status), roll.Processed, roll.Error, roll.SetAside); err != nil {
		return unavailable("save roll", err)
	}
	return nil
}

// rolled is the result of one transaction of a roll.
type rolled struct {
	taken    []ledger.BalanceKey // the locked balances; empty: no balance from the position on is due
	next     duePosition         // where the next transaction goes on, if taken is not empty
	finished int                 // how many of taken have nothing due any more
	broken   map[ledger.BalanceKey]error
}

// duePosition is the position of a roll among the due balances, in the order of balances_by_due. Several balances may
// have the same position.
type duePosition struct {
	due    time.Time
	tenant string
}

func (p duePosition) before(q duePosition) bool {
	return p.due.Before(q.due) || p.due.Equal(q.due) && p.tenant < q.tenant
}

// rollOnce advances at most chunk due balances to asOf, beginning at a position and without the balances that were
// set aside. It processes at most about rollEvents events.
func (l *Ledger) rollOnce(ctx context.Context, asOf time.Time, chunk int, from duePosition, aside []ledger.BalanceKey) (out rolled, err error) {
	tenants, meters, subjects := columnsOf(aside)
	args := []any{asOf, chunk, tenants, meters, subjects, toDB(from.due), from.tenant}
	if l.cluster == nil {
		return l.rollDue(ctx, asOf, l.sql["LockDueBalances"], args, nil)
	}
	groups, first, err := l.dueInGroups(ctx, args...)
	if err != nil {
		return out, err
	}
	for _, keys := range groups {
		of, meters, subjects := columnsOf(keys)
		out, err = l.rollDue(ctx, asOf, l.sql["LockDueOf"], []any{of, meters, subjects, asOf}, of)
		if err != nil || len(out.taken) > 0 {
			out.next = first // the other groups are not finished
			return out, err
		}
	}
	return out, nil
}

// rollDue locks due balances with the SQL statement `lock`, and advances them. On Citus, tenants has the tenants of
// the balances. Otherwise it is nil.
func (l *Ledger) rollDue(ctx context.Context, asOf time.Time, lock string, args []any, tenants []string) (out rolled, err error) {
	err = l.inTx(ctx, nil, func(ctx context.Context, t *tx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())
			}
		}()
		out.next = duePosition{}
		first := &pgx.Batch{}
		t.began = l.clock.Begin()
		first.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
		first.Queue(lock, args...).Query(scanBalances(t.batch.Books))
		first.Queue(l.sql["Clock"], slices.Compact(tenants)).QueryRow(t.scanClock)
		if err := send(ctx, t.conn, first); err != nil {
			return err
		}
		out.taken = slices.Collect(maps.Keys(t.batch.Books))
		for _, b := range t.batch.Books {
			if at := (duePosition{b.RollAt, b.Tenant}); out.next.before(at) {
				out.next = at
			}
		}
		if err := t.readMore(ctx, &plan{reads: readAll}); err != nil {
			return err
		}
		t.batch.Now = period.Later(t.batch.Now, asOf) // a clock may have been set back since the roll began
		out.finished, out.broken = t.batch.Roll(rollEvents)
		changes := t.batch.Changes()
		return t.commit(ctx, &pgx.Batch{}, &changes)
	})
	return out, err
}

// firstDue returns the key of the balance that the roll would lock first.
func (l *Ledger) firstDue(ctx context.Context, asOf time.Time, from duePosition, aside []ledger.BalanceKey) ([]ledger.BalanceKey, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	tenants, meters, subjects := columnsOf(aside)
	var k ledger.BalanceKey
	if err := l.readers.QueryRow(ctx, l.sql["FirstDue"], asOf, tenants, meters, subjects, toDB(from.due), from.tenant).Scan(&k.Tenant, &k.Meter, &k.Subject); err != nil {
		return nil, unavailable("find the balance that a roll cannot read", err)
	}
	return []ledger.BalanceKey{k}, nil
}

// RollStatus looks up a roll by its id.
func (l *Ledger) RollStatus(ctx context.Context, id string) (Roll, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var r Roll
	var finished *time.Time
	var abandoned bool
	err := l.readers.QueryRow(ctx, l.sql["RollByID"], id).Scan(&r.ID, &r.AsOf, &r.Status, &r.Total, &r.Processed, &r.SetAside, &r.Error,
		&r.StartedAt, &finished, &abandoned)
	if errors.Is(err, pgx.ErrNoRows) {
		return Roll{}, errcode.Errorf(errcode.NotFound, "roll_id", "roll %q does not exist", id)
	}
	if err != nil {
		return Roll{}, unavailable("read roll", err)
	}
	if abandoned {
		r.Status = RollAbandoned
	}
	r.AsOf, r.StartedAt, r.FinishedAt = r.AsOf.UTC(), r.StartedAt.UTC(), utcOrZero(finished)
	return r, nil
}

// utcOrZero returns the zero time for NULL.
func utcOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
