package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/period"
)

// Balance is a balance at AsOf, with every event due until then worked off.
type Balance struct {
	Tenant, Meter, Subject     string
	Plan                       string // '' = the plan has no such meter
	PlanVersion                int32
	Seq                        int64
	Opening, Granted, Refunded int64
	Used, Expired, Adjusted    int64
	Held, Overage              int64
	Remaining, Limit           int64
	PeriodStart, PeriodEnd     time.Time     // PeriodEnd zero = the period has no end
	Grants                     []GrantRecord // open ones in burn order
	AsOf                       time.Time
}

// onReader runs read on a connection for reads. A connection that turns out dead (the server was restarted, or failed over)
// is not the caller's problem: the idle ones are dropped with it, and read runs once more.
func (l *Ledger) onReader(ctx context.Context, read func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var err error
	for range 2 {
		var conn *pgxpool.Conn
		if conn, err = l.readers.Acquire(ctx); err != nil {
			return unavailable("acquire reader connection", err)
		}
		err = read(ctx, conn.Conn())
		dead := conn.Conn().IsClosed()
		conn.Release()
		if err == nil || !dead || ctx.Err() != nil {
			return err
		}
		l.readers.Reset()
	}
	return err
}

// viewFor reads what calls need, at one instant.
func (l *Ledger) viewFor(ctx context.Context, calls []*call, extra []key) (m *machine, err error) {
	err = l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		a := newAttempt(calls)
		if a.found, err = l.locate(ctx, conn, a.refs); err != nil {
			return unavailable("look up operation", err)
		}
		a.extra = extra
		a.plan()
		m, err = l.viewOn(ctx, conn, a.keys, a)
		return err
	})
	return m, err
}

// view reads balances at one instant and brings them to now in memory. Nothing is locked or written.
func (l *Ledger) view(ctx context.Context, keys []key) (*machine, error) {
	return l.viewAt(ctx, keys, time.Time{})
}

// viewAt reads balances and brings them to at in memory, which is not in the future (zero: to now). A balance with newer
// entries stays as it is.
func (l *Ledger) viewAt(ctx context.Context, keys []key, at time.Time) (m *machine, err error) {
	err = l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		m, err = l.viewOn(ctx, conn, keys, &attempt{until: at})
		return err
	})
	return m, err
}

func (l *Ledger) viewOn(ctx context.Context, conn *pgx.Conn, keys []key, a *attempt) (*machine, error) {
	m := newMachine()
	m.found = a.found
	c := columnsOf(keys)
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	b.Queue(l.queries["SelectBalances"], c.tenants, c.meters, c.subjects).Query(scanBalances(m.books))
	b.Queue("SELECT clock_timestamp()").QueryRow(func(row pgx.Row) error { return row.Scan(&m.now) })
	b.Queue(l.queries["WhyAbsent"], c.tenants, c.meters).Query(scanAbsent(keys, m.absent))
	l.queueTaken(b, &m, a.namedGrantIDs()) // a dry run has no key to make one from
	l.queueState(b, &m, a.refs)
	more := l.queueLoad(b, keys, keys, a.found.namedGrants())
	b.Queue("COMMIT")
	if err := sendBatch(ctx, conn, b); err != nil {
		if isUnreadable(err) {
			return nil, &Error{Code: CodeInternal, Detail: "the balance cannot be read", cause: err}
		}
		return nil, unavailable("read balances", err)
	}
	m.now = m.now.UTC()
	l.observe(m.now)
	for _, k := range keys {
		if _, absent := m.absent[k]; !absent && m.books[k] == nil {
			m.books[k] = &book{balance: balance{key: k}}
		}
	}
	more.grantKeys = slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return m.books[k] == nil })
	more.termKeys = more.grantKeys
	more.attach(m.books, l.terms)
	if !a.until.IsZero() && a.until.Before(m.now) {
		m.now = a.until
	}
	for {
		again, err := m.advanceAll()
		if err != nil {
			return nil, uncomputable(err)
		}
		m.keepUnwritten()
		if !again {
			return &m, nil
		}
	}
}

// isUnreadable reports whether a read failed for what is stored, and not because PostgreSQL does not answer: asking again will not
// help.
func isUnreadable(err error) bool {
	if _, ok := errors.AsType[pgx.ScanArgError](err); ok {
		return true
	}
	return classify(err, false) == verdictData
}

// keepUnwritten hands each book the entries that advance made in memory.
func (m *machine) keepUnwritten() {
	for _, l := range m.journal.lines {
		b := m.books[l.key]
		b.unwritten = append(b.unwritten, l)
	}
	m.journal = journal{}
}

// scanAbsent notes which of the keys name a tenant or meter that does not exist.
func scanAbsent(keys []key, into map[key]missing) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		reasons, err := scanReasons(rows)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if why, ok := reasons[[2]string{k.Tenant, k.Meter}]; ok {
				into[k] = why
			}
		}
		return nil
	}
}

