package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
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
		return span{}, Failed("find entries by time", err)
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

// sum is the total of the entries of one kind and source. It may exceed 64 bits. Use in a period is bounded, but
// units that are held and released again, or granted and taken back, are not.
type sum struct {
	kind    ledger.EntryKind
	source  ledger.Source
	amount  *big.Int
	entries int64
}

func sumOf(e *ledger.Entry) sum {
	return sum{kind: e.Kind, source: e.Source, amount: big.NewInt(e.Amount), entries: 1}
}

// merged adds up the sums of the same kind and source, in order.
func merged(in []sum) []sum {
	slices.SortStableFunc(in, func(a, b sum) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.source, b.source)) })
	var out []sum
	for _, s := range in {
		if n := len(out); n > 0 && out[n-1].kind == s.kind && out[n-1].source == s.source {
			out[n-1].amount.Add(out[n-1].amount, s.amount)
			out[n-1].entries += s.entries
			continue
		}
		out = append(out, s)
	}
	return out
}

// linesOf returns sums in the form of a statement's lines.
func linesOf(sums []sum) []StatementLine {
	sums = shown(sums)
	lines := make([]StatementLine, len(sums))
	for i, s := range sums {
		lines[i] = StatementLine{Kind: s.kind, Source: s.source, Amount: math.MaxInt64, Entries: s.entries}
		if s.amount.IsInt64() {
			lines[i].Amount = s.amount.Int64()
		}
	}
	return lines
}

// apply adds entered to the sums of a balance. The resulting sums always fit into 64 bits, so addition modulo 2^64 is
// exact. It returns an error for a kind of entry that this version does not know.
func apply(sums *ledger.Sums, entered []sum) error {
	for _, s := range entered {
		if _, known := s.kind.Moves(); !known {
			return &errcode.Error{Code: errcode.Internal, Detail: "the journal has entries that this version does not know: " + string(s.kind)}
		}
		low := new(big.Int).And(s.amount, new(big.Int).SetUint64(math.MaxUint64))
		sums.Apply(s.kind, int64(low.Uint64()))
	}
	return nil
}

// sums returns the sums of s by kind and source.
func (q *report) sums(ctx context.Context, k ledger.BalanceKey, s span) ([]sum, error) {
	return q.collectSums(ctx, "SumsBetween", k.Tenant, k.Meter, k.Subject, s.after, s.last, q.lastMonth())
}

// sumsAsOf returns the sums of the entries of s that were due at or before an instant.
func (q *report) sumsAsOf(ctx context.Context, k ledger.BalanceKey, s span, at time.Time) ([]sum, error) {
	written, err := q.until(ctx, k, s, at)
	if err != nil {
		return nil, err
	}
	sums, err := q.sums(ctx, k, written)
	if err != nil {
		return nil, err
	}
	late, err := q.collectSums(ctx, "LateSums", k.Tenant, k.Meter, k.Subject, written.last, s.last, at, q.lastMonth())
	if err != nil {
		return nil, err
	}
	return merged(append(sums, late...)), nil
}

func (q *report) collectSums(ctx context.Context, statement string, args ...any) ([]sum, error) {
	rows, _ := q.pool.Query(ctx, q.sql[statement], args...)
	var sums []sum
	var s sum
	var amount string
	_, err := pgx.ForEachRow(rows, []any{&s.kind, &s.source, &amount, &s.entries}, func() error {
		var whole bool
		if s.amount, whole = new(big.Int).SetString(amount, 10); !whole {
			return fmt.Errorf("%q is no sum of entries", amount)
		}
		sums = append(sums, s)
		return nil
	})
	if err != nil {
		return nil, Failed("sum entries", err)
	}
	return sums, nil
}
