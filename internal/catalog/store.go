package catalog

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// applyTimeout is the longest time of the transaction of a file. The ledger requires that a change commits less than
// a minute after its transaction has read the clock.
const applyTimeout = 30 * time.Second

// unlimited is the LIMIT of statements that select all rows.
const unlimited = math.MaxInt32

// alone contains the options of writers of meters, plans, limits and blocks: these writers run one after another.
// Apply has the same option Alone.
var alone = pgstore.Options{Alone: true}

// The kinds of objects in announcements and diffs.
const (
	kindMeter  = "meter"
	kindPlan   = "plan"
	kindLimit  = "limit"
	kindTenant = pgstore.KindTenant
	kindBlock  = "block"
	kindReset  = "reset" // a bucket was reset; this kind has no stored object
)

// StoreConfig configures a Store. The zero value is valid.
type StoreConfig struct {
	// CheckLimit, if not nil, refuses limits that cannot be enforced. Its error is a *body.Fault, or several faults
	// joined by errors.Join. Defaults are already set in the limits that it receives.
	CheckLimit func(*Limit) error

	// CheckRules, if not nil, refuses limits that cannot be enforced together. The snapshot `after` is the whole
	// catalogue after a change. The snapshot `before` is valid, so limits and plans that both snapshots have need no
	// check. Each limit has passed CheckLimit.
	CheckRules func(after, before *Snapshot) []RuleFault
}

// Store is the catalogue in PostgreSQL. It has no goroutines.
type Store struct {
	db      *pgstore.Store
	queries map[string]string
	cfg     StoreConfig

	// latest is the newest snapshot that the Catalog of this store has read. It is empty if there is no Catalog.
	latest atomic.Pointer[Snapshot]
}

// NewStore returns a store of the catalogue in the database db.
func NewStore(db *pgstore.Store, cfg StoreConfig) *Store {
	s := &Store{db: db, queries: namedsql.Must(db.Target(), sqlFiles, agreed.SQL), cfg: cfg}
	s.latest.Store(&Snapshot{})
	return s
}

// DB returns the PostgreSQL store of the catalogue. Other packages may use it for their own tables.
func (s *Store) DB() *pgstore.Store { return s.db }

// txn is a running transaction.
type txn struct {
	pgx.Tx
	writing  *pgstore.Transaction // nil in a transaction that only reads
	store    *Store
	lines    []auditlog.Line // lines for the audit log; Store.write stores them
	events   []events.Event
	advanced int // changes of tenants that the transaction has put into force
}

// changed announces the change c of an object, and adds a line for the audit log. c.before is nil for a new object;
// c.after is nil for a deleted object.
func (tx *txn) changed(ctx context.Context, kind, id string, c change) {
	tx.writing.Announce(kind, id)
	tx.lines = append(tx.lines, auditlog.Line{
		Actor: auditlog.From(ctx), Action: kind + "." + c.action, Object: auditlog.Object{Kind: kind, ID: id, Tenant: c.tenant},
		Before: c.before, After: c.after, Reason: c.reason,
	})
}

// change describes one change of an object.
type change struct {
	action        string // put, patch, delete or reset
	tenant        string // the tenant to which the object belongs; empty: none
	before, after any
	reason        string
}

// now returns the present instant, as pgstore.Store.NowIn defines it.
func (tx *txn) now(ctx context.Context) (time.Time, error) { return tx.store.db.NowIn(ctx, tx) }

// query returns the rows of a statement. If the statement fails, its error is the error of the rows.
func (tx *txn) query(ctx context.Context, name string, args ...any) pgx.Rows {
	rows, _ := tx.Query(ctx, tx.store.queries[name], args...)
	return rows
}

func (tx *txn) queryRow(ctx context.Context, name string, args ...any) pgx.Row {
	return tx.QueryRow(ctx, tx.store.queries[name], args...)
}

func (tx *txn) exec(ctx context.Context, name string, args ...any) (int64, error) {
	tag, err := tx.Exec(ctx, tx.store.queries[name], args...)
	return tag.RowsAffected(), err
}

