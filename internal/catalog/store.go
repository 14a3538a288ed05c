package catalog

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// defaultTimeout: no caller waits longer than five seconds for a refusal; half a second is for what happens around the transaction.
	defaultTimeout = 4500 * time.Millisecond

	// slowAfter is how long a transaction may take until PostgreSQL is probed: they take some milliseconds.
	slowAfter = time.Second

	// applyTimeout bounds the transaction of a file. The ledger expects every change to commit less than a minute after its
	// clock was read.
	applyTimeout = 30 * time.Second

	// attempts bounds the runs of a transaction that conflicts with another one or whose connection was dead. Of two
	// conflicting writers one succeeds, and few connections are dead once PostgreSQL is back, so a fourth failure has
	// another cause.
	attempts = 4

	// retryPause bounds the random pause between attempts: about the duration of the other transaction.
	retryPause = 20 * time.Millisecond

	// maxAnnouncements bounds the changes that one transaction announces by name. More are announced as "all".
	maxAnnouncements = 500
)

// The kinds of objects in announcements and diffs.
const (
	kindMeter  = "meter"
	kindPlan   = "plan"
	kindLimit  = "limit"
	kindTenant = "tenant"
	kindBlock  = "block"
	kindReset  = "reset" // of a bucket; nothing is stored

	// KindKey is the kind of announcements of package access.
	KindKey = "key"

	everything = "all"
)

// StoreConfig configures a Store. The zero value is valid.
type StoreConfig struct {
	// Target says whether the tables are distributed over a Citus cluster.
	Target namedsql.Target
	// CheckLimit, if not nil, refuses limits that cannot be enforced. Its error is a *body.Fault, or several joined by
	// errors.Join. It gets limits with defaults.
	CheckLimit func(*Limit) error

	// CheckRules, if not nil, refuses limits that cannot be enforced together. It gets the whole catalogue as it would be
	// after a change, and one that was valid before: what both have needs no check. Each limit has passed CheckLimit.
	CheckRules func(after, before *Snapshot) []RuleFault

	// Away, if not nil, returns why PostgreSQL cannot be reached, and nil if it may be. Nothing is tried while it returns an error.
	Away func() error

	// Suspect, if not nil, is called when PostgreSQL does not answer. It does not wait.
	Suspect func()

	// Clock says what time it is when PostgreSQL's clock and the instance's disagree. nil: one with the defaults.
	Clock *clock.Clock

	// Timeout bounds a transaction that reads, or writes one object; 0 is 4.5 s.
	Timeout time.Duration
}

// Store is the catalogue in PostgreSQL. It has no goroutines. It does not close the pool.
type Store struct {
	pool    *pgxpool.Pool
	queries map[string]string
	cfg     StoreConfig

	// Writers wait for these slots before they take a connection, so that half of the pool stays free for readers, on which
	// requests wait.
	serial  chan struct{} // slot of the writer with the catalogue's lock
	writers chan struct{} // slots of all writers

	// latest is the newest snapshot that a Catalog over this store has read; empty without one.
	latest atomic.Pointer[Snapshot]

	// committed, if not nil, is called with the announcements of a transaction of this store after its commit.
	committed func(changes []string)
}

// NewStore returns a store. It does not use the pool, which should have 2 connections or more.
func NewStore(pool *pgxpool.Pool, cfg StoreConfig) (*Store, error) {
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
	queries, err := namedsql.LoadFor(cfg.Target, sqlFiles)
	if err != nil {
		return nil, err
	}
	s := &Store{
		pool: pool, queries: queries, cfg: cfg,
		serial: make(chan struct{}, 1), writers: make(chan struct{}, max(1, pool.Config().MaxConns/2)),
	}
	s.latest.Store(&Snapshot{})
	return s, nil
}

// Target returns the kind of database that the store is for.
func (s *Store) Target() namedsql.Target { return s.cfg.Target }

// txn is a running transaction.
type txn struct {
	pgx.Tx
	store      *Store
	changes    []string        // to announce
	lines      []auditlog.Line // for the audit log
	events     []events.Event
	committing bool // only the commit remains: a failure may be a success
}

// changed notes a change of an object, to be announced and recorded in the audit log. before is nil for a new object, after for a deleted one.
func (tx *txn) changed(ctx context.Context, kind, id string, c change) {
	tx.changes = append(tx.changes, kind+":"+id)
	tx.lines = append(tx.lines, auditlog.Line{
		Actor: auditlog.From(ctx), Action: kind + "." + c.action, Object: auditlog.Object{Kind: kind, ID: id, Tenant: c.tenant},
		Before: c.before, After: c.after, Reason: c.reason,
	})
}

