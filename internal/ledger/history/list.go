package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// StatementQuery selects the periods of a tenant's balances.
type StatementQuery struct {
	Tenant  string
	Meter   string // empty: all
	Subject string // empty: the tenant's own balances
	Limit   int    // 1..pg.PageMax
	Cursor  string // NextCursor of the page before; empty: the first page
}

// StatementPage is a page of statements without their lines. NextCursor is empty on the last page.
type StatementPage struct {
	Items      []Statement
	NextCursor string
}

// Statements returns a page of the closed and open periods that ask selects. The newest start comes first; periods
// with the same start are sorted by meter.
func (r *Reader) Statements(ctx context.Context, ask StatementQuery) (StatementPage, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", ask.Tenant), ledger.ValidateSubject(ask.Subject), pg.ValidLimit(ask.Limit)); e != nil {
		return StatementPage{}, e
	}
	from, err := ask.start()
	if err != nil {
		return StatementPage{}, err
	}
	return reported(ctx, r, func(ctx context.Context, q *report) (StatementPage, error) {
		books, now, err := q.books(ctx, &ask)
		if err != nil {
			return StatementPage{}, err
		}
		var items []Statement
		for _, b := range books {
			more, err := q.periodsOf(ctx, b, period.Later(now, b.UpdatedAt), from, ask.Limit+1)
			if err != nil {
				return StatementPage{}, err
			}
			// The statements are merged after each balance, so that no more than two pages are in memory.
			items = slices.SortedFunc(slices.Values(append(items, more...)), inList)
			items = items[:min(len(items), ask.Limit+1)]
		}
		page := StatementPage{Items: items}
		if len(items) > ask.Limit {
			page.Items = items[:ask.Limit]
			last := &page.Items[ask.Limit-1]
			page.NextCursor = pg.SealCursor(last.Meter, ask.Subject, last.Start.Format(time.RFC3339Nano))
		}
		pointers := make([]*Statement, len(page.Items))
		for i := range page.Items {
			pointers[i] = &page.Items[i]
		}
		return page, q.fillOverflow(ctx, pointers...)
	})
}

// statementPosition is the position of a statement in the list.
type statementPosition struct {
	start time.Time
	meter string
}

// follows reports whether a statement comes after p.
func (p statementPosition) follows(s *Statement) bool {
	return s.Start.Before(p.start) || s.Start.Equal(p.start) && s.Meter > p.meter
}

func inList(a, b Statement) int {
	return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(a.Meter, b.Meter))
}

// start returns the position after which the page begins.
func (ask *StatementQuery) start() (statementPosition, error) {
	first := statementPosition{start: period.Forever}
	if ask.Meter != "" {
		if e := ledger.ValidateID("meter", ask.Meter); e != nil {
			return first, e
		}
	}
	if ask.Cursor == "" {
		return first, nil
	}
	parts, err := pg.OpenCursor(ask.Cursor, 3)
	if err != nil {
		return first, err
	}
	at, err := time.Parse(time.RFC3339Nano, parts[2])
	if err != nil {
		return first, errcode.Errorf(errcode.InvalidArgument, "cursor", "unknown cursor")
	}
	if ask.Meter != "" && parts[0] != ask.Meter || parts[1] != ask.Subject {
		return first, errcode.Errorf(errcode.InvalidArgument, "cursor", "belongs to another list, not to this one")
	}
	return statementPosition{start: at, meter: parts[0]}, nil
}

// books returns the views of the balances that the query selects.
func (q *report) books(ctx context.Context, ask *StatementQuery) ([]*ledger.Book, time.Time, error) {
	if ask.Meter == "" {
		return q.ledger.Views(ctx, ask.Tenant, ask.Subject, time.Time{})
	}
	if err := q.ledger.MustExist(ctx, ask.Tenant); err != nil {
		return nil, time.Time{}, err
	}
	b, now, err := q.ledger.View(ctx, ledger.BalanceKey{Tenant: ask.Tenant, Meter: ask.Meter, Subject: ask.Subject}, time.Time{})
	if err != nil {
		return nil, time.Time{}, err
	}
	return []*ledger.Book{b}, now, nil
}