// write runs the function `do` in one transaction, announces and records its changes, and commits: see
// pgstore.Store.WriteWith.
func (s *Store) write(ctx context.Context, op string, how pgstore.Options, do func(context.Context, *txn) error) error {
	return s.db.WriteWith(ctx, op, how, func(ctx context.Context, writing *pgstore.Transaction) error {
		tx := &txn{Tx: writing.Tx, writing: writing, store: s}
		if how.Alone {
			// The lock is a separate statement. So later statements see the changes that the previous holder of the
			// lock committed.
			if _, err := tx.exec(ctx, "LockCatalog"); err != nil {
				return fmt.Errorf("lock: %w", err)
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		return errors.Join(auditlog.Record(ctx, tx, tx.lines), events.Record(ctx, tx, tx.events))
	})
}

// read runs the function `do` in one read-only transaction: see pgstore.Store.View.
func (s *Store) read(ctx context.Context, op string, do func(context.Context, *txn) error) error {
	return s.db.View(ctx, op, func(ctx context.Context, tx pgx.Tx) error { return do(ctx, &txn{Tx: tx, store: s}) })
}

// fill runs the function `do` like read, for the memory of the Catalog.
func (s *Store) fill(ctx context.Context, op string, do func(context.Context, *txn) error) error {
	return s.db.In(pgstore.Memory).View(ctx, op, func(ctx context.Context, tx pgx.Tx) error { return do(ctx, &txn{Tx: tx, store: s}) })
}

// LimitOf returns the limit named rule that applies to a tenant: the limit of its plan, or else the general limit. It
// reads in the caller's transaction. It fails with errcode.TenantNotFound, or with errcode.NotFound if no such limit
// exists.
func (s *Store) LimitOf(ctx context.Context, in pgx.Tx, rule, tenant string) (*Limit, error) {
	tx := &txn{Tx: in, store: s}
	tenants, err := tx.tenants(ctx, []string{tenant}, "", "", 1)
	t, err := one(tenants, err, notFound(kindTenant, tenant))
	if err != nil {
		return nil, err
	}
	plan, err := tx.planOf(ctx, &t)
	if err != nil {
		return nil, err
	}
	if l := limitIn(plan, rule); l != nil {
		return l, nil
	}
	limits, err := tx.limits(ctx, []string{rule}, "", 1)
	l, err := one(limits, err, notFound(kindLimit, rule))
	return &l, err
}

// limitIn returns the limit named rule of the first plan in plans. It returns nil if plans is empty or that plan has
// no such limit.
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

// Audit returns a page of the audit log. It fails with errcode.InvalidArgument for an unknown cursor.
func (s *Store) Audit(ctx context.Context, q auditlog.Query) (page auditlog.Page, err error) {
	err = s.db.View(ctx, "read the audit log", func(ctx context.Context, tx pgx.Tx) error {
		if page, err = auditlog.List(ctx, tx, q); errors.Is(err, auditlog.ErrCursor) {
			return errcode.Errorf(errcode.InvalidArgument, "cursor", listing.MustBeCursor)
		}
		return err
	})
	return page, err
}

// Events returns a page of events.
func (s *Store) Events(ctx context.Context, q events.Query) (page events.Page, err error) {
	err = s.db.View(ctx, "list events", func(ctx context.Context, tx pgx.Tx) error {
		page, err = events.List(ctx, tx, s.db.Now(), q)
		return err
	})
	return page, err
}

// one returns the only element of items, which were selected by id. If items is empty, it returns the error `missing`.
func one[T any](items []T, err error, missing *errcode.Error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if len(items) == 0 {
		return none, missing
	}
	return items[0], nil
}

func notFound(kind, id string) *errcode.Error {
	if kind == kindTenant {
		return errcode.Errorf(errcode.TenantNotFound, "", "the tenant %.128q does not exist", id)
	}
	return errcode.Errorf(errcode.NotFound, "", "the %s %.128q does not exist", kind, id)
}

// missingReference returns the error for a field whose object does not exist.
func missingReference(field, kind, id string) *errcode.Error {
	return &errcode.Error{Code: errcode.NotFound, Fields: []body.Fault{{
		Field: field, Message: fmt.Sprintf("names the %s %q, which does not exist", kind, id),
	}}}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// checkLimit returns the faults that CheckLimit finds in l as an *errcode.Error, or nil. prefix is the path of the
// limit.
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
	return errcode.Invalid(fields...)
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
