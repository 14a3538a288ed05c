package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// remindMax bounds the reminders of one transaction.
	remindMax = 500

	// forgetMax bounds the marks that one transaction deletes. marksKept is how long marks are kept after the end of
	// their period. If a clock is behind, entries of this period may still be written.
	forgetMax = 5000
	marksKept = 7 * 24 * time.Hour
)

// Remind emits GrantExpiring for the grants that end within the time Ahead after now. It returns the number of
// reminders that it has handled, at most remindMax, and whether there may be more.
func Remind(ctx context.Context, pool *pgxpool.Pool, now time.Time) (done int, more bool, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		due, err := reminders(ctx, tx, "DueReminders", now, remindMax)
		if err != nil || len(due) == 0 {
			return err
		}
		more = len(due) == remindMax
		if due, err = reminders(ctx, tx, "TakeReminders", append(reminderColumns(due), now)...); err != nil || len(due) == 0 {
			return err
		}
		rows, _ := tx.Query(ctx, queries["RemindedGrants"], append(reminderColumns(due), now)...)
		reminded, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) {
			var g Grant
			var left int64
			var expires time.Time
			e := Event{Type: GrantExpiring, At: now}
			err := row.Scan(&e.Tenant, &e.Meter, &e.Subject, &g.Grant, &g.Source, &g.Amount, &expires, &left)
			expires = expires.UTC()
			g.ExpiresAt, g.Remaining = &expires, &left
			e.Data = g
			return e, err
		})
		if err != nil {
			return err
		}
		done = len(due)
		return Record(ctx, tx, slices.DeleteFunc(reminded, func(e Event) bool { return *e.Data.(Grant).Remaining == 0 })) // no units left
	})
	if err != nil {
		return 0, false, fmt.Errorf("announce ends of grants: %w", err)
	}
	return done, more, nil
}

func reminders(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]Reminder, error) {
	rows, _ := tx.Query(ctx, queries[statement], args...)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Reminder, err error) {
		err = row.Scan(&r.Tenant, &r.Meter, &r.Subject, &r.Grant)
		return r, err
	})
}

func reminderColumns(r []Reminder) []any {
	return []any{
		column(r, func(r *Reminder) string { return r.Tenant }), column(r, func(r *Reminder) string { return r.Meter }),
		column(r, func(r *Reminder) string { return r.Subject }), column(r, func(r *Reminder) string { return r.Grant }),
	}
}

// Forget removes marks of periods that ended more than marksKept before now. It reports whether there may be more
// marks.
func Forget(ctx context.Context, pool *pgxpool.Pool, now time.Time) (more bool, err error) {
	tag, err := pool.Exec(ctx, queries["OldMarks"], now.Add(-marksKept), forgetMax)
	if err != nil {
		return false, fmt.Errorf("remove old marks of events: %w", err)
	}
	return tag.RowsAffected() == forgetMax, nil
}
