package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/store/listener"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// defaultTimeout bounds a transaction. A request that fails must fail within five seconds. Half a second of that
	// time is for the work before and after the transaction.
	defaultTimeout = 4500 * time.Millisecond

	// slowAfter is the longest duration of a normal transaction. If a transaction takes longer, Config.Suspect is
	// called. Most transactions take some milliseconds.
	slowAfter = time.Second

	// attempts is the maximum number of runs of a transaction. A transaction runs again if it conflicts with another
	// one, or if its connection was dead. Of two conflicting transactions one succeeds. After an outage only few
	// connections of the pool are dead. So a fourth failure has another cause.
	attempts = 4

	// retryPause bounds the random pause between attempts. It is about as long as a conflicting transaction runs.
	retryPause = 20 * time.Millisecond

	// MaxAnnouncements bounds the announcements of one transaction. If there are more, it announces Everything
	// instead.
	MaxAnnouncements = 500
)

const (
	// KindKey is the kind of the announcements of package access.
	KindKey = "key"

	// KindTenant is the kind of the announcements about a tenant: changes of the tenant and of its overrides.
	KindTenant = "tenant"

	// Everything is the announcement of a transaction with more than MaxAnnouncements changes, or with changes that
	// cannot be named.
	Everything = "all"
)

// Config configures a Store. The zero value is valid.
type Config struct {
	// Target says whether the tables are distributed over a Citus cluster.
	Target namedsql.Target

	// Away, if not nil, returns the reason if PostgreSQL is known to be unreachable, and nil otherwise. While it
	// returns an error, no statement is sent.
	Away func() error

	// Suspect, if not nil, is called when PostgreSQL is slow or does not answer. It must not block.
	Suspect func()

	// Clock decides the time when PostgreSQL's clock and the instance's clock disagree. If it is nil, the store
	// creates a clock with the default settings.
	Clock *clock.Clock

	// Timeout bounds each transaction, unless Options.Timeout is set; 0 is 4.5 s.
	Timeout time.Duration

	// Rooms has the pools of rooms. All rooms that it lacks share the pool of the store.
	Rooms map[Room]*pgxpool.Pool

	// Caller, if not nil, returns the name of the caller for which a context works, or "" for the service itself. One
	// caller gets at most half of a room at a time.
	Caller func(context.Context) string
}

// Store runs transactions in PostgreSQL. It has no goroutines. It does not close the pools.
type Store struct {
	pool             *pgxpool.Pool
	queries          map[string]string
	cfg              Config
	rooms            [rooms]*room
	reading, writing *room         // the rooms of View and Send, and of Write
	callers          []string      // the callers of all work; empty: Config.Caller names one
	alone            chan struct{} // slot of the write with Options.Alone

	committed *func(announcements []string)
}

