package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// Statement is the account of one period of one balance. It foots:
// opening + granted + refunded - used - expired + adjusted = closing, and closing = remaining + held.
type Statement struct {
	ledger.BalanceKey
	ledger.Sums // Overage is not part of the sum

	Plan        string
	PlanVersion int32
	Start, End  time.Time // End zero: no end
	Closed      bool      // false: the period is open, and the figures are those of AsOf
	Closing     int64
	Lines       []StatementLine
	AsOf        time.Time
}

// StatementLine sums the entries of one kind for grants of one source, so that paid and promotional units are separate.
type StatementLine struct {
	Kind    ledger.EntryKind
	Source  ledger.Source
	Amount  int64
	Entries int64
}

// Statement returns the account of the period that starts at start. CodeNotFound: the balance has no such period.
func (r *Reader) Statement(ctx context.Context, tenant, meter, subject string, start time.Time) (*Statement, error) {
	s, err := r.StatementAt(ctx, tenant, meter, subject, start)
	if err != nil {
		return nil, err
	}
	if !s.Start.Equal(start) {
		return nil, ledger.Errorf(ledger.CodeNotFound, "period_start", "no period of meter %q starts at %s; the period that contains it starts at %s",
			meter, start.UTC().Format(time.RFC3339Nano), s.Start.Format(time.RFC3339Nano))
	}
	return s, nil
}

// StatementAt returns the account of the period that contains the instant at. CodeNotFound: the balance had no period then.
func (r *Reader) StatementAt(ctx context.Context, tenant, meter, subject string, at time.Time) (*Statement, error) {
	if e := ledger.ValidateInstant("period_start", at); e != nil {
		return nil, e
	}
	b, now, err := r.ledger.View(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}, time.Time{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if !at.Before(b.Start) {
		return r.openStatement(ctx, b, ledger.Later(now, b.UpdatedAt), at)
	}
	for i := range b.Closed {
		// The period was closed in memory only: nothing was written to the balance since.
		if c := &b.Closed[i]; !at.Before(c.Start) && at.Before(c.End) {
			s := statementOf(c)
			s.AsOf = now
			return s, r.fillLines(ctx, b, s)
		}
	}
	s, last, err := r.closedStatement(ctx, b.BalanceKey, at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ledger.Errorf(ledger.CodeNotFound, "period_start", "meter %q of tenant %q has no period at %s", meter, tenant, at.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, unavailable("read period", err)
	}
	s.Lines, err = r.sumsUntil(ctx, b.BalanceKey, last[0], last[1], period.Forever)
	return s, err
}

func statementOf(c *ledger.PeriodRow) *Statement {
	return &Statement{
		BalanceKey: c.BalanceKey, Sums: c.Sums, Plan: c.Plan, PlanVersion: c.PlanVersion, Start: c.Start, End: c.End,
		Closed: true, Closing: c.Closing, AsOf: c.ClosedAt,
	}
}

func (r *Reader) openStatement(ctx context.Context, b *ledger.Book, now, at time.Time) (*Statement, error) {
	if !at.Before(b.End) {
		return nil, ledger.Errorf(ledger.CodeNotFound, "period_start", "the open period of meter %q ends at %s", b.Meter, b.End.Format(time.RFC3339))
	}
	s := &Statement{
		BalanceKey: b.BalanceKey, Sums: b.Sums, Plan: b.Plan, PlanVersion: b.PlanVersion, Start: b.Start,
		Closing: b.Remaining() + b.Held, AsOf: now,
	}
	if b.End.Before(period.Forever) {
		s.End = b.End
	}
	return s, r.fillLines(ctx, b, s)
}

// fillLines totals a period from the entries that were stored when b was read and those that advance made in memory. It leaves out
// entries that were stored later: they may duplicate the latter.
func (r *Reader) fillLines(ctx context.Context, b *ledger.Book, s *Statement) error {
	var lines []StatementLine
	stored := b.Start // start of the period of the newest stored entries
	if len(b.Closed) > 0 {
		stored = b.Closed[0].Start
	}
	if s.Start.Equal(stored) {
		before, err := r.seqBefore(ctx, b.BalanceKey, stored)
		if err != nil {
			return err
		}
		if lines, err = r.sumsUntil(ctx, b.BalanceKey, before, b.Seq-int64(len(b.Unwritten)), period.Forever); err != nil {
			return err
		}
	}
	for i := range b.Unwritten {
		if u := &b.Unwritten[i]; u.PeriodStart.Equal(s.Start) {
			lines = append(lines, StatementLine{Kind: u.Kind, Source: u.Source, Amount: u.Amount, Entries: 1})
		}
	}
	s.Lines = mergeLines(lines)
	return nil
}

// seqBefore returns the newest entry before the period that starts at start.
func (r *Reader) seqBefore(ctx context.Context, k ledger.BalanceKey, start time.Time) (seq int64, err error) {
	if err := r.pool.QueryRow(ctx, r.sql["SeqBeforePeriod"], k.Tenant, k.Meter, k.Subject, start).Scan(&seq); err != nil {
		return 0, unavailable("read periods", err)
	}
	return seq, nil
}

func mergeLines(in []StatementLine) []StatementLine {
	slices.SortStableFunc(in, func(a, b StatementLine) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Source, b.Source))
	})
	out := []StatementLine{}
	for _, s := range in {
		if n := len(out); n > 0 && out[n-1].Kind == s.Kind && out[n-1].Source == s.Source {
			out[n-1].Amount += s.Amount
			out[n-1].Entries += s.Entries
			continue
		}
		out = append(out, s)
	}
	return out
}

// closedStatement reads a stored period and the seq range of its entries.
func (r *Reader) closedStatement(ctx context.Context, k ledger.BalanceKey, at time.Time) (*Statement, [2]int64, error) {
	c := ledger.PeriodRow{BalanceKey: k}
	var before int64
	err := r.pool.QueryRow(ctx, r.sql["PeriodAt"], k.Tenant, k.Meter, k.Subject, at).Scan(
		&c.Start, &c.End, &c.Plan, &c.PlanVersion, &c.Opening, &c.Granted, &c.Refunded, &c.Used, &c.Expired, &c.Adjusted, &c.Overage,
		&c.Held, &c.Closing, &c.LastSeq, &c.ClosedAt, &before)
	if err != nil {
		return nil, [2]int64{}, err
	}
	c.Start, c.End, c.ClosedAt = c.Start.UTC(), c.End.UTC(), c.ClosedAt.UTC()
	return statementOf(&c), [2]int64{before, c.LastSeq}, nil
}

func (r *Reader) sumsUntil(ctx context.Context, k ledger.BalanceKey, after, last int64, at time.Time) ([]StatementLine, error) {
	rows, err := r.pool.Query(ctx, r.sql["SumsUntil"], k.Tenant, k.Meter, k.Subject, after, last, at)
	if err != nil {
		return nil, unavailable("sum entries", err)
	}
	lines := []StatementLine{}
	var s StatementLine
	_, err = pgx.ForEachRow(rows, []any{&s.Kind, &s.Source, &s.Amount, &s.Entries}, func() error {
		lines = append(lines, s)
		return nil
	})
	if err != nil {
		return nil, unavailable("sum entries", err)
	}
	return lines, nil
}
