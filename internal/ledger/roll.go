package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// rollChunk bounds the row locks of one roll transaction: live debits of those tenants wait for at most one chunk,
	// some tens of milliseconds.
	rollChunk = 256
	// rollYield is the pause between chunks while live operations wait in the lanes.
	rollYield = 5 * time.Millisecond
)

// RollStatus says where a roll stands.
type RollStatus string

// The states of a roll. An abandoned roll lost its process; starting another one goes on where it stopped.
const (
	RollRunning   RollStatus = "running"
	RollDone      RollStatus = "done"
	RollFailed    RollStatus = "failed"
	RollAbandoned RollStatus = "abandoned"
)

// Roll is one run over the balances that have events due.
type Roll struct {
	ID         string
	AsOf       time.Time // events due at or before are worked off
	Status     RollStatus
	Total      int64 // balances due when it began
	Processed  int64 // balances worked off; may exceed Total when several events fall due
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
	if err != nil {
		return Roll{}, err
	}
	return roll, nil
}

// RunRoll works a roll off and returns when it is done. progress is called after every chunk.
//
// A roll is never needed for a balance to be right: every decision and every read works off what is due first. It spares
// idle balances a long catch-up and makes closed periods visible in the tables. Stopping it half-way loses nothing.
func (l *Ledger) RunRoll(ctx context.Context, asOf *time.Time, progress func(Roll)) (Roll, error) {
	roll, err := l.beginRoll(ctx, asOf)
	if err != nil {
		return Roll{}, err
	}
	progress(roll)
	err = l.runRoll(ctx, &roll, progress)
	return roll, err
}

func (l *Ledger) beginRoll(ctx context.Context, asOf *time.Time) (Roll, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	roll := Roll{ID: "roll-" + rand.Text(), Status: RollRunning}
	err := pgx.BeginFunc(ctx, l.readers, func(tx pgx.Tx) error {
		var now time.Time
		if err := tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
			return err
		}
		roll.AsOf = now.UTC()
		if asOf != nil {
			if asOf.After(now) {
				return errorf(CodeInvalidArgument, "as_of", "must not lie in the future; it is %s now", now.UTC().Format(time.RFC3339))
			}
			if e := validInstant("as_of", *asOf); e != nil {
				return e
			}
			roll.AsOf = micros(*asOf)
		}
		if err := tx.QueryRow(ctx, l.queries["CountDue"], roll.AsOf).Scan(&roll.Total); err != nil {
			return err
		}
		return tx.QueryRow(ctx, l.queries["InsertRoll"], roll.ID, roll.AsOf, roll.Total).Scan(&roll.StartedAt)
	})
	if e, ok := errors.AsType[*Error](err); ok {
		return Roll{}, e
	}
	if err != nil {
		return Roll{}, unavailable("begin roll", err)
	}
	return roll, nil
}

func (l *Ledger) runRoll(ctx context.Context, roll *Roll, progress func(Roll)) error {
	failures := 0
	for {
		n, err := l.rollOnce(ctx, roll.AsOf)
		if err != nil {
			failures++
			if failures > retriesMax || ctx.Err() != nil {
				roll.Status, roll.Error = RollFailed, err.Error()
				return errors.Join(fmt.Errorf("roll %s: %w", roll.ID, err), l.saveRoll(context.WithoutCancel(ctx), roll))
			}
			pause(ctx, failures)
			continue
		}
		failures = 0
		roll.Processed += int64(n)
		if n == 0 {
			roll.Status = RollDone
			roll.FinishedAt = l.estimate().UTC()
			progress(*roll)
			return l.saveRoll(context.WithoutCancel(ctx), roll)
		}
		if err := l.saveRoll(ctx, roll); err != nil {
			l.log.Warn("roll progress not saved", "roll_id", roll.ID, "error", err)
		}
		progress(*roll)
		l.yield(ctx)
	}
}

// yield lets live operations pass when there are any.
func (l *Ledger) yield(ctx context.Context) {
	waiting := 0
	for _, ln := range l.lanes {
		waiting += ln.Depth()
	}
	if waiting == 0 {
		return
	}
	timer := time.NewTimer(rollYield)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *Ledger) saveRoll(ctx context.Context, roll *Roll) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if _, err := l.readers.Exec(ctx, l.queries["UpdateRoll"], roll.ID, string(roll.Status), roll.Processed, roll.Error); err != nil {
		return unavailable("save roll", err)
	}
	return nil
}

// rollOnce advances one chunk of due balances to asOf and returns how many it took.
func (l *Ledger) rollOnce(ctx context.Context, asOf time.Time) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := l.writers.Acquire(ctx)
	if err != nil {
		return 0, unavailable("acquire writer connection", err)
	}
	defer conn.Release()
	tx := batchTx{ledger: l, conn: conn.Conn(), attempt: &attempt{force: true}}
	n, err := tx.rollDue(ctx, asOf)
	if err != nil {
		tx.rollback(ctx)
	}
	return n, err
}

func (tx *batchTx) rollDue(ctx context.Context, asOf time.Time) (int, error) {
	m := &tx.machine
	*m = machine{books: map[key]*book{}}
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(tx.ledger.queries["LockDueBalances"], asOf, rollChunk).Query(scanBalances(m.books))
	b.Queue(tx.ledger.queries["Clock"]).QueryRow(tx.scanClock)
	if err := sendBatch(ctx, tx.conn, b); err != nil {
		return 0, err
	}
	if len(m.books) > 0 {
		if err := tx.readMore(ctx); err != nil {
			return 0, err
		}
	}
	if err := tx.advanceTo(asOf); err != nil {
		return 0, err
	}
	return len(m.books), tx.commit(ctx)
}

// advanceTo advances the locked books to asOf, which is not in the future. A book that cannot be advanced would be found
// due again for ever: it fails the roll.
func (tx *batchTx) advanceTo(asOf time.Time) error {
	m := &tx.machine
	for _, b := range m.books {
		if _, err := b.advanceAt(asOf, later(m.now, b.updatedAt), &m.journal); err != nil {
			return fmt.Errorf("advance balance %v: %w", b.key, err)
		}
	}
	return nil
}

// RollStatus looks a roll up by id.
func (l *Ledger) RollStatus(ctx context.Context, id string) (Roll, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var r Roll
	var finished *time.Time
	var abandoned bool
	err := l.readers.QueryRow(ctx, l.queries["RollByID"], id).Scan(&r.ID, &r.AsOf, &r.Status, &r.Total, &r.Processed, &r.Error,
		&r.StartedAt, &finished, &abandoned)
	if errors.Is(err, pgx.ErrNoRows) {
		return Roll{}, errorf(CodeNotFound, "roll_id", "roll %q does not exist", id)
	}
	if err != nil {
		return Roll{}, unavailable("read roll", err)
	}
	if abandoned {
		r.Status = RollAbandoned
	}
	r.AsOf, r.StartedAt, r.FinishedAt = r.AsOf.UTC(), r.StartedAt.UTC(), orZero(finished)
	return r, nil
}
