package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// rollChunk bounds the rows that one transaction of a roll locks. Debits of these tenants wait for one chunk at most, some tens of
	// milliseconds.
	rollChunk = 256
	// rollYield is the pause between chunks while live operations wait in the lanes.
	rollYield = 5 * time.Millisecond
)

// RollStatus is the state of a roll.
type RollStatus string

// The states of a roll. The process of an abandoned roll has ended; a new roll continues its work.
const (
	RollRunning   RollStatus = "running"
	RollDone      RollStatus = "done"
	RollFailed    RollStatus = "failed"
	RollAbandoned RollStatus = "abandoned"
)

// Roll is one run over the balances that have events due.
type Roll struct {
	ID         string
	AsOf       time.Time // the roll works off events due at or before this instant
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

// RunRoll makes a roll and returns when it is done. It calls progress after every chunk.
//
// Balances are right without rolls: every decision and every read first works off what is due. A roll saves idle balances a long
// catch-up and makes their closed periods visible in the tables. It can be stopped at any time.
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
				return ledger.Errorf(ledger.CodeInvalidArgument, "as_of", "must not lie in the future; it is %s now", now.UTC().Format(time.RFC3339))
			}
			if e := ledger.ValidateInstant("as_of", *asOf); e != nil {
				return e
			}
			roll.AsOf = ledger.Micros(*asOf)
		}
		if err := tx.QueryRow(ctx, l.sql["CountDue"], roll.AsOf).Scan(&roll.Total); err != nil {
			return err
		}
		return tx.QueryRow(ctx, l.sql["InsertRoll"], roll.ID, roll.AsOf, roll.Total).Scan(&roll.StartedAt)
	})
	if e, ok := errors.AsType[*ledger.Error](err); ok {
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

// yield pauses while live operations wait in the lanes.
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
	if _, err := l.readers.Exec(ctx, l.sql["UpdateRoll"], roll.ID, string(roll.Status), roll.Processed, roll.Error); err != nil {
		return unavailable("save roll", err)
	}
	return nil
}

// rollOnce advances one chunk of due balances to asOf and returns how many it took.
func (l *Ledger) rollOnce(ctx context.Context, asOf time.Time) (taken int, err error) {
	err = l.inTx(ctx, func(ctx context.Context, t *tx) error {
		out := &pgx.Batch{}
		out.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
		out.Queue(l.sql["LockDueBalances"], asOf, rollChunk).Query(scanBalances(t.batch.Books))
		out.Queue(l.sql["Clock"]).QueryRow(t.scanClock)
		if err := send(ctx, t.conn, out); err != nil {
			return err
		}
		taken = len(t.batch.Books)
		if err := t.readMore(ctx, &plan{all: true}); err != nil {
			return err
		}
		if err := t.batch.AdvanceTo(asOf); err != nil {
			return err
		}
		changes := t.batch.Changes()
		return t.commit(ctx, &changes)
	})
	return taken, err
}

// RollStatus looks up a roll by its id.
func (l *Ledger) RollStatus(ctx context.Context, id string) (Roll, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var r Roll
	var finished *time.Time
	var abandoned bool
	err := l.readers.QueryRow(ctx, l.sql["RollByID"], id).Scan(&r.ID, &r.AsOf, &r.Status, &r.Total, &r.Processed, &r.Error,
		&r.StartedAt, &finished, &abandoned)
	if errors.Is(err, pgx.ErrNoRows) {
		return Roll{}, ledger.Errorf(ledger.CodeNotFound, "roll_id", "roll %q does not exist", id)
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
