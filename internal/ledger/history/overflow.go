package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// fillOverflow fills in the overflow of the closed periods among the statements, which belong to one tenant. It reads
// the primary: a replica may have all entries of a balance and lack payments of another one for it.
func (q *report) fillOverflow(ctx context.Context, list ...*Statement) error {
	type periodKey struct {
		meter string
		start time.Time
	}
	closed := map[periodKey]*Statement{}
	var tenant string
	var meters []string
	var from, to time.Time
	for _, s := range list {
		if !s.Closed || s.Subject != "" {
			continue
		}
		if len(closed) == 0 {
			tenant, from, to = s.Tenant, s.Start, s.Start
		}
		from, to = period.Earlier(from, s.Start), period.Later(to, s.Start)
		closed[periodKey{s.Meter, s.Start.UTC()}], meters = s, append(meters, s.Meter)
	}
	if len(closed) == 0 {
		return nil
	}
	rows, _ := q.primary.Query(ctx, q.sql["Overflows"], tenant, meters, from, to)
	var k periodKey
	var units int64
	_, err := pgx.ForEachRow(rows, []any{&k.meter, &k.start, &units}, func() error {
		k.start = k.start.UTC()
		if s := closed[k]; s != nil {
			s.Overflow = units
		}
		return nil
	})
	if err != nil {
		return Failed("read what other meters paid", err)
	}
	return nil
}

// payments are ranges of entries of meters that paid for units of another meter, as parallel arrays.
type payments struct {
	meters      []string
	after, last []int64
}

func (p *payments) add(meter string, s span) {
	p.meters, p.after, p.last = append(p.meters, meter), append(p.after, s.after), append(p.last, s.last)
}

// paymentsFor returns the entries of meters that paid for units of a balance in the given times. A cap of a subject has
// none: its use includes the units that other meters of the tenant paid for.
func (q *report) paymentsFor(ctx context.Context, k ledger.BalanceKey, times ...[2]time.Time) (*payments, error) {
	out := &payments{meters: []string{}, after: []int64{}, last: []int64{}}
	if k.Subject != "" {
		return out, nil
	}
	meters, err := q.paidBy(ctx, k, times[0][0], times[len(times)-1][1])
	if err != nil {
		return nil, err
	}
	for _, meter := range meters {
		payer := ledger.BalanceKey{Tenant: k.Tenant, Meter: meter}
		newest, err := q.newest(ctx, payer)
		if err != nil {
			return nil, err
		}
		for _, t := range times {
			s, err := q.between(ctx, payer, span{0, newest}, t[0], t[1])
			if err != nil {
				return nil, err
			}
			out.add(meter, s)
		}
	}
	return out, nil
}

// paidBy returns the meters that paid for units of a balance in the periods that overlap [from, to).
func (q *report) paidBy(ctx context.Context, k ledger.BalanceKey, from, to time.Time) ([]string, error) {
	rows, _ := q.pool.Query(ctx, q.sql["PaidBy"], k.Tenant, k.Meter, from, to)
	meters, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, Failed("read what other meters paid", err)
	}
	return meters, nil
}

// wholeQuarters returns the whole quarters of an hour in [from, to). If there is none, both results are to.
func wholeQuarters(from, to time.Time) (first, end time.Time) {
	first, end = from.UTC().Truncate(ledger.OverflowStep), to.UTC().Truncate(ledger.OverflowStep)
	if first.Before(from) {
		first = first.Add(ledger.OverflowStep)
	}
	if !first.Before(end) {
		return to, to
	}
	return first, end
}

// overflowAsOf fills in the overflow of a past balance.
func (q *report) overflowAsOf(ctx context.Context, past *ledger.Balance) error {
	past.Overflow = 0
	if past.Subject != "" {
		return nil
	}
	on := &report{Reader: q.Reader, pool: q.primary} // as in fillOverflow
	quarter, end := past.AsOf.UTC().Truncate(ledger.OverflowStep), past.AsOf.Add(time.Microsecond)
	paid, err := on.paymentsFor(ctx, past.BalanceKey, [2]time.Time{quarter, end})
	if err != nil || len(paid.meters) == 0 {
		return err
	}
	err = q.primary.QueryRow(ctx, q.sql["OverflowAsOf"], past.Tenant, past.Meter, past.PeriodStart, quarter,
		paid.meters, paid.after, paid.last, q.lastMonth()).Scan(&past.Overflow)
	if err != nil {
		return Failed("read what other meters paid", err)
	}
	return nil
}