// change is what was done to an object.
type change struct {
	action        string // put, patch, delete or reset
	tenant        string // the tenant that it is about; empty: none
	before, after any
	reason        string
}

// now returns the instant with which a change is stamped: PostgreSQL's clock, or the instance's if the two disagree and that is the earlier.
// Call it after the locks.
func (tx *txn) now(ctx context.Context) (time.Time, error) {
	began := tx.store.cfg.Clock.Begin()
	var now time.Time
	if err := tx.queryRow(ctx, "Clock").Scan(&now); err != nil {
		return time.Time{}, wrap("read the clock", err)
	}
	return tx.store.cfg.Clock.Agree(began, now), nil
}

func (tx *txn) query(ctx context.Context, name string, args ...any) (pgx.Rows, error) {
	return tx.Query(ctx, tx.store.queries[name], args...)
}

func (tx *txn) queryRow(ctx context.Context, name string, args ...any) pgx.Row {
	return tx.QueryRow(ctx, tx.store.queries[name], args...)
}

func (tx *txn) exec(ctx context.Context, name string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, tx.store.queries[name], args...)
	return tag.RowsAffected(), err
}

// errRollback ends a transaction that must not commit although it succeeded.
var errRollback = errors.New("rolled back on request")

// write runs do in one transaction, announces its changes and commits. It runs do again from the start if another
// transaction conflicts, or if the connection fails before the commit is sent. serial takes the catalogue's lock first.
func (s *Store) write(ctx context.Context, op string, timeout time.Duration, serial bool, do func(context.Context, *txn) error) error {
	if cause := s.cfg.Away(); cause != nil {
		return away(op, cause)
	}
	defer time.AfterFunc(slowAfter, s.cfg.Suspect).Stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	turns := []chan struct{}{s.writers}
	if serial {
		turns = []chan struct{}{s.serial, s.writers}
	}
	for _, turn := range turns {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return translate(op, ctx.Err())
		}
	}
	var tx *txn
	err := retry(ctx, func(ctx context.Context) (again bool, err error) {
		tx, err = s.writeOnce(ctx, serial, do)
		return isRetryable(err) || isConnectionLost(err) && !tx.committing, err
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	if err != nil {
		return translate(op, err)
	}
	if s.committed != nil && len(tx.changes) > 0 {
		s.committed(tx.changes)
	}
	return nil
}

func (s *Store) writeOnce(ctx context.Context, serial bool, do func(context.Context, *txn) error) (*txn, error) {
	tx := &txn{store: s}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(raw pgx.Tx) error {
		tx.Tx = raw
		if s.cfg.Target == namedsql.Citus { // one connection per node in a transaction: tables with foreign keys need it
			if _, err := raw.Exec(ctx, "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
		}
		if serial {
			// In a statement of its own: later statements see what the previous holder committed.
			if _, err := tx.exec(ctx, "LockCatalog"); err != nil {
				return fmt.Errorf("lock: %w", err)
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		if len(tx.changes) > maxAnnouncements {
			tx.changes = []string{everything}
		}
		if len(tx.changes) > 0 {
			if _, err := tx.exec(ctx, "Announce", tx.changes); err != nil {
				return fmt.Errorf("announce: %w", err)
			}
		}
		if err := errors.Join(auditlog.Record(ctx, raw, tx.lines), events.Record(ctx, raw, tx.events)); err != nil {
			return err
		}
		tx.committing = true
		return nil
	})
	return tx, err
}

// Transaction is a running transaction of another package that is stored, announced, recorded and repeated like the catalogue's own.
type Transaction struct{ *txn }

// Note notes an announcement, and a line for the audit log.
func (c *Transaction) Note(announcement string, line auditlog.Line) {
	c.changes, c.lines = append(c.changes, announcement), append(c.lines, line)
}

// Now returns the instant with which a change is stamped. Call it after the locks.
func (c *Transaction) Now(ctx context.Context) (time.Time, error) { return c.now(ctx) }

// LimitOf returns the limit of this name that a tenant has: its plan's, or else the general one. It fails with CodeTenantNotFound and
// CodeNotFound.
func (c *Transaction) LimitOf(ctx context.Context, rule, tenant string) (*Limit, error) {
	tenants, err := c.tenants(ctx, []string{tenant}, "", "", 1)
	t, err := one(tenants, err, notFound(kindTenant, tenant))
	if err != nil {
		return nil, err
	}
	plans, err := c.plans(ctx, []string{t.Plan}, "", 1)
	if err != nil {
		return nil, err
	}
	if l := limitIn(plans, rule); l != nil {
		return l, nil
	}
	limits, err := c.limits(ctx, []string{rule}, "", 1)
	l, err := one(limits, err, notFound(kindLimit, rule))
	return &l, err
}

// limitIn returns the limit of this name of a plan, the first of plans; nil if there is none.
func limitIn(plans []Plan, rule string) *Limit {
	if len(plans) > 0 {
		for i := range plans[0].Limits {
			if l := &plans[0].Limits[i]; l.Rule == rule {
				return l
			}
		}
	}
	return nil
}

// Write runs do in one transaction and commits. It may run do more than once. Errors are *Error, or those of do that are not the driver's.
func (s *Store) Write(ctx context.Context, op string, do func(context.Context, *Transaction) error) error {
	return s.write(ctx, op, s.cfg.Timeout, false, func(ctx context.Context, tx *txn) error { return do(ctx, &Transaction{tx}) })
}

// View runs do in one read-only transaction. Errors are as those of Write.
func (s *Store) View(ctx context.Context, op string, do func(context.Context, pgx.Tx) error) error {
	return s.read(ctx, op, func(ctx context.Context, tx *txn) error { return do(ctx, tx.Tx) })
}

// Audit returns a page of the audit log. It fails with CodeInvalidArgument for an unknown cursor.
func (s *Store) Audit(ctx context.Context, q auditlog.Query) (page auditlog.Page, err error) {
	err = s.View(ctx, "read the audit log", func(ctx context.Context, tx pgx.Tx) error {
		if page, err = auditlog.List(ctx, tx, q); errors.Is(err, auditlog.ErrCursor) {
			return fieldError(CodeInvalidArgument, "cursor", mustBeCursor)
		}
		return err
	})
	return page, err
}

// Now returns the time of the clock that changes are stamped with, as far as it is known without a question to PostgreSQL.
func (s *Store) Now() time.Time { return s.cfg.Clock.Now() }

// Events returns a page of events.
func (s *Store) Events(ctx context.Context, q events.Query) (page events.Page, err error) {
	err = s.View(ctx, "list events", func(ctx context.Context, tx pgx.Tx) error {
		page, err = events.List(ctx, tx, s.Now(), q)
		return err
	})
	return page, err
}

// read runs do in one read-only transaction with one view of the database. It runs do again if the connection was dead.
func (s *Store) read(ctx context.Context, op string, do func(context.Context, *txn) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return s.reach(ctx, op, func(ctx context.Context) error {
		return pgx.BeginTxFunc(ctx, s.pool, options, func(raw pgx.Tx) error {
			return do(ctx, &txn{Tx: raw, store: s})
		})
	})
}

// reach runs do, which reads from PostgreSQL, within StoreConfig.Timeout. It runs do again if the connection was dead.
func (s *Store) reach(ctx context.Context, op string, do func(context.Context) error) error {
	if cause := s.cfg.Away(); cause != nil {
		return away(op, cause)
	}
	defer time.AfterFunc(slowAfter, s.cfg.Suspect).Stop()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return translate(op, retry(ctx, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		return isConnectionLost(err), err
	}))
}

// retry calls do until it succeeds or returns false, at most attempts times, and not after ctx ends.
func retry(ctx context.Context, do func(context.Context) (again bool, err error)) error {
	for attempt := 1; ; attempt++ {
		again, err := do(ctx)
		if !again || attempt == attempts || !backoff.Sleep(ctx, rand.N(retryPause)) {
			return err
		}
	}
}

// one returns the only element of a selection by id, or missing.
func one[T any](items []T, err error, missing *Error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if len(items) == 0 {
		return none, missing
	}
	return items[0], nil
}

func notFound(kind, id string) *Error {
	if kind == kindTenant {
		return errorf(CodeTenantNotFound, "the tenant %.128q does not exist", id)
	}
	return errorf(CodeNotFound, "the %s %.128q does not exist", kind, id)
}

// checkLimit returns the result of CheckLimit as an *Error. prefix is the path of the limit.
func (s *Store) checkLimit(prefix string, l *Limit) error {
	if s.cfg.CheckLimit == nil {
		return nil
	}
	err := s.cfg.CheckLimit(l)
	if err == nil {
		return nil
	}
	var fields []body.Fault
	for _, e := range flatten(err) {
		if f, ok := errors.AsType[*body.Fault](e); ok {
			fields = append(fields, body.Fault{Field: prefix + f.Field, Message: f.Message})
		} else {
			fields = append(fields, body.Fault{Field: prefix + "rate", Message: e.Error()})
		}
	}
	return &Error{Code: CodeInvalidArgument, Fields: fields}
}

// flatten returns the errors that errors.Join joined.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

//go:embed sql/*.sql
var sqlFiles embed.FS
