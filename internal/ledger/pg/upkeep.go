package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

const (
	upkeepInterval = time.Hour
	upkeepTimeout  = 20 * time.Second
	// makeTimeout bounds how long operations wait for the partition of their month.
	makeTimeout = 2 * time.Second
	// aheadEnough is a number of coming months. While so many have a partition, a failure to create further partitions
	// is not logged as a warning. `quotasvc migrate partitions` creates partitions with a role that has the right.
	aheadEnough = 3
)

// upkeep creates the journal's partitions in advance and reads the newest finished roll for the metrics, at the start
// and every hour. Every few seconds it compares the clocks and reads how many instances there are. No request waits
// for it.
type upkeep struct {
	ledger *Ledger
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newUpkeep(l *Ledger) *upkeep { return &upkeep{ledger: l, cancel: func() {}} }

func (u *upkeep) start(ctx context.Context) {
	u.once(ctx)
	loop, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	u.done.Go(func() { u.run(loop) })
}

func (u *upkeep) stop() {
	u.cancel()
	u.done.Wait()
}

func (u *upkeep) run(ctx context.Context) {
	ticker, clocks := time.NewTicker(upkeepInterval), time.NewTicker(clockInterval)
	defer ticker.Stop()
	defer clocks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			u.once(ctx)
		case <-clocks.C:
			_ = u.ledger.Ping(ctx) // if PostgreSQL does not answer, there is nothing to compare
			u.ledger.refreshGroups(ctx)
			u.ledger.shareLanes()
		}
	}
}

func (u *upkeep) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, upkeepTimeout)
	defer cancel()
	l := u.ledger
	if err := l.makePartitions(ctx, l.Now()); err != nil {
		l.log.Warn("the journal's partitions are not known", "error", err)
	}
	var rolled, aside int64
	if err := l.readers.QueryRow(ctx, l.sql["LastRoll"]).Scan(&rolled, &aside); err != nil {
		l.log.Warn("the last roll is not known", "error", err)
		return
	}
	l.metrics.rolledUntil.Set(float64(rolled))
	l.metrics.setAside.Set(float64(aside))
}

// makePartitions creates the missing partitions of the months around the instant `now`. It fails if it cannot list the
// existing partitions. It only logs that it cannot create partitions, because those of later months are not needed yet.
func (l *Ledger) makePartitions(ctx context.Context, now time.Time) error {
	conn, err := l.writers.Acquire(ctx)
	if err != nil {
		return unavailable("acquire a connection for partitions", err)
	}
	defer conn.Release()
	month := journal.MonthOf(now)
	failed := l.journal.MakeAhead(ctx, conn.Conn(), month)
	partitions, err := l.journal.Partitions(ctx, conn.Conn())
	if err != nil {
		return unavailable("list partitions", err)
	}
	ahead := journal.Ahead(partitions, month)
	l.metrics.monthsAhead.Set(float64(ahead))
	if failed != nil {
		level := slog.LevelInfo
		if ahead < aheadEnough {
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "journal partitions were not made: run `quotasvc migrate partitions` as the role that owns the tables",
			"months_ahead", ahead, "error", failed)
	}
	return nil
}

// MakeMonths creates the missing partitions of the months around a later instant, before a test clock is set to that
// instant.
func (l *Ledger) MakeMonths(ctx context.Context, at time.Time) error {
	conn, err := l.writers.Acquire(ctx)
	if err != nil {
		return unavailable("acquire a connection for partitions", err)
	}
	defer conn.Release()
	if err := l.journal.MakeAhead(ctx, conn.Conn(), journal.MonthOf(at)); err != nil {
		return unavailable("make the journal's partitions", err)
	}
	return nil
}

// noPartitionError reports that entries could not be written: the journal has no partition for their month, and this
// instance could not create it.
type noPartitionError struct {
	month journal.Month
	cause error
}

func (e *noPartitionError) Error() string {
	return fmt.Sprintf("the journal has no partition for %s: run `quotasvc migrate partitions` as the role that owns the tables: %v", e.month, e.cause)
}

func (e *noPartitionError) Unwrap() error { return e.cause }

// createPartition creates the partition whose absence caused err, and returns err, so that the attempt is retried.
// conn belongs to a pool, and must not be in a transaction. On Citus the coordinator creates partitions, on all
// nodes.
func (l *Ledger) createPartition(ctx context.Context, conn *pgxpool.Conn, of *pgxpool.Pool, err error) error {
	month, missing := journal.MissingMonth(err)
	if !missing {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if of != l.writers {
		coordinators, failed := l.writers.Acquire(ctx)
		if failed != nil {
			return &noPartitionError{month: month, cause: errors.Join(err, failed)}
		}
		defer coordinators.Release()
		conn = coordinators
	}
	if failed := l.journal.Make(ctx, conn.Conn(), month); failed != nil {
		return &noPartitionError{month: month, cause: errors.Join(err, failed)}
	}
	return err
}
