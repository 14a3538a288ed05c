package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Statement is the account of one period of one balance. Its sums agree: opening + granted + amended + refunded -
// used - expired + adjusted = closing, and closing = remaining + held.
type Statement struct {
	ledger.BalanceKey
	ledger.Sums // Overage is not part of the sum

	Overflow    int64 // units that other meters paid for; part of no sum. The largest int64 stands for any larger number
	Plan        string
	PlanVersion int32
	Start, End  time.Time // End zero: no end
	Closed      bool      // false: the period is open, and the sums are those at AsOf
	Closing     int64
	Lines       []StatementLine
	AsOf        time.Time
}

// StatementLine sums the entries of one kind for grants of one source, so that paid and promotional units are separate.
type StatementLine struct {
	Kind    ledger.EntryKind // one of Kinds
	Source  ledger.Source
	Amount  int64 // below 0 only for Amend; the largest int64 stands for any larger sum
	Entries int64
}

// Statement returns the account of the period that starts at start. It returns errcode.NotFound if the balance has no
// such period.
func (r *Reader) Statement(ctx context.Context, tenant, meter, subject string, start time.Time) (*Statement, error) {
	if e := ledger.ValidateInstant("period_start", start); e != nil {
		return nil, e
	}
	s, err := r.statementOf(ctx, tenant, meter, subject, func(*ledger.Book) time.Time { return start })
	if err != nil {
		return nil, err
	}
	if !s.Start.Equal(start) {
		return nil, errcode.Errorf(errcode.NotFound, "period_start", "no period of meter %q starts at %s; the period that contains it starts at %s",
			meter, start.UTC().Format(time.RFC3339Nano), s.Start.Format(time.RFC3339Nano))
	}
	return s, nil
}

// StatementAt returns the account of the period that contains a past instant. It returns errcode.NotFound if the
// balance had no period then, and errcode.Archived if the period ended before the oldest instant in the database.
func (r *Reader) StatementAt(ctx context.Context, tenant, meter, subject string, at time.Time) (*Statement, error) {
	at, e := r.past(ctx, "period_start", at)
	if e != nil {
		return nil, e
	}
	return r.statementOf(ctx, tenant, meter, subject, func(*ledger.Book) time.Time { return at })
}

// StatementCurrent returns the account of the open period.
func (r *Reader) StatementCurrent(ctx context.Context, tenant, meter, subject string) (*Statement, error) {
	return r.statementOf(ctx, tenant, meter, subject, func(b *ledger.Book) time.Time { return b.Start })
}

// StatementLast returns the account of the newest closed period. It returns errcode.NotFound if no period was closed.
func (r *Reader) StatementLast(ctx context.Context, tenant, meter, subject string) (*Statement, error) {
	return r.statementOf(ctx, tenant, meter, subject, func(b *ledger.Book) time.Time { return b.Start.Add(-time.Microsecond) })
}

// statementOf returns the account of the period that contains the instant that pick returns.
func (r *Reader) statementOf(ctx context.Context, tenant, meter, subject string, pick func(*ledger.Book) time.Time) (*Statement, error) {
	var last time.Time // the last instant of the period
	s, err := reported(ctx, r, func(ctx context.Context, q *report) (*Statement, error) {
		s, err := q.statementAt(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}, func(b *ledger.Book) time.Time {
			last = pick(b)
			return last
		})
		if err != nil {
			return nil, err
		}
		return s, q.fillOverflow(ctx, s)
	})
	if err == nil {
		if last = s.End.Add(-time.Microsecond); s.End.IsZero() {
			last = s.AsOf
		}
	}
	if last.IsZero() {
		return nil, err // there is no such balance
	}
	return unlessArchived(ctx, r, tenant, "period_start", last, s, err)
}

