package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A batch looks for its keys in the two or three months in which keys of the last 31 days lie. If a clock was ahead,
// later months have entries as well: the batch then looks into every month.

// queueKeys queues the look-up of p's keys. It chooses the months by the clock's estimate, because it runs before the
// locks.
func (t *tx) queueKeys(out *pgx.Batch, p *plan) {
	p.firstMonth, p.lastMonth = ledger.KeyMonths(t.ledger.clock.Now())
	if t.ledger.latestMonth.Load() > int32(p.lastMonth) {
		p.search = searchEveryMonth
	}
	tenants, keys := make([]string, len(p.ids)), make([]string, len(p.ids))
	for i, id := range p.ids {
		tenants[i], keys[i] = id.Tenant, id.Key
	}
	statement, args := "EntriesOfOperations", []any{tenants, keys}
	if p.search == searchRecent {
		months := make([]*time.Time, 3)
		for i, m := 0, p.firstMonth; m <= p.lastMonth; i, m = i+1, m+1 {
			months[i] = new(m.First())
		}
		statement, args = "StoredEntries", append(args, months)
	}
	out.Queue(t.ledger.sql[statement], args...).Query(scanEntries(t.batch.Stored))
}

// remember keeps only the found entries whose keys are still remembered at the batch's instant. If keys may lie in
// months that the look-up left out, it first looks into every month.
func (t *tx) remember(ctx context.Context, p *plan) error {
	if p.search == searchRecent && t.batch.KeysMayLieOutside(p.firstMonth, p.lastMonth, t.newestMonth) {
		if err := t.lookEverywhere(ctx, p); err != nil {
			return err
		}
	}
	if len(t.batch.Stored) > 0 {
		t.batch.Remember()
	}
	return nil
}

// lookEverywhere looks for p's keys in every month. It takes one more round trip, once per process after a clock was
// ahead.
func (t *tx) lookEverywhere(ctx context.Context, p *plan) error {
	for latest := t.ledger.latestMonth.Load(); latest < int32(t.newestMonth); latest = t.ledger.latestMonth.Load() {
		t.ledger.latestMonth.CompareAndSwap(latest, int32(t.newestMonth))
	}
	out := &pgx.Batch{}
	p.search = searchEveryMonth
	clear(t.batch.Stored)
	t.queueKeys(out, p)
	return send(ctx, t.conn, out)
}

// Keys returns the remembered keys of the tenant's operations, in no order. It fails with errcode.QueueFull if there
// are more than `most` keys.
func (l *Ledger) Keys(ctx context.Context, tenant string, most int) ([]string, error) {
	var keys []string
	first, _ := ledger.KeyMonths(l.clock.Now())
	err := l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, l.sql["KeysOfTenant"], tenant, first.First(), most+1)
		keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, unavailable("read keys", err)
	}
	if len(keys) > most {
		return nil, &errcode.Error{
			Code: errcode.QueueFull, Detail: "the tenant has too many operations to read their keys",
		}
	}
	return keys, nil
}

// unlisted returns, in order, the months of entries that may not be listed in journal_months yet.
func (l *Ledger) unlisted(entries []ledger.Entry) []ledger.Month {
	var out []ledger.Month
	seen := ledger.Month(-1)
	for i := range entries {
		m := ledger.MonthOf(entries[i].CreatedAt)
		if m == seen {
			continue
		}
		seen = m
		if _, listed := l.listedMonths.Load(m); !listed && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}

func monthColumn(months []ledger.Month) []time.Time {
	out := make([]time.Time, len(months))
	for i, m := range months {
		out[i] = m.First()
	}
	return out
}
