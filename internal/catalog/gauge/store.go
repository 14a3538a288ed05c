package gauge

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// CodeLimit is the code of the error for a value above the limit of the plan.
const CodeLimit errcode.Code = "gauge_limit"

// Key identifies a gauge. Subject is empty for the tenant's own gauge.
type Key struct{ Tenant, Meter, Subject string }

// Change sets a gauge to Value, or changes it by Delta.
type Change struct {
	Key

	OperationID string // the Idempotency-Key
	Value       *int64 // 0..bound.MaxAmount; nil: Delta is used
	Delta       int64  // not 0 if Value is nil
	DryRun      bool   // decide the change without making it
}

// State is the state of a gauge after a change, or at present.
type State struct {
	Key

	Value, Limit int64
	Before       int64     // the value before the change
	At           time.Time // time of the newest change; zero: never changed
	Replayed     bool
}

// Remaining returns the units by which the value may rise.
func (s *State) Remaining() int64 { return max(0, s.Limit-s.Value) }

// Over returns the units by which the value exceeds the limit.
func (s *State) Over() int64 { return max(0, s.Value-s.Limit) }

// Entry is an entry of a gauge's journal.
type Entry struct {
	Seq           int64
	OperationID   string
	Before, After int64
	Limit         int64
	At            time.Time
	Actor         string // id of the API key that made the change; empty: no key
}

// Store reads and changes the gauges in PostgreSQL. It has no goroutines.
type Store struct {
	db      *pgstore.Store
	queries map[string]string
}

// NewStore returns a store of the gauges in the database db.
func NewStore(db *pgstore.Store) *Store {
	return &Store{db: db, queries: namedsql.Must(db.Target(), sqlFiles, agreed.SQL)}
}

// Set makes a change of a gauge. It fails with CodeLimit if the value would rise above the limit.
func (s *Store) Set(ctx context.Context, c Change) (state State, err error) {
	if err := c.validate(); err != nil {
		return State{}, err
	}
	err = s.db.Write(ctx, "set gauge", func(ctx context.Context, tx *pgstore.Transaction) error {
		state, err = s.set(ctx, tx, &c)
		return err
	})
	return state, err
}

func (s *Store) set(ctx context.Context, tx *pgstore.Transaction, c *Change) (State, error) {
	if state, found, err := s.replay(ctx, tx, c); found || err != nil {
		return state, err
	}
	limit, suspended, err := s.limit(ctx, tx, c.Key)
	if err != nil && !errors.Is(err, errNotInPlan) {
		return State{}, err
	}
	missing := err
	now, err := tx.Now(ctx)
	if err != nil {
		return State{}, err
	}
	if _, err := tx.Exec(ctx, s.queries["MakeGauge"], c.Tenant, c.Meter, c.Subject, now); err != nil {
		return State{}, fmt.Errorf("make gauge: %w", err)
	}
	var before, seq int64
	if err := tx.QueryRow(ctx, s.queries["LockGauge"], c.Tenant, c.Meter, c.Subject).Scan(&before, &seq); err != nil {
		return State{}, fmt.Errorf("lock gauge: %w", err)
	}
	if state, found, err := s.replay(ctx, tx, c); found || err != nil { // made while this call waited for the lock
		return state, err
	}
	switch {
	case suspended:
		return State{}, errcode.Errorf(errcode.TenantSuspended, "tenant", "tenant %q is suspended", c.Tenant)
	case missing != nil && before == 0:
		return State{}, notInPlan(c.Key)
	}
	after, err := c.after(before, limit)
	if err != nil {
		return State{}, err
	}
	state := State{Key: c.Key, Value: after, Limit: limit, Before: before, At: now}
	if c.DryRun {
		return state, pgstore.ErrRollback
	}
	if _, err := tx.Exec(ctx, s.queries["UpdateGauge"], c.Tenant, c.Meter, c.Subject, after, seq+1, now); err != nil {
		return State{}, fmt.Errorf("update gauge: %w", err)
	}
	sum := c.fingerprint()
	_, err = tx.Exec(ctx, s.queries["InsertEntry"], c.Tenant, c.Meter, c.Subject, seq+1, c.OperationID, sum[:], before, after, limit, now, auditlog.From(ctx).KeyID)
	if err != nil {
		return State{}, fmt.Errorf("insert gauge entry: %w", err)
	}
	return state, nil
}

