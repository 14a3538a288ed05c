package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// span is a range of entries of one balance: those with seq in (after, last].
type span struct{ after, last int64 }

// lastMonth returns the last month that may have entries, with a margin for clocks that differ.
func (r *Reader) lastMonth() time.Time {
	now := r.ledger.Now().UTC()
	return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// until returns the part of s that was written at or before an instant.
func (q *report) until(ctx context.Context, k ledger.BalanceKey, s span, at time.Time) (span, error) {
	if s.last <= s.after {
		return s, nil
	}
	err := q.pool.QueryRow(ctx, q.sql["SeqAt"], k.Tenant, k.Meter, k.Subject, at, s.after, s.last, q.lastMonth()).Scan(&s.last)
	if err != nil {
		return span{}, failed("find entries by time", err)
	}
	return s, nil
}

// between returns the part of s that was written in [from, to).
func (q *report) between(ctx context.Context, k ledger.BalanceKey, s span, from, to time.Time) (span, error) {
	before, err := q.until(ctx, k, s, from.Add(-time.Microsecond))
	if err != nil {
		return span{}, err
	}
	return q.until(ctx, k, span{before.last, s.last}, to.Add(-time.Microsecond))
}

// sums returns the sums of s by kind and source.
func (q *report) sums(ctx context.Context, k ledger.BalanceKey, s span) ([]StatementLine, error) {
	return q.lines(ctx, "SumsBetween", k.Tenant, k.Meter, k.Subject, s.after, s.last, q.lastMonth())
}

// sumsAsOf returns the sums of the entries of s that were due at or before an instant.
func (q *report) sumsAsOf(ctx context.Context, k ledger.BalanceKey, s span, at time.Time) ([]StatementLine, error) {
	written, err := q.until(ctx, k, s, at)
	if err != nil {
		return nil, err
	}
	lines, err := q.sums(ctx, k, written)
	if err != nil {
		return nil, err
	}
	late, err := q.lines(ctx, "LateSums", k.Tenant, k.Meter, k.Subject, written.last, s.last, at, q.lastMonth())
	if err != nil {
		return nil, err
	}
	return mergeLines(append(lines, late...)), nil
}

func (q *report) lines(ctx context.Context, statement string, args ...any) ([]StatementLine, error) {
	rows, err := q.pool.Query(ctx, q.sql[statement], args...)
	if err != nil {
		return nil, failed("sum entries", err)
	}
	lines := []StatementLine{}
	var s StatementLine
	_, err = pgx.ForEachRow(rows, []any{&s.Kind, &s.Source, &s.Amount, &s.Entries}, func() error {
		lines = append(lines, s)
		return nil
	})
	if err != nil {
		return nil, failed("sum entries", err)
	}
	return lines, nil
}
