package denial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const (
	// CountsMax is the largest number of counts in an answer. If one limit refuses a tenant in every minute of a day,
	// the tenant has 1,440 counts.
	CountsMax = 2000

	// DefaultSpan is the time that a query without From covers.
	DefaultSpan = 24 * time.Hour
)

// Query selects the denials of a tenant in [From, To).
type Query struct {
	Tenant string
	From   time.Time // zero: DefaultSpan before To
	To     time.Time // zero: now
	Limit  int       // largest number of explanations; 1 or more
}

// Count is the number of denials with the same code, meter and rule in a minute.
type Count struct {
	Minute            time.Time
	Code, Meter, Rule string // as in Denial: Meter and Rule may be empty or Other
	N                 int64
}

// List is the answer to a query.
type List struct {
	From, To time.Time
	Denials  []Denial // newest first
	Counts   []Count  // newest first

	// CountsFrom is the first minute from which the counts are complete, if there are more than CountsMax counts.
	// Zero: all counts are in the answer.
	CountsFrom time.Time
}

// Read answers q, with the connections and time limits of the reports of r. Errors are *errcode.Error:
// errcode.TenantNotFound, errcode.InvalidArgument if To is not later than From, or errors of reports.
func Read(ctx context.Context, r *history.Reader, now time.Time, q Query) (List, error) {
	if q.To.IsZero() {
		q.To = now.Add(time.Minute).Truncate(time.Minute) // to include the present minute
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-DefaultSpan)
	}
	if !q.From.Before(q.To) {
		return List{}, errcode.Errorf(errcode.InvalidArgument, "to", "must be later than from")
	}
	return history.Report(ctx, r, q.Tenant, func(ctx context.Context, pool *pgxpool.Pool) (List, error) {
		out := List{From: q.From.UTC(), To: q.To.UTC()}
		var err error
		if out.Denials, err = readRecent(ctx, pool, &q); err != nil {
			return List{}, history.Failed("read denials", err)
		}
		if out.Counts, err = readCounts(ctx, pool, &q); err != nil {
			return List{}, history.Failed("count denials", err)
		}
		if len(out.Counts) > CountsMax {
			cut := out.Counts[CountsMax].Minute
			out.Counts = slices.DeleteFunc(out.Counts, func(c Count) bool { return !c.Minute.After(cut) })
			out.CountsFrom = cut.Add(time.Minute)
		}
		return out, nil
	})
}

func readRecent(ctx context.Context, pool *pgxpool.Pool, q *Query) ([]Denial, error) {
	var text []byte
	if err := pool.QueryRow(ctx, queries["SelectRecent"], q.Tenant).Scan(&text); errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	all, err := decode(q.Tenant, text)
	if err != nil {
		return nil, fmt.Errorf("decode explanations: %w", err)
	}
	slices.SortStableFunc(all, func(a, b Denial) int { return b.At.Compare(a.At) }) // several instances add to the list
	all = slices.DeleteFunc(all, func(d Denial) bool { return d.At.Before(q.From) || !d.At.Before(q.To) })
	return all[:min(len(all), q.Limit)], nil
}

func readCounts(ctx context.Context, pool *pgxpool.Pool, q *Query) ([]Count, error) {
	rows, _ := pool.Query(ctx, queries["SelectCounts"], q.Tenant, q.From.Truncate(time.Minute), q.To, CountsMax+1)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Count, err error) {
		err = row.Scan(&c.Minute, &c.Code, &c.Meter, &c.Rule, &c.N)
		c.Minute = c.Minute.UTC()
		return c, err
	})
}
