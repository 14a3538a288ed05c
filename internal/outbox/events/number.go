package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// numberMax bounds the events that get positions in one transaction.
const numberMax = 500

// assumeVisibleAfter is the age from which positions count as visible, even missing positions, because their months
// may have been dropped.
const assumeVisibleAfter = 24 * time.Hour

// listing is the row of the table event_listing. It says up to which position the list is complete.
type listing struct {
	to                 int64 // a reader that has read up to this position has missed no event
	givenFrom, givenTo int64 // the first and the last of the positions that were assigned most recently
}

func (l *listing) read(row pgx.Row) error { return row.Scan(&l.to, &l.givenFrom, &l.givenTo) }

// Number assigns positions to new committed events, the oldest first. It calls the function `each` with these events in
// the same transaction. A second transaction makes the events visible in the list. Number returns the number of events.
// The number is 0 if there are no new events, or if another instance assigns positions. It is also 0 if some of the
// most recent positions are not visible yet.
func Number(ctx context.Context, pool *pgxpool.Pool, each func(context.Context, pgx.Tx, []Listed) error) (n int, err error) {
	inTx := func(do func(pgx.Tx) error) error {
		if err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, do); err != nil {
			return fmt.Errorf("list new events: %w", err)
		}
		return nil
	}
	err = inTx(func(tx pgx.Tx) error {
		var found []unlisted
		free, err := advanceListing(ctx, tx, func(batch *pgx.Batch) {
			batch.Queue(queries["Unlisted"], numberMax).Query(func(rows pgx.Rows) (err error) {
				found, err = pgx.CollectRows(rows, scanUnlisted)
				return err
			})
		})
		if err != nil || !free || len(found) == 0 {
			return err
		}
		n = len(found)
		return give(ctx, tx, found, each)
	})
	if err != nil || n == 0 {
		return 0, err
	}
	// A second transaction is necessary: the new positions are visible on all nodes only after the first transaction
	// has ended.
	return n, inTx(func(tx pgx.Tx) error {
		_, err := advanceListing(ctx, tx, func(*pgx.Batch) {})
		return err
	})
}

// advanceListing locks the list, and moves its end to the positions that were assigned most recently. It returns
// false if another instance has the lock, or if some of these positions are not visible yet, because a node failed
// during COMMIT. The function `with` can add statements to the same round trip.
func advanceListing(ctx context.Context, tx pgx.Tx, with func(*pgx.Batch)) (free bool, err error) {
	var alone bool
	var l listing
	batch := &pgx.Batch{}
	batch.Queue(queries["ListingLock"]).QueryRow(func(row pgx.Row) error { return row.Scan(&alone) })
	batch.Queue(queries["Listing"]).QueryRow(l.read)
	with(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil || !alone || l.to == l.givenTo {
		return alone, err
	}
	var visible int64
	if err := tx.QueryRow(ctx, queries["CountGiven"], l.givenFrom, l.givenTo).Scan(&visible); err != nil {
		return false, err
	}
	if visible <= l.givenTo-l.givenFrom && time.Since(time.UnixMicro(l.givenTo)) < assumeVisibleAfter {
		return false, nil
	}
	_, err = tx.Exec(ctx, queries["SetListing"], l.givenTo, l.givenFrom, l.givenTo)
	return true, err
}

// give assigns positions to the events in found and calls the function `each` with these events.
func give(ctx context.Context, tx pgx.Tx, found []unlisted, each func(context.Context, pgx.Tx, []Listed) error) error {
	var newest, clock int64
	if err := tx.QueryRow(ctx, queries["NewestPosition"]).Scan(&newest, &clock); err != nil {
		return err
	}
	listed := make([]Listed, len(found))
	from := max(newest, clock-1) + 1
	for i := range found {
		found[i].Position = from + int64(i)
		listed[i] = found[i].Listed
	}
	if _, err := tx.Exec(ctx, queries["GivePositions"],
		column(found, func(u *unlisted) string { return u.Tenant }), column(found, func(u *unlisted) string { return u.key }),
		column(found, func(u *unlisted) time.Time { return u.month }), column(found, func(u *unlisted) int64 { return u.Position })); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, queries["SetListing"], newest, from, from+int64(len(found))-1); err != nil {
		return err
	}
	return each(ctx, tx, listed)
}

// unlisted is an event without a position, and the columns that identify its row.
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

// Waiting returns the number of events without a position, counting at most waitingMax, and the age of the oldest of
// these events.
func Waiting(ctx context.Context, pool *pgxpool.Pool) (count int, oldest time.Duration, err error) {
	var seconds float64
	if err := pool.QueryRow(ctx, queries["CountUnlisted"], waitingMax).Scan(&count, &seconds); err != nil {
		return 0, 0, fmt.Errorf("count new events: %w", err)
	}
	return count, time.Duration(seconds * float64(time.Second)), nil
}

// waitingMax bounds the count of events without a position. A higher count would not change what an operator does.
const waitingMax = 100_000