// Balances returns a tenant's balances by meter, those of its plan that were never used included.
func (l *Ledger) Balances(ctx context.Context, tenant, subject string) ([]Balance, error) {
	books, now, err := l.booksOf(ctx, tenant, subject, time.Time{})
	if err != nil {
		return nil, err
	}
	out := make([]Balance, len(books))
	for i, b := range books {
		out[i] = b.public(now)
	}
	return out, nil
}

// booksOf reads all balances of a tenant and subject as viewAt does.
func (l *Ledger) booksOf(ctx context.Context, tenant, subject string, at time.Time) ([]*book, time.Time, error) {
	if e := firstOf(validID("tenant", tenant), validSubject(subject)); e != nil {
		return nil, time.Time{}, e
	}
	if err := l.mustExist(ctx, tenant); err != nil {
		return nil, time.Time{}, err
	}
	keys, err := l.keysOf(ctx, tenant, subject)
	if err != nil {
		return nil, time.Time{}, err
	}
	m, err := l.viewAt(ctx, keys, at)
	if err != nil {
		return nil, time.Time{}, err
	}
	books := make([]*book, 0, len(keys))
	for _, k := range keys {
		b, failed := m.book(k, "meter")
		if failed != nil {
			return nil, time.Time{}, failed
		}
		if !b.unknown() { // what a refused request has touched is no balance yet
			books = append(books, b)
		}
	}
	return books, m.now, nil
}

// keysOf names the balances of a tenant and subject by meter, those of its plan that were never used included.
func (l *Ledger) keysOf(ctx context.Context, tenant, subject string) ([]key, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, err := l.readers.Query(ctx, l.queries["MetersOf"], tenant, subject)
	if err != nil {
		return nil, unavailable("list meters", err)
	}
	keys := []key{}
	var meter string
	_, err = pgx.ForEachRow(rows, []any{&meter}, func() error {
		keys = append(keys, key{tenant, meter, subject})
		return nil
	})
	if err != nil {
		return nil, unavailable("list meters", err)
	}
	return keys, nil
}

// Balance returns one balance. CodeMeterNotInPlan: the plan lacks the meter and nothing was ever granted.
func (l *Ledger) Balance(ctx context.Context, tenant, meter, subject string) (*Balance, error) {
	b, now, err := l.viewOne(ctx, tenant, meter, subject)
	if err != nil {
		return nil, err
	}
	out := b.public(now)
	return &out, nil
}

func (l *Ledger) viewOne(ctx context.Context, tenant, meter, subject string) (*book, time.Time, error) {
	if e := firstOf(validID("tenant", tenant), validID("meter", meter), validSubject(subject)); e != nil {
		return nil, time.Time{}, e
	}
	k := key{tenant, meter, subject}
	m, err := l.view(ctx, []key{k})
	if err != nil {
		return nil, time.Time{}, err
	}
	b, failed := m.book(k, "meter")
	if failed != nil {
		return nil, time.Time{}, failed
	}
	if b.unknown() {
		return nil, time.Time{}, b.notInPlan()
	}
	return b, m.now, nil
}

func (b *book) notInPlan() *Error {
	if b.Subject != "" {
		return errorf(CodeMeterNotInPlan, "meter", "the plan of tenant %q has no cap per subject on meter %q, and no grant was ever issued to subject %q",
			b.Tenant, b.Meter, b.Subject)
	}
	return errorf(CodeMeterNotInPlan, "meter", "the plan of tenant %q has no meter %q, and no grant was ever issued for it", b.Tenant, b.Meter)
}

func (b *book) public(now time.Time) Balance {
	out := Balance{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, Plan: b.plan, PlanVersion: b.planVersion, Seq: b.seq,
		Opening: b.opening, Granted: b.granted, Refunded: b.refunded, Used: b.used, Expired: b.expired, Adjusted: b.adjusted,
		Held: b.held, Overage: b.overage, Remaining: b.remaining(), Limit: b.limit(), PeriodStart: b.start,
		AsOf: later(now, b.updatedAt), Grants: []GrantRecord{},
	}
	if b.end.Before(period.Forever) {
		out.PeriodEnd = b.end
	}
	for _, g := range b.grants {
		if g.Status == GrantActive || g.Status == GrantPending {
			out.Grants = append(out.Grants, g.GrantRecord.public())
		}
	}
	return out
}

func (l *Ledger) mustExist(ctx context.Context, tenant string) error {
	var exists bool
	err := l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, l.queries["TenantExists"], tenant).Scan(&exists)
	})
	if err != nil {
		return unavailable("look up tenant", err)
	}
	if !exists {
		return errorf(CodeTenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	return nil
}

// scanReasons reads WhyAbsent: per (tenant, meter) what is missing.
func scanReasons(rows pgx.Rows) (map[[2]string]missing, error) {
	var tenant, meter string
	var tenantExists, meterExists bool
	reasons := map[[2]string]missing{}
	_, err := pgx.ForEachRow(rows, []any{&tenant, &meter, &tenantExists, &meterExists}, func() error {
		switch {
		case !tenantExists:
			reasons[[2]string{tenant, meter}] = missingTenant
		case !meterExists:
			reasons[[2]string{tenant, meter}] = missingMeter
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up missing balances: %w", err)
	}
	return reasons, nil
}
