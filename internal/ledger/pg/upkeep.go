package pg

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// partitionsAhead is how many months after the current one get their partition in advance. The upkeep may fail for a quarter of a
	// year before rows go to the DEFAULT partition.
	partitionsAhead = 3
	upkeepInterval  = time.Hour
	upkeepTimeout   = 20 * time.Second
)

// upkeep makes the journal's partitions in advance, and checks whether rolls are made, at the start and every hour.
type upkeep struct {
	ledger *Ledger
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newUpkeep(l *Ledger) *upkeep { return &upkeep{ledger: l, cancel: func() {}} }

func (u *upkeep) start(ctx context.Context) error {
	if err := u.once(ctx); err != nil {
		return err
	}
	loop, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	u.done.Go(func() { u.run(loop) })
	return nil
}

func (u *upkeep) stop() {
	u.cancel()
	u.done.Wait()
}

func (u *upkeep) run(ctx context.Context) {
	ticker := time.NewTicker(upkeepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := u.once(ctx); err != nil && ctx.Err() == nil {
				u.ledger.log.Error("journal partitions were not made; the default partition takes what comes", "error", err)
			}
		}
	}
}

func (u *upkeep) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepTimeout)
	defer cancel()
	l := u.ledger
	if err := l.makePartitions(ctx, l.estimate()); err != nil {
		return err
	}
	var late int64
	if err := l.readers.QueryRow(ctx, l.sql["DefaultPartitionRows"]).Scan(&late); err != nil {
		return unavailable("count rows of the default partition", err)
	}
	l.metrics.lateEntries.Set(float64(late))
	if late > 0 {
		l.log.Error("entries lie in the default partition: see docs/operations.md, journal partitions", "rows", late)
	}
	var rolled int64
	if err := l.readers.QueryRow(ctx, l.sql["LastRoll"]).Scan(&rolled); err != nil {
		return unavailable("read when the last roll was", err)
	}
	l.metrics.rolledUntil.Set(float64(rolled))
	return nil
}

// makePartitions makes the partitions from the oldest month in which keys are looked up until partitionsAhead months after now. Several
// instances may run it at once.
func (l *Ledger) makePartitions(ctx context.Context, now time.Time) error {
	err := pgx.BeginFunc(ctx, l.writers, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, l.sql["PartitionLock"]).Scan(&mine); err != nil {
			return err
		}
		if !mine {
			return nil
		}
		rows, err := tx.Query(ctx, l.sql["PartitionNames"])
		if err != nil {
			return err
		}
		have, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, month := range partitionMonths(now) {
			if slices.Contains(have, partitionName(month)) {
				continue
			}
			if _, err := tx.Exec(ctx, partitionDDL(month)); err != nil {
				return fmt.Errorf("make partition %s: %w", partitionName(month), err)
			}
			l.log.Info("journal partition made", "partition", partitionName(month))
		}
		return nil
	})
	if err != nil {
		return unavailable("make journal partitions", err)
	}
	return nil
}

func partitionMonths(now time.Time) []time.Time {
	var out []time.Time
	oldest := monthsOfKeys(now)[0].Time
	last := time.Date(now.UTC().Year(), now.UTC().Month()+partitionsAhead, 1, 0, 0, 0, 0, time.UTC)
	for m := oldest; !m.After(last); m = m.AddDate(0, 1, 0) {
		out = append(out, m)
	}
	return out
}

func partitionName(month time.Time) string { return "entries_" + month.Format("2006_01") }

// partitionDDL makes a table and then attaches it. Attaching blocks other DDL on entries, but no reads and no writes.
func partitionDDL(month time.Time) string {
	name := partitionName(month)
	return fmt.Sprintf(`CREATE TABLE %s (LIKE entries INCLUDING ALL);
		ALTER TABLE entries ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s');`,
		name, name, month.Format(time.DateOnly), month.AddDate(0, 1, 0).Format(time.DateOnly))
}
