package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// numberMax bounds the events that one transaction lists.
const numberMax = 500

// Number gives positions to events that were committed meanwhile, the oldest first, and calls each with them in the same transaction. It returns how
// many there were; 0: none, or another instance is at it.
func Number(ctx context.Context, pool *pgxpool.Pool, each func(context.Context, pgx.Tx, []Listed) error) (n int, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var alone bool
		var found []unlisted
		batch := &pgx.Batch{}
		batch.Queue(queries["ListingLock"]).QueryRow(func(row pgx.Row) error { return row.Scan(&alone) })
		batch.Queue(queries["Unlisted"], numberMax).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, scanUnlisted)
			return err
		})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		if n = len(found); !alone || n == 0 {
			n = 0
			return nil
		}
		var newest, clock int64
		if err := tx.QueryRow(ctx, queries["NewestPosition"]).Scan(&newest, &clock); err != nil {
			return err
		}
		listed := make([]Listed, n)
		next := max(newest, clock-1)
		for i := range found {
			next++
			found[i].Position = next
			listed[i] = found[i].Listed
		}
		if _, err := tx.Exec(ctx, queries["GivePositions"],
			column(found, func(u *unlisted) string { return u.Tenant }), column(found, func(u *unlisted) string { return u.key }),
			column(found, func(u *unlisted) time.Time { return u.month }), column(found, func(u *unlisted) int64 { return u.Position })); err != nil {
			return err
		}
		return each(ctx, tx, listed)
	})
	if err != nil {
		return 0, fmt.Errorf("list new events: %w", err)
	}
	return n, nil
}

// unlisted is an event without a position.
type unlisted struct {
	Listed

	key   string
	month time.Time
}

func scanUnlisted(row pgx.CollectableRow) (unlisted, error) {
	var u unlisted
	var data []byte
	err := row.Scan(&u.Tenant, &u.key, &u.month, &u.Type, &u.At, &u.Meter, &u.Subject, &data)
	u.At, u.Data = u.At.UTC(), data
	return u, err
}

// Waiting is how many events are in no list yet, up to waitingMax, and how long the oldest has waited.
func Waiting(ctx context.Context, pool *pgxpool.Pool) (count int, oldest time.Duration, err error) {
	var seconds float64
	if err := pool.QueryRow(ctx, queries["CountUnlisted"], waitingMax).Scan(&count, &seconds); err != nil {
		return 0, 0, fmt.Errorf("count new events: %w", err)
	}
	return count, time.Duration(seconds * float64(time.Second)), nil
}

// waitingMax bounds the count of waiting events: beyond it, more is not worse.
const waitingMax = 100_000