// after returns the value of the gauge after the change. It fails if that value is below 0, or above the limit and
// higher than the value before the change.
func (c *Change) after(before, limit int64) (int64, error) {
	after, field := before+c.Delta, "delta"
	if c.Value != nil {
		after, field = *c.Value, "value"
	}
	switch {
	case after < 0:
		return 0, errcode.Errorf(errcode.InvalidArgument, field, "would take the value of meter %q, which is %d, below 0", c.Meter, before)
	case after > limit && after > before:
		return 0, errcode.Errorf(CodeLimit, field, "meter %q may be at most %d; it is %d and stays so, not %d", c.Meter, limit, before, after)
	}
	return after, nil
}

// replay returns the stored answer of an earlier change with the same idempotency key.
func (s *Store) replay(ctx context.Context, tx *pgstore.Transaction, c *Change) (state State, found bool, err error) {
	if c.DryRun {
		return State{}, false, nil
	}
	var stored []byte
	state.Tenant = c.Tenant
	err = tx.QueryRow(ctx, s.queries["StoredKey"], c.Tenant, c.OperationID).
		Scan(&state.Meter, &state.Subject, &stored, &state.Before, &state.Value, &state.Limit, &state.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, fmt.Errorf("look up key: %w", err)
	}
	if sum := c.fingerprint(); string(stored) != string(sum[:]) {
		return State{}, true, errcode.Errorf(errcode.IdempotencyKeyReused, "Idempotency-Key", "this key was used for another change of a gauge of tenant %q", c.Tenant)
	}
	state.At, state.Replayed = state.At.UTC(), true
	return state, true, nil
}