func (q *report) statementAt(ctx context.Context, k ledger.BalanceKey, pick func(*ledger.Book) time.Time) (*Statement, error) {
	b, now, err := q.ledger.View(ctx, k, time.Time{})
	if err != nil {
		return nil, err
	}
	if err := q.follow(ctx, k, b.Seq-int64(len(b.Unwritten))); err != nil {
		return nil, err
	}
	at := pick(b)
	if !at.Before(b.Start) {
		return q.openStatement(ctx, b, period.Later(now, b.UpdatedAt), at)
	}
	for i := range b.Closed {
		// The period was closed in memory only: nothing was written to the balance since.
		if c := &b.Closed[i]; !at.Before(c.Start) && at.Before(c.End) {
			if c.Idle > 0 {
				s, _, err := derived(b, c, at)
				if err == nil {
					s.AsOf = now
				}
				return s, err
			}
			s := statementOf(c)
			s.AsOf = now
			return s, q.fillLines(ctx, b, s)
		}
	}
	c, err := q.closedPeriod(ctx, k, at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errcode.Errorf(errcode.NotFound, "period_start", "meter %q of tenant %q has no period at %s", k.Meter, k.Tenant, at.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, Failed("read period", err)
	}
	if c.Idle > 0 {
		s, _, err := derived(b, &c.PeriodRow, at)
		return s, err
	}
	s := statementOf(&c.PeriodRow)
	sums, err := q.sums(ctx, k, c.own)
	s.Lines = linesOf(sums)
	return s, err
}

func statementOf(c *ledger.PeriodRow) *Statement {
	return &Statement{
		BalanceKey: c.BalanceKey, Sums: c.Sums, Plan: c.Plan, PlanVersion: c.PlanVersion, Start: c.Start, End: c.End,
		Closed: true, Closing: c.Closing, AsOf: c.ClosedAt,
	}
}

func (q *report) openStatement(ctx context.Context, b *ledger.Book, now, at time.Time) (*Statement, error) {
	if !at.Before(b.End) {
		return nil, errcode.Errorf(errcode.NotFound, "period_start", "the open period of meter %q ends at %s", b.Meter, b.End.Format(time.RFC3339))
	}
	s := openPeriod(b, now)
	return s, q.fillLines(ctx, b, s)
}

// openPeriod returns the account of the open period without its lines.
func openPeriod(b *ledger.Book, now time.Time) *Statement {
	s := &Statement{
		BalanceKey: b.BalanceKey, Sums: b.Sums, Overflow: b.Overflow.In(b.Start), Plan: b.Plan, PlanVersion: b.PlanVersion, Start: b.Start,
		Closing: b.Remaining() + b.Held, AsOf: now,
	}
	if b.End.Before(period.Forever) {
		s.End = b.End
	}
	return s
}

// fillLines computes the lines of a period from two sets of entries: those that were stored when b was read, and
// those that advance made in memory. It leaves out entries that were stored later, because they may be the stored
// form of entries made in memory.
func (q *report) fillLines(ctx context.Context, b *ledger.Book, s *Statement) error {
	var sums []sum
	stored := b.Start // start of the period of the newest stored entries
	if len(b.Closed) > 0 {
		stored = b.Closed[0].Start
	}
	if s.Start.Equal(stored) {
		before, _, err := q.beforePeriod(ctx, b.BalanceKey, stored)
		if err != nil {
			return err
		}
		if sums, err = q.sums(ctx, b.BalanceKey, span{before, b.Seq - int64(len(b.Unwritten))}); err != nil {
			return err
		}
	}
	for i := range b.Unwritten {
		if u := &b.Unwritten[i]; u.PeriodStart.Equal(s.Start) {
			sums = append(sums, sumOf(u))
		}
	}
	s.Lines = linesOf(sums)
	return nil
}

// beforePeriod returns the seq of the newest entry before the period that starts at start, and the units that were
// held then.
func (q *report) beforePeriod(ctx context.Context, k ledger.BalanceKey, start time.Time) (seq, held int64, err error) {
	err = q.pool.QueryRow(ctx, q.sql["BeforePeriod"], k.Tenant, k.Meter, k.Subject, start).Scan(&seq, &held)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, Failed("read periods", err)
	}
	return seq, held, nil
}

// closedPeriod is a stored period, or a run of idle periods.
type closedPeriod struct {
	ledger.PeriodRow

	own        span  // entries of the period
	heldBefore int64 // units that were held when it began
}

// closedPeriod reads the stored period that contains an instant. It returns pgx.ErrNoRows if there is no such period.
func (q *report) closedPeriod(ctx context.Context, k ledger.BalanceKey, at time.Time) (*closedPeriod, error) {
	c := &closedPeriod{PeriodRow: ledger.PeriodRow{BalanceKey: k}}
	err := q.pool.QueryRow(ctx, q.sql["PeriodAt"], k.Tenant, k.Meter, k.Subject, at).Scan(
		&c.Start, &c.End, &c.Plan, &c.PlanVersion, &c.Opening, &c.Granted, &c.Amended, &c.Refunded, &c.Used, &c.Expired, &c.Adjusted,
		&c.Overage, &c.Held, &c.Closing, &c.LastSeq, &c.ClosedAt, &c.Idle, &c.TermsAt, &c.RolledOver, &c.Rollover, &c.Owing, &c.own.after, &c.heldBefore)
	if errors.Is(err, pgx.ErrNoRows) && q.pool != q.primary {
		q.pool = q.primary // a period may have been closed without an entry: the replica may not have it yet
		return q.closedPeriod(ctx, k, at)
	}
	if err != nil {
		return nil, err
	}
	c.Start, c.End, c.ClosedAt, c.TermsAt, c.own.last = c.Start.UTC(), c.End.UTC(), c.ClosedAt.UTC(), c.TermsAt.UTC(), c.LastSeq
	return c, nil
}
