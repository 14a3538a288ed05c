package pg

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// view reads the rows that p's calls need, at one instant, and advances the balances in memory to the given instant
// (zero means now). It locks and writes nothing.
func (l *Ledger) view(ctx context.Context, p *plan, at time.Time) (b *ledger.Batch, err error) {
	err = l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if p.located == nil {
			found, err := l.find(ctx, conn, &p.targets)
			if err != nil {
				return unavailable("look up operation", err)
			}
			p.locate(found)
		}
		p.arrange()
		b, err = l.viewOn(ctx, conn, p, at)
		return err
	})
	return b, err
}

// viewBalances reads balances as view does.
func (l *Ledger) viewBalances(ctx context.Context, at time.Time, keys ...ledger.BalanceKey) (*ledger.Batch, error) {
	p := newPlan(nil)
	p.more, p.shown = keys, true
	return l.view(ctx, p, at)
}

func (l *Ledger) viewOn(ctx context.Context, conn *pgx.Conn, p *plan, at time.Time) (*ledger.Batch, error) {
	b := ledger.NewBatch()
	b.Located, b.Absent = *p.located, map[ledger.BalanceKey]ledger.Absence{}
	tenants, meters, subjects := columnsOf(p.keys)
	out := &pgx.Batch{}
	began := l.clock.Begin()
	l.queueSnapshot(out)
	if len(p.keys) > 0 {
		out.Queue(l.sql["SelectBalances"], tenants, meters, subjects).Query(scanBalances(b.Books))
	}
	var overflows map[ledger.BalanceKey]*ledger.Overflow
	if p.shown && len(p.keys) > 0 {
		overflows = l.queueOverflows(out, tenants, meters, subjects)
	}
	out.Queue("SELECT clock_timestamp()").QueryRow(func(row pgx.Row) error {
		var now time.Time
		err := row.Scan(&now)
		b.Now = l.clock.Agree(began, now)
		return err
	})
	if len(p.keys) > 0 {
		out.Queue(l.sql["WhyAbsent"], tenants, meters).Query(scanAbsent(p.keys, b.Absent))
	}
	l.queueTargets(out, b, p, p.targets.NewGrants) // a view has no key from which ids of grants could be made
	more := l.queueLoad(out, p, p.keys, p.keys)
	out.Queue("COMMIT")
	if err := send(ctx, conn, out); err != nil {
		if isUnreadable(err) {
			return nil, &errcode.Error{Code: errcode.Internal, Detail: "the balance cannot be read", Cause: err}
		}
		return nil, unavailable("read balances", err)
	}
	for _, k := range p.keys {
		if _, absent := b.Absent[k]; !absent && b.Books[k] == nil {
			b.Books[k] = ledger.NewBook(ledger.BalanceRow{BalanceKey: k})
		}
	}
	for k, o := range overflows {
		b.Books[k].Overflow = o
	}
	there := slices.DeleteFunc(slices.Clone(p.keys), func(k ledger.BalanceKey) bool { return b.Books[k] == nil })
	more.attach(b.Books, there, there, l.learned)
	if !at.IsZero() && at.Before(b.Now) {
		b.Now = at
	}
	if err := l.readPastUse(ctx, conn, b.Books, there, b.Now); err != nil {
		return nil, unavailable("read the use before a change of the interval", err)
	}
	if err := b.AdvanceInMemory(ctx.Err); err != nil {
		if ctx.Err() != nil {
			return nil, unavailable("work off the due events of a balance", err)
		}
		return nil, uncomputable(err)
	}
	return b, nil
}

// queueOverflows queues the read of what other meters paid for balances in their stored open periods.
func (l *Ledger) queueOverflows(
	out *pgx.Batch, tenants, meters, subjects []string,
) map[ledger.BalanceKey]*ledger.Overflow {
	found := map[ledger.BalanceKey]*ledger.Overflow{}
	out.Queue(l.sql["OpenOverflows"], tenants, meters, subjects).Query(func(rows pgx.Rows) error {
		var k ledger.BalanceKey
		var o ledger.Overflow
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &o.Period, &o.Units}, func() error {
			found[k] = &ledger.Overflow{Period: fromDB(o.Period), Units: o.Units}
			return nil
		})
		return err
	})
	return found
}

// queueSnapshot begins a transaction that sees one instant. Its statements have generic plans, like the statements of
// the writers. Without generic plans, PostgreSQL plans some statements again each time if the connection's first
// statements named few balances. Then planning takes longer than execution. On Citus each plan depends on the tenants.
// The readers' other statements have conditions that only a custom plan can use.
func (l *Ledger) queueSnapshot(out *pgx.Batch) {
	out.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	if l.cluster == nil {
		out.Queue("SET LOCAL plan_cache_mode = force_generic_plan")
	}
}

// isUnreadable reports whether a read failed because of the stored data, and not because PostgreSQL does not answer.
// A retry does not help.
func isUnreadable(err error) bool {
	if _, ok := errors.AsType[pgx.ScanArgError](err); ok {
		return true
	}
	return classify(err, false) == verdictData
}

// uncomputable returns cause if it is an *errcode.Error. It wraps any other cause in the error that the balance
// cannot be computed.
func uncomputable(cause error) error {
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		return e
	}
	return &errcode.Error{Code: errcode.Internal, Detail: "the balance cannot be computed", Cause: cause}
}