// rows is a transaction. It has only the methods that read.
type rows interface {
	agreed.Conn
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version returns the version of the tenant's plan that is in force, or 0 if it is the newest.
func (s *Store) version(ctx context.Context, tx rows, tenant string, now time.Time) (int32, error) {
	inForce, err := agreed.InForce(ctx, tx, s.queries, []string{tenant}, now)
	if a := inForce[tenant]; a != nil {
		return a.Version.Version, nil
	}
	return 0, err
}

var errNotInPlan = errors.New("the plan has no such gauge")

func notInPlan(k Key) error {
	if k.Subject != "" {
		return errcode.Errorf(errcode.MeterNotInPlan, "meter", "the plan of tenant %q has no gauge %q with an amount per subject", k.Tenant, k.Meter)
	}
	return errcode.Errorf(errcode.MeterNotInPlan, "meter", "the plan of tenant %q has no gauge %q", k.Tenant, k.Meter)
}

// limit returns the largest value to which the gauge may be set. The error errNotInPlan means that the plan has no
// such gauge. In that case the limit is 0.
func (s *Store) limit(ctx context.Context, tx rows, k Key) (limit int64, suspended bool, err error) {
	var kind, plan string
	var allowed *int64
	now := s.db.Now()
	version, err := s.version(ctx, tx, k.Tenant, now)
	if err != nil {
		return 0, false, err
	}
	err = tx.QueryRow(ctx, s.queries["Standing"], k.Tenant, k.Meter, k.Subject != "", now, version).Scan(&suspended, &kind, &plan, &allowed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		var exists bool
		if err := tx.QueryRow(ctx, s.queries["TenantExists"], k.Tenant).Scan(&exists); err != nil {
			return 0, false, fmt.Errorf("look up tenant: %w", err)
		}
		if !exists {
			return 0, false, errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", k.Tenant)
		}
		return 0, false, errcode.Errorf(errcode.NotFound, "meter", "meter %q does not exist", k.Meter)
	case err != nil:
		return 0, false, fmt.Errorf("look up limit: %w", err)
	case kind != catalog.KindGauge:
		return 0, false, errcode.Errorf(errcode.InvalidArgument, "meter", "meter %q is a counter, which is debited: POST /v1/debits", k.Meter)
	case allowed == nil:
		return 0, suspended, errNotInPlan
	}
	return *allowed, suspended, nil
}

// Get returns a gauge. The value of a gauge that was never set is 0.
func (s *Store) Get(ctx context.Context, k Key) (state State, err error) {
	if err := k.validate(); err != nil {
		return State{}, err
	}
	state.Key = k
	err = s.db.View(ctx, "read gauge", func(ctx context.Context, tx pgx.Tx) error {
		var missing error
		if state.Limit, _, missing = s.limit(ctx, tx, k); missing != nil && !errors.Is(missing, errNotInPlan) {
			return missing
		}
		var seq int64
		err := tx.QueryRow(ctx, s.queries["ReadGauge"], k.Tenant, k.Meter, k.Subject).Scan(&state.Value, &seq, &state.At)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		if err == nil && missing != nil && state.Value == 0 {
			return notInPlan(k)
		}
		state.At = state.At.UTC()
		return err
	})
	return state, err
}

// Entries returns the newest entries of a gauge, newest first. It returns only entries with a number smaller than the
// argument `before`, and at most limit of them.
func (s *Store) Entries(ctx context.Context, k Key, before int64, limit int) (list []Entry, err error) {
	if err := k.validate(); err != nil {
		return nil, err
	}
	err = s.db.View(ctx, "read gauge entries", func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, _, err := s.limit(ctx, tx, k); err != nil && !errors.Is(err, errNotInPlan) {
			return err
		}
		rows, _ := tx.Query(ctx, s.queries["Entries"], k.Tenant, k.Meter, k.Subject, before, limit)
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
			err = row.Scan(&e.Seq, &e.OperationID, &e.Before, &e.After, &e.Limit, &e.At, &e.Actor)
			e.At = e.At.UTC()
			return e, err
		})
		return err
	})
	return list, err
}

func (k *Key) validate() error {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", k.Tenant), ledger.ValidateID("meter", k.Meter)); e != nil {
		return e
	}
	if k.Subject != "" {
		if e := ledger.FirstOf(ledger.ValidateName("subject", k.Subject)); e != nil {
			return e
		}
	}
	return nil
}

func (c *Change) validate() error {
	if err := c.Key.validate(); err != nil {
		return err
	}
	switch {
	case !bound.Key(c.OperationID) && !c.DryRun:
		return errcode.Errorf(errcode.InvalidArgument, "Idempotency-Key", "%s", bound.MustBeKey)
	case c.Value == nil && c.Delta == 0:
		return errcode.Errorf(errcode.InvalidArgument, "value", "is required, or a delta that is not 0")
	case c.Value != nil && c.Delta != 0:
		return errcode.Errorf(errcode.InvalidArgument, "delta", "must be absent beside value")
	case c.Value != nil && (*c.Value < 0 || *c.Value > bound.MaxAmount):
		return errcode.Errorf(errcode.InvalidArgument, "value", "%s", bound.MustBeInteger(0, bound.MaxAmount))
	case c.Delta < -bound.MaxAmount || c.Delta > bound.MaxAmount:
		return errcode.Errorf(errcode.InvalidArgument, "delta", "must be an integer from %d to %d", -bound.MaxAmount, bound.MaxAmount)
	}
	return nil
}

// fingerprint returns 16 bytes that distinguish a repeat from a different request with the same key.
func (c *Change) fingerprint() [16]byte {
	how := fmt.Sprint("delta ", c.Delta)
	if c.Value != nil {
		how = fmt.Sprint("value ", *c.Value)
	}
	full := sha256.Sum256(fmt.Appendf(nil, "gauge/1 %q %q %q %s", c.Tenant, c.Meter, c.Subject, how))
	return [16]byte(full[:16])
}

//go:embed sql/*.sql
var sqlFiles embed.FS