// New returns a store. It opens no connection. The pool should have at least 2 connections.
func New(pool *pgxpool.Pool, cfg Config) *Store {
	if cfg.Clock == nil {
		cfg.Clock = clock.New(clock.Config{})
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Away == nil {
		cfg.Away = func() error { return nil }
	}
	if cfg.Suspect == nil {
		cfg.Suspect = func() {}
	}
	if cfg.Caller == nil {
		cfg.Caller = func(context.Context) string { return "" }
	}
	s := &Store{
		pool: pool, queries: namedsql.Must(namedsql.Plain, sqlFiles), cfg: cfg, alone: make(chan struct{}, 1),
		committed: new(func([]string) {}),
	}
	for r := range s.rooms {
		s.rooms[r] = newRoom(pool, pool.Config().MaxConns)
	}
	// Writers that share a pool with readers use at most half of it, because requests wait for readers.
	s.rooms[Administration] = newRoom(pool, pool.Config().MaxConns/2)
	for r, own := range cfg.Rooms {
		s.rooms[r] = newRoom(own, own.Config().MaxConns)
	}
	s.rooms[Strangers].waiting = make(chan struct{}, strangersWaiting)
	s.reading, s.writing = s.rooms[Reading], s.rooms[Administration]
	return s
}

// In returns the same store, all of whose work is in one room. The callers of this work are named from the outside to
// the inside: each of them shares what the one before it may have. If none is named, Config.Caller names one.
func (s *Store) In(r Room, callers ...string) *Store {
	in := *s
	in.reading, in.writing, in.callers = s.rooms[r], s.rooms[r], callers
	return &in
}

// callersOf returns the callers for which ctx works.
func (s *Store) callersOf(ctx context.Context) []string {
	if len(s.callers) > 0 {
		return s.callers
	}
	if name := s.cfg.Caller(ctx); name != "" {
		return []string{name}
	}
	return nil
}

// Target returns the kind of database that the store uses.
func (s *Store) Target() namedsql.Target { return s.cfg.Target }

// Pool returns the pool of the store, for statements outside of Write and View.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Clock returns the clock that decides the time of changes.
func (s *Store) Clock() *clock.Clock { return s.cfg.Clock }

// Now returns the time of the store's clock. It does not query PostgreSQL.
func (s *Store) Now() time.Time { return s.cfg.Clock.Now() }

// Away returns the reason if PostgreSQL is known to be unreachable, and nil otherwise.
func (s *Store) Away() error { return s.cfg.Away() }

// Suspect reports that PostgreSQL did not answer. It does not block.
func (s *Store) Suspect() { s.cfg.Suspect() }

// OnCommit sets the function that is called after the commit of each write, with the announcements of the write. Call
// OnCommit before the first write.
func (s *Store) OnCommit(committed func(announcements []string)) { *s.committed = committed }

// Listener returns a listener for the announcements of all instances. It sets cfg.Pool and cfg.Statement.
func (s *Store) Listener(cfg listener.Config) *listener.Listener {
	cfg.Pool = s.pool
	cfg.Statement = s.queries["Listen"]
	return listener.New(cfg)
}

// Transaction is a running write.
type Transaction struct {
	pgx.Tx
	store         *Store
	announcements []string
	committing    bool // only the commit remains; if it fails, the changes may be stored nevertheless
}

// Announce records that an object was changed. The transaction sends this announcement with its commit.
func (tx *Transaction) Announce(kind, id string) {
	tx.announcements = append(tx.announcements, kind+":"+id)
}

// AnnounceEverything records that the transaction changes more objects than it can name.
func (tx *Transaction) AnnounceEverything() { tx.announcements = append(tx.announcements, Everything) }

// Announcements returns the announcements that were recorded so far.
func (tx *Transaction) Announcements() []string { return tx.announcements }

// Now returns the time with which a change is stamped: see Store.NowIn. Call it after the transaction has its locks.
func (tx *Transaction) Now(ctx context.Context) (time.Time, error) { return tx.store.NowIn(ctx, tx.Tx) }

// NowIn returns the time for a transaction: PostgreSQL's time. If the instance's clock disagrees and is earlier, it
// returns the instance's time.
func (s *Store) NowIn(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	began := s.cfg.Clock.Begin()
	var now time.Time
	if err := tx.QueryRow(ctx, s.queries["Clock"]).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return s.cfg.Clock.Agree(began, now), nil
}

// Options are the options of a write.
type Options struct {
	Timeout time.Duration // 0: Config.Timeout
	Alone   bool          // no other write of this store with Alone runs meanwhile
}

// Write runs the function `do` in one transaction and commits the transaction. It may run this function more than
// once. It returns only errors of type *errcode.Error: errors of the driver and other errors of the function are
// converted. If the function returns ErrRollback, nothing is committed and Write returns nil.
func (s *Store) Write(ctx context.Context, op string, do func(context.Context, *Transaction) error) error {
	return s.WriteWith(ctx, op, Options{}, do)
}

// WriteWith is like Write, with options.
func (s *Store) WriteWith(
	ctx context.Context, op string, o Options, do func(context.Context, *Transaction) error,
) error {
	if cause := s.cfg.Away(); cause != nil {
		return away(op, cause)
	}
	if o.Timeout <= 0 {
		o.Timeout = s.cfg.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var alone chan struct{}
	if o.Alone {
		alone = s.alone
	}
	leave, err := s.writing.enter(ctx, s.callersOf(ctx), alone)
	if err != nil {
		return translateEntry(op, err)
	}
	defer leave()
	defer time.AfterFunc(slowAfter, s.cfg.Suspect).Stop()
	var tx *Transaction
	err = retry(ctx, func(ctx context.Context) (again bool, err error) {
		tx, err = s.writeOnce(ctx, do)
		return isRetryable(err) || isConnectionLost(err) && !tx.committing, err
	})
	if errors.Is(err, ErrRollback) {
		return nil
	}
	if err != nil {
		return Translate(op, err)
	}
	if len(tx.announcements) > 0 {
		(*s.committed)(tx.announcements)
	}
	return nil
}

func (s *Store) writeOnce(ctx context.Context, do func(context.Context, *Transaction) error) (*Transaction, error) {
	tx := &Transaction{store: s}
	err := pgx.BeginTxFunc(ctx, s.writing.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(raw pgx.Tx) error {
		tx.Tx = raw
		if s.cfg.Target == namedsql.Citus { // one connection per node: foreign keys need it
			if _, err := raw.Exec(ctx, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		if len(tx.announcements) > MaxAnnouncements {
			tx.announcements = []string{Everything}
		}
		if len(tx.announcements) > 0 {
			if _, err := tx.Exec(ctx, s.queries["Announce"], tx.announcements); err != nil {
				return fmt.Errorf("announce: %w", err)
			}
		}
		tx.committing = true
		return nil
	})
	return tx, err
}

// View runs the function `do` in one read-only transaction, on one snapshot of the database. If the connection was
// dead, View runs the function `do` again on another connection. It returns the same errors as Write.
func (s *Store) View(ctx context.Context, op string, do func(context.Context, pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return s.reach(ctx, op, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.reading.pool, options, func(tx pgx.Tx) error { return do(ctx, tx) })
	})
}

// Send sends a batch of statements that only read, in one round trip. prepare returns the batch. If the connection
// was dead, Send calls prepare again and sends the new batch. It returns the same errors as Write.
func (s *Store) Send(ctx context.Context, op string, prepare func() *pgx.Batch) error {
	return s.reach(ctx, op, func(ctx context.Context) error {
		return s.reading.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			return conn.SendBatch(ctx, prepare()).Close()
		})
	})
}

// reach runs the function `do`, which reads from PostgreSQL, within Config.Timeout. It runs the function `do` again
// if the connection was dead.
func (s *Store) reach(ctx context.Context, op string, do func(context.Context) error) error {
	if cause := s.cfg.Away(); cause != nil {
		return away(op, cause)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	leave, err := s.reading.enter(ctx, s.callersOf(ctx), nil)
	if err != nil {
		return translateEntry(op, err)
	}
	defer leave()
	defer time.AfterFunc(slowAfter, s.cfg.Suspect).Stop()
	return Translate(op, retry(ctx, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		return isConnectionLost(err), err
	}))
}

// retry calls the function `do` until its result `again` is false, but not more than `attempts` times. It stops after
// a failed attempt if ctx ends.
func retry(ctx context.Context, do func(context.Context) (again bool, err error)) error {
	for attempt := 1; ; attempt++ {
		again, err := do(ctx)
		if !again || attempt == attempts || !backoff.Sleep(ctx, rand.N(retryPause)) {
			return err
		}
	}
}

//go:embed sql/*.sql
var sqlFiles embed.FS
