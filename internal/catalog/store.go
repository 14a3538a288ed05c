package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// writeTimeout bounds a transaction that writes one object, and readTimeout one that reads.
	writeTimeout = 5 * time.Second
	readTimeout  = 5 * time.Second

	// applyTimeout bounds a file's transaction. The ledger expects every change to be committed less than a minute after its
	// clock was read.
	applyTimeout = 30 * time.Second

	// writeAttempts is how often a transaction is run that another one got in the way of. One writer of each pair makes
	// progress, so a second attempt is rare and a fourth means something else is wrong.
	writeAttempts = 4

	// retryPause bounds the random pause between them: about the length of the other transaction.
	retryPause = 20 * time.Millisecond

	// maxAnnouncements is how many changes one transaction announces by name. More are announced as everything.
	maxAnnouncements = 500
)

// The kinds of objects, as announcements and diffs name them.
const (
	kindMeter  = "meter"
	kindPlan   = "plan"
	kindLimit  = "limit"
	kindTenant = "tenant"

	everything = "all"
)

// StoreConfig says how a Store behaves. The zero value is valid.
type StoreConfig struct {
	// CheckLimit, if not nil, refuses limits that cannot be enforced. Its error is a *FieldError, or several put together by
	// errors.Join. It sees limits with their defaults filled in.
	CheckLimit func(*Limit) error
}

// Store is the catalogue in PostgreSQL. It has no goroutines and nothing to stop. The pool is its owner's to close.
type Store struct {
	pool    *pgxpool.Pool
	queries map[string]string
	cfg     StoreConfig

	// committed, if not nil, hears what a transaction of this store announced, once it is committed.
	committed func(changes []string)
}

// NewStore makes a store. It does not touch the pool.
func NewStore(pool *pgxpool.Pool, cfg StoreConfig) (*Store, error) {
	queries, err := loadQueries()
	if err != nil {
		return nil, err
	}
	return &Store{pool: pool, queries: queries, cfg: cfg}, nil
}

// txn is a transaction under way.
type txn struct {
	pgx.Tx
	store   *Store
	changes []string // to announce
}

func (tx *txn) changed(kind, id string) { tx.changes = append(tx.changes, kind+":"+id) }

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

// errRollback ends a transaction that is not to be committed though all went well.
var errRollback = errors.New("rolled back on request")

// write runs do in one transaction, announces what it changed and commits. It runs do again, from the start, if another
// transaction got in the way. serial takes the catalogue's lock first.
func (s *Store) write(ctx context.Context, op string, timeout time.Duration, serial bool, do func(context.Context, *txn) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		changes, err := s.writeOnce(ctx, serial, do)
		if err == nil {
			if s.committed != nil && len(changes) > 0 {
				s.committed(changes)
			}
			return nil
		}
		if errors.Is(err, errRollback) {
			return nil
		}
		if !retryable(err) || attempt == writeAttempts {
			return translate(op, err)
		}
		select {
		case <-ctx.Done():
			return translate(op, err)
		case <-time.After(rand.N(retryPause)):
		}
	}
}

func (s *Store) writeOnce(ctx context.Context, serial bool, do func(context.Context, *txn) error) ([]string, error) {
	var changes []string
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(raw pgx.Tx) error {
		tx := &txn{Tx: raw, store: s}
		if serial {
			// In a statement of its own: those after it see what the holder before us committed.
			if _, err := tx.exec(ctx, "LockCatalog"); err != nil {
				return fmt.Errorf("lock: %w", err)
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		changes = tx.changes
		if len(changes) == 0 {
			return nil
		}
		if len(changes) > maxAnnouncements {
			changes = []string{everything}
		}
		if _, err := tx.exec(ctx, "Announce", changes); err != nil {
			return fmt.Errorf("announce: %w", err)
		}
		return nil
	})
	return changes, err
}

// read runs do in one read-only transaction with one view of the database.
func (s *Store) read(ctx context.Context, op string, do func(context.Context, *txn) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return translate(op, pgx.BeginTxFunc(ctx, s.pool, options, func(raw pgx.Tx) error {
		return do(ctx, &txn{Tx: raw, store: s})
	}))
}

// Ping asks PostgreSQL for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return translate("ping", s.pool.Ping(ctx))
}

// one returns the only element of a selection by id.
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

// checkLimit turns the hook's verdict on a limit into an *Error. prefix is where the limit stands.
func (s *Store) checkLimit(prefix string, l *Limit) error {
	if s.cfg.CheckLimit == nil {
		return nil
	}
	err := s.cfg.CheckLimit(l)
	if err == nil {
		return nil
	}
	var fields []FieldError
	for _, e := range flatten(err) {
		if f, ok := errors.AsType[*FieldError](e); ok {
			fields = append(fields, FieldError{prefix + f.Field, f.Message})
		} else {
			fields = append(fields, FieldError{prefix + "rate", e.Error()})
		}
	}
	return &Error{Code: CodeInvalidArgument, Fields: fields}
}

// Error makes a FieldError something a CheckLimit can return.
func (f *FieldError) Error() string { return f.Field + " " + f.Message }

// flatten lists the errors that errors.Join put together.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
