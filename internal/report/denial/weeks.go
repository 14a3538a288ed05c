package denial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	week = 7 * 24 * time.Hour

	// weeksAhead is the number of weeks after the current week whose partitions are created in advance. So the
	// process that creates partitions can be down for two months.
	weeksAhead = 9

	// lockWait bounds the wait for a lock on the table, in ms. During the wait, only flushes and lists of denials are
	// blocked.
	lockWait = "SET LOCAL lock_timeout = 500"
)

// monday is an instant at which a week begins.
var monday = time.Date(1970, time.January, 5, 0, 0, 0, 0, time.UTC)

// weekOf returns the start of the week that contains t. t must be after 1970-01-05.
func weekOf(t time.Time) time.Time { return monday.Add(t.Sub(monday).Truncate(week)) }

// weekly is a table with a partition for each week.
type weekly string

const (
	countsTable  weekly = "denial_counts"
	shadowsTable weekly = "shadow_counts"
)

func (t weekly) partitionName(start time.Time) string { return string(t) + start.Format("_2006_01_02") }

// partition is one partition of a weekly table.
type partition struct {
	name     string
	from, to time.Time
}

// Maintain creates the partitions of the coming weeks. It drops the partitions whose week ended at least the time
// KeptFor ago. If it cannot do one of these, it goes on with the others. The connection must belong to the role that
// owns the tables, and must not be in a transaction.
func Maintain(ctx context.Context, conn *pgx.Conn, now time.Time, log *slog.Logger) error {
	start := weekOf(now)
	var starts []time.Time
	for i := -1; i <= weeksAhead; i++ {
		starts = append(starts, start.Add(time.Duration(i)*week))
	}
	var failed error
	for _, table := range []weekly{countsTable, shadowsTable} {
		failed = errors.Join(failed, table.makeWeeks(ctx, conn, starts, log), table.dropOld(ctx, conn, now, log))
	}
	return failed
}

// weeksLeft calls ahead for both tables and returns the smaller result.
func weeksLeft(ctx context.Context, conn *pgx.Conn, now time.Time) (int, error) {
	least := weeksAhead
	for _, table := range []weekly{countsTable, shadowsTable} {
		all, err := table.partitions(ctx, conn)
		if err != nil {
			return 0, err
		}
		least = min(least, ahead(all, now))
	}
	return least, nil
}

func (t weekly) partitions(ctx context.Context, conn *pgx.Conn) ([]partition, error) {
	rows, _ := conn.Query(ctx, queries["Partitions"], string(t))
	var out []partition
	var p partition
	_, err := pgx.ForEachRow(rows, []any{&p.name, &p.from, &p.to}, func() error {
		out = append(out, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the partitions of denials: %w", err)
	}
	return out, nil
}

// ahead returns the number of consecutive weeks after the week of now that have a partition. It returns -1 if the
// week of now has no partition.
func ahead(all []partition, now time.Time) int {
	n := -1
	for covered(all, weekOf(now).Add(time.Duration(n+1)*week)) {
		n++
	}
	return n
}

func covered(all []partition, at time.Time) bool {
	return slices.ContainsFunc(all, func(p partition) bool { return !at.Before(p.from) && at.Before(p.to) })
}

// makeWeeks creates the partitions of the weeks that begin at the given times, unless they exist.
func (t weekly) makeWeeks(ctx context.Context, conn *pgx.Conn, starts []time.Time, log *slog.Logger) error {
	for _, start := range starts {
		name, made := t.partitionName(start), false
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, queries["PartitionLock"]); err != nil {
				return err
			}
			all, err := t.partitions(ctx, conn)
			if err != nil || covered(all, start) {
				return err
			}
			made = true
			// Each partition is created as a table and then attached. CREATE TABLE ... PARTITION OF would block
			// flushes and lists. Citus also runs each statement on its nodes.
			for _, statement := range []string{
				lockWait,
				fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING ALL)", name, t),
				fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')",
					t, name, start.Format(time.RFC3339), start.Add(week).Format(time.RFC3339)),
			} {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("make the partition %s: %w", name, err)
		}
		if made {
			log.Info("partition of denials made", "partition", name)
		}
	}
	return nil
}

// dropOld drops the partitions of weeks that ended KeptFor ago or earlier.
func (t weekly) dropOld(ctx context.Context, conn *pgx.Conn, now time.Time, log *slog.Logger) error {
	all, err := t.partitions(ctx, conn)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.to.Add(KeptFor).After(now) {
			continue
		}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockWait); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+pgx.Identifier{p.name}.Sanitize())
			return err
		})
		if err != nil {
			return fmt.Errorf("drop the partition %s: %w", p.name, err)
		}
		log.Info("partition of denials dropped", "partition", p.name)
	}
	return nil
}

// lacksPartition reports whether err means that rows could not be written because a week has no partition.
func lacksPartition(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "23514" && pgErr.ConstraintName == ""
}
