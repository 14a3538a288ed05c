package testclock

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// Least is the shortest step of the time. A user can wait for a shorter time.
	Least = time.Second

	// Most is the largest value of ahead, ten years: about the longest trial.
	Most = 3653 * 24 * time.Hour
)

const (
	makeTable = `CREATE TABLE IF NOT EXISTS test_clock (
		only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
		ahead_us bigint  NOT NULL,                       -- how far the ledger's time is ahead; below 0: behind
		last_key text    NOT NULL DEFAULT ''             -- the Idempotency-Key of the newest step
	)`
	hasTable = `SELECT to_regclass('test_clock') IS NOT NULL`
	makeRow  = `INSERT INTO test_clock (ahead_us) VALUES ($1) ON CONFLICT DO NOTHING`
	readRow  = `SELECT ahead_us FROM test_clock`
	lockRow  = `SELECT ahead_us, last_key FROM test_clock FOR UPDATE`
	writeRow = `UPDATE test_clock SET ahead_us = $1, last_key = $2`
)

// Install creates the table test_clock in the database of `quotasvc dev`, unless the table exists. In a new table,
// the ledger's time begins in the past: behind is its distance from the real clocks. So demo data of the past can be
// written.
func Install(ctx context.Context, databaseURL string, behind time.Duration) error {
	return with(ctx, databaseURL, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, makeTable); err != nil {
			return fmt.Errorf("make the table of the test clock: %w", err)
		}
		if _, err := conn.Exec(ctx, makeRow, -behind.Microseconds()); err != nil {
			return fmt.Errorf("fill the table of the test clock: %w", err)
		}
		return nil
	})
}

// Ahead returns the time by which the ledger's time in a database is ahead of the real clocks. It is below 0 if the
// ledger's time is behind them. It returns 0 if the database has no table test_clock, that is, if `quotasvc dev` did
// not create it.
func Ahead(ctx context.Context, databaseURL string) (time.Duration, error) {
	var ahead int64
	err := with(ctx, databaseURL, func(conn *pgx.Conn) error {
		var moved bool
		if err := conn.QueryRow(ctx, hasTable).Scan(&moved); err != nil || !moved {
			return err
		}
		return conn.QueryRow(ctx, readRow).Scan(&ahead)
	})
	if err != nil {
		return 0, fmt.Errorf("read the test clock: %w", err)
	}
	return time.Duration(ahead) * time.Microsecond, nil
}

// with runs the function `do` with a new connection to the database.
func with(ctx context.Context, databaseURL string, do func(*pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // all data is already written
	return do(conn)
}

// Clock moves the ledger's time of one instance.
type Clock struct {
	db     *pgstore.Store
	ledger *pg.Ledger
	agreed *clock.Clock
	turn   chan struct{} // capacity 1: one request at a time moves the time
}

// New returns the test clock of an instance. Install must have created the table in its database. agreed is the clock
// of db and ledger.
func New(db *pgstore.Store, ledger *pg.Ledger, agreed *clock.Clock) *Clock {
	return &Clock{db: db, ledger: ledger, agreed: agreed, turn: make(chan struct{}, 1)}
}

// State is the ledger's time, and the time by which it is ahead of the real clocks.
type State struct {
	Now      time.Time
	Ahead    time.Duration
	Replayed bool // whether an earlier request with the same key made the step
}

// State returns the ledger's time without a query to PostgreSQL.
func (c *Clock) State() State { return State{Now: c.agreed.Now(), Ahead: c.agreed.Ahead()} }

// step is a step of the time in the JSON form of the audit log.
type step struct {
	Advance string `json:"advance"`
	Ahead   string `json:"ahead"`
}

// Advance moves the time forward. If key is the key of the previous step, it changes nothing. A call without a key
// always moves the time. A step that begins in the past leaves no line in the audit log: only the demo makes such
// steps, on its way to the present. If the step is out of bounds, the error is a *body.Error. All other errors are those of
// MakeMonths and of pgstore.Store.Write, or of ctx.
func (c *Clock) Advance(ctx context.Context, by time.Duration, key string) (State, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return State{}, ctx.Err()
	}
	by = by.Truncate(time.Microsecond)
	if by < Least {
		return State{}, body.Refuse("advance", "must be at least %s", Least)
	}
	if ahead := c.agreed.Ahead(); by > Most-ahead {
		return State{}, body.Refuse("advance", "must not move the clock more than 87672h (3653d) ahead in all; it is %s ahead", ahead)
	}
	// Create the partitions of the months into which the ledger will write entries.
	if err := c.ledger.MakeMonths(ctx, c.agreed.Now().Add(by)); err != nil {
		return State{}, err
	}
	var ahead time.Duration
	replayed := false
	err := c.db.Write(ctx, "move the test clock", func(ctx context.Context, tx *pgstore.Transaction) error {
		var us int64
		var last string
		if err := tx.QueryRow(ctx, lockRow).Scan(&us, &last); err != nil {
			return fmt.Errorf("read the test clock: %w", err)
		}
		before := time.Duration(us) * time.Microsecond
		ahead, replayed = before+by, key != "" && key == last
		if replayed {
			ahead = before
			return nil
		}
		if _, err := tx.Exec(ctx, writeRow, ahead.Microseconds(), key); err != nil {
			return fmt.Errorf("store the test clock: %w", err)
		}
		if before < 0 {
			return nil // the demo's own steps would hide what people changed
		}
		return auditlog.Record(ctx, tx.Tx, []auditlog.Line{{
			Actor: auditlog.From(ctx), Action: "clock.advance", Object: auditlog.Object{Kind: "clock", ID: "test"}, After: step{Advance: by.String(), Ahead: ahead.String()},
		}})
	})
	if err != nil {
		return State{}, err
	}
	if more := ahead - c.agreed.Ahead(); more > 0 { // more includes steps of earlier requests whose outcome was unknown
		c.agreed.Advance(more)
	}
	state := c.State()
	state.Replayed = replayed
	return state, nil
}