// periodsOf returns up to n periods of one balance that come after a position in the list. The newest period comes
// first: the open period, then the periods that were closed only in memory, then the stored periods.
func (q *report) periodsOf(ctx context.Context, b *ledger.Book, now time.Time, from statementPosition, n int) ([]Statement, error) {
	if err := q.follow(ctx, b.BalanceKey, b.Seq-int64(len(b.Unwritten))); err != nil {
		return nil, err
	}
	var out []Statement
	add := func(s *Statement) {
		if from.follows(s) && len(out) < n {
			out = append(out, *s)
		}
	}
	add(openPeriod(b, now))
	for _, c := range slices.Backward(b.Closed) {
		c.ClosedAt = now
		if err := eachPeriod(b, &c, from, n-len(out), add); err != nil {
			return nil, err
		}
	}
	if len(out) == n {
		return out, nil
	}
	stored := b.Start // the periods that start here or later were handled above
	if len(b.Closed) > 0 {
		stored = b.Closed[0].Start
	}
	rows, err := q.storedPeriods(ctx, b.BalanceKey, period.Earlier(stored.Add(-time.Microsecond), from.start), n-len(out))
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := eachPeriod(b, &rows[i], from, n-len(out), add); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eachPeriod visits the periods of a row, the newest first. It visits at most `most` periods that come after the list's
// position. Before them it may visit one period that does not come after the position, so visit must check each period.
func eachPeriod(b *ledger.Book, row *ledger.PeriodRow, from statementPosition, most int, visit func(*Statement)) error {
	if most <= 0 {
		return nil
	}
	if row.Idle == 0 {
		visit(statementOf(row))
		return nil
	}
	run, err := ledger.NewIdleRun(row, b.History, b.Plans)
	if err == nil {
		i := run.Len() - 1
		if from.start.Before(row.End) {
			i, err = run.IndexAt(period.Later(from.start, row.Start))
		}
		for last := max(0, i-most); err == nil && i >= last; i-- { // one period more: see above
			var p *ledger.IdlePeriod
			if p, err = run.Period(i); err == nil {
				visit(statementOf(&p.PeriodRow))
			}
		}
	}
	if err != nil {
		return &errcode.Error{Code: errcode.Internal, Detail: "the idle periods cannot be derived", Cause: err}
	}
	return nil
}

// storedPeriods returns up to n rows that start at or before an instant, the newest first. It reads one row more,
// because the first row need not follow the list's position.
func (q *report) storedPeriods(ctx context.Context, k ledger.BalanceKey, until time.Time, n int) ([]ledger.PeriodRow, error) {
	rows, _ := q.pool.Query(ctx, q.sql["PeriodsUntil"], k.Tenant, k.Meter, k.Subject, until, n+1)
	var out []ledger.PeriodRow
	c := ledger.PeriodRow{BalanceKey: k}
	_, err := pgx.ForEachRow(rows, []any{
		&c.Start, &c.End, &c.Plan, &c.PlanVersion, &c.Opening, &c.Granted, &c.Amended, &c.Refunded, &c.Used, &c.Expired, &c.Adjusted,
		&c.Overage, &c.Held, &c.Closing, &c.LastSeq, &c.ClosedAt, &c.Idle, &c.TermsAt, &c.RolledOver, &c.Rollover, &c.Owing,
	}, func() error {
		row := c
		row.Start, row.End, row.ClosedAt, row.TermsAt = c.Start.UTC(), c.End.UTC(), c.ClosedAt.UTC(), c.TermsAt.UTC()
		out = append(out, row)
		return nil
	})
	if err != nil {
		return nil, Failed("read periods", err)
	}
	return out, nil
}
