package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/period"
)

// Statement is the account of one period of one balance. It foots:
// opening + granted + refunded - used - expired + adjusted = closing, and closing = remaining + held.
type Statement struct {
	Tenant, Meter, Subject     string
	Plan                       string
	PlanVersion                int32
	Start, End                 time.Time // End zero = no end
	Closed                     bool      // false: the period is open, and the figures are those of AsOf
	Opening, Granted, Refunded int64
	Used, Expired, Adjusted    int64
	Overage                    int64 // use beyond what grants paid for; not part of the sum
	Held, Closing              int64
	Lines                      []StatementLine
	AsOf                       time.Time
}

// StatementLine sums the entries of one kind that concern grants of one source: paid and promotional units apart.
type StatementLine struct {
	Kind    string
	Source  Source
	Amount  int64
	Entries int64
}

// Statement returns the account of the period that starts at start. CodeNotFound when the balance has no such period.
func (l *Ledger) Statement(ctx context.Context, tenant, meter, subject string, start time.Time) (*Statement, error) {
	s, err := l.periodAt(ctx, tenant, meter, subject, start)
	if err != nil {
		return nil, err
	}
	if !s.Start.Equal(start) {
		return nil, errorf(CodeNotFound, "period_start", "no period of meter %q starts at %s; the one around it starts at %s",
			meter, start.UTC().Format(time.RFC3339Nano), s.Start.Format(time.RFC3339Nano))
	}
	return s, nil
}

// periodAt returns the account of the period around at.
func (l *Ledger) periodAt(ctx context.Context, tenant, meter, subject string, at time.Time) (*Statement, error) {
	if e := validInstant("period_start", at); e != nil {
		return nil, e
	}
	b, now, err := l.viewOne(ctx, tenant, meter, subject)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if !at.Before(b.start) {
		return l.openStatement(ctx, b, later(now, b.updatedAt), at)
	}
	for i := range b.closed {
		// Closed in memory only: nobody has touched the balance since.
		if c := &b.closed[i]; !at.Before(c.start) && at.Before(c.end) {
			s := statementOf(c)
			s.AsOf = now
			return s, l.fillLines(ctx, b, s)
		}
	}
	s, last, err := l.closedStatement(ctx, b.key, at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errorf(CodeNotFound, "period_start", "meter %q of tenant %q has no period at %s", meter, tenant, at.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, unavailable("read period", err)
	}
	s.Lines, err = l.sumsUntil(ctx, b.key, last[0], last[1], period.Forever)
	return s, err
}

func statementOf(c *closedPeriod) *Statement {
	return &Statement{
		Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject, Plan: c.plan, PlanVersion: c.planVersion, Start: c.start, End: c.end,
		Closed: true, Opening: c.opening, Granted: c.granted, Refunded: c.refunded, Used: c.used, Expired: c.expired,
		Adjusted: c.adjusted, Overage: c.overage, Held: c.held, Closing: c.closing, AsOf: c.closedAt,
	}
}

func (l *Ledger) openStatement(ctx context.Context, b *book, now, at time.Time) (*Statement, error) {
	if !at.Before(b.end) {
		return nil, errorf(CodeNotFound, "period_start", "the open period of meter %q ends at %s", b.Meter, b.end.Format(time.RFC3339))
	}
	s := &Statement{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, Plan: b.plan, PlanVersion: b.planVersion, Start: b.start,
		Opening: b.opening, Granted: b.granted, Refunded: b.refunded, Used: b.used, Expired: b.expired, Adjusted: b.adjusted,
		Overage: b.overage, Held: b.held, Closing: b.remaining() + b.held, AsOf: now,
	}
	if b.end.Before(period.Forever) {
		s.End = b.end
	}
	return s, l.fillLines(ctx, b, s)
}

// fillLines breaks down a period that is, at least in part, known in memory only: the entries that were stored when b was read, and
// those that advance would write. Somebody may have written them by now.
func (l *Ledger) fillLines(ctx context.Context, b *book, s *Statement) error {
	var lines []StatementLine
	stored := b.start // of the period that the newest stored entries belong to
	if len(b.closed) > 0 {
		stored = b.closed[0].start
	}
	if s.Start.Equal(stored) {
		before, err := l.seqBefore(ctx, b.key, stored)
		if err != nil {
			return err
		}
		if lines, err = l.sumsUntil(ctx, b.key, before, b.seq-int64(len(b.unwritten)), period.Forever); err != nil {
			return err
		}
	}
	for i := range b.unwritten {
		if u := &b.unwritten[i]; u.periodStart.Equal(s.Start) {
			lines = append(lines, StatementLine{Kind: u.kind, Source: u.source, Amount: u.amount, Entries: 1})
		}
	}
	s.Lines = mergeLines(lines)
	return nil
}

// seqBefore is the newest entry before the period that starts at start.
func (l *Ledger) seqBefore(ctx context.Context, k key, start time.Time) (seq int64, err error) {
	if err := l.readers.QueryRow(ctx, l.queries["SeqBeforePeriod"], k.Tenant, k.Meter, k.Subject, start).Scan(&seq); err != nil {
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
func (l *Ledger) closedStatement(ctx context.Context, k key, at time.Time) (*Statement, [2]int64, error) {
	c := closedPeriod{key: k}
	var before int64
	err := l.readers.QueryRow(ctx, l.queries["PeriodAt"], k.Tenant, k.Meter, k.Subject, at).Scan(
		&c.start, &c.end, &c.plan, &c.planVersion, &c.opening, &c.granted, &c.refunded, &c.used, &c.expired, &c.adjusted, &c.overage,
		&c.held, &c.closing, &c.lastSeq, &c.closedAt, &before)
	if err != nil {
		return nil, [2]int64{}, err
	}
	c.start, c.end, c.closedAt = c.start.UTC(), c.end.UTC(), c.closedAt.UTC()
	return statementOf(&c), [2]int64{before, c.lastSeq}, nil
}

func (l *Ledger) sumsUntil(ctx context.Context, k key, after, last int64, at time.Time) ([]StatementLine, error) {
	rows, err := l.readers.Query(ctx, l.queries["SumsUntil"], k.Tenant, k.Meter, k.Subject, after, last, at)
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

// BalanceAsOf returns a balance as it was at a past instant. Its list of grants is left out. CodeNotFound: there was none yet.
func (l *Ledger) BalanceAsOf(ctx context.Context, tenant, meter, subject string, at time.Time) (*Balance, error) {
	if e := firstOf(validID("tenant", tenant), validID("meter", meter), validSubject(subject)); e != nil {
		return nil, e
	}
	at, e := l.past(at)
	if e != nil {
		return nil, e
	}
	k := key{tenant, meter, subject}
	m, err := l.viewAt(ctx, []key{k}, at)
	if err != nil {
		return nil, err
	}
	b, failed := m.book(k, "meter")
	if failed != nil {
		return nil, failed
	}
	if b.unknown() {
		return nil, b.notInPlan()
	}
	return l.bookAsOf(ctx, b, at)
}

// BalancesAsOf returns a tenant's balances as they were at a past instant, without those that did not exist yet.
func (l *Ledger) BalancesAsOf(ctx context.Context, tenant, subject string, at time.Time) ([]Balance, error) {
	at, e := l.past(at)
	if e != nil {
		return nil, e
	}
	books, _, err := l.booksOf(ctx, tenant, subject, at)
	if err != nil {
		return nil, err
	}
	out := make([]Balance, 0, len(books))
	for _, b := range books {
		past, err := l.bookAsOf(ctx, b, at)
		switch {
		case err == nil:
			out = append(out, *past)
		case CodeOf(err) != CodeNotFound:
			return nil, err
		}
	}
	return out, nil
}

// past is at, to the microsecond, if it lies in the past.
func (l *Ledger) past(at time.Time) (time.Time, *Error) {
	at = micros(at)
	if e := validInstant("as_of", at); e != nil {
		return at, e
	}
	if now := l.estimate(); at.After(now.Add(time.Second)) {
		return at, errorf(CodeInvalidArgument, "as_of", "must not lie in the future; it is %s now", now.UTC().Format(time.RFC3339))
	}
	return at, nil
}

// bookAsOf is b, which was viewed at at, as it was then.
func (l *Ledger) bookAsOf(ctx context.Context, b *book, at time.Time) (*Balance, error) {
	// A period can begin without an entry, which updatedAt does not tell.
	if !at.Before(b.start) && (len(b.unwritten) > 0 || !b.updatedAt.After(at)) {
		out := b.public(at) // nothing was written since: what was due until then is worked off in memory
		out.AsOf, out.Grants = at, []GrantRecord{}
		return &out, nil
	}
	return l.pastBalance(ctx, b, at)
}

// pastBalance sums the entries of the period around at that were due until then.
func (l *Ledger) pastBalance(ctx context.Context, b *book, at time.Time) (*Balance, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := &Balance{Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, AsOf: at, Grants: []GrantRecord{}}
	var bounds [2]int64
	if at.Before(b.start) {
		s, found, err := l.closedStatement(ctx, b.key, at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, errorf(CodeNotFound, "as_of", "meter %q of tenant %q has no period at %s", b.Meter, b.Tenant, at.Format(time.RFC3339))
		}
		if err != nil {
			return nil, unavailable("read period", err)
		}
		out.Plan, out.PlanVersion, out.PeriodStart, out.PeriodEnd, out.Opening = s.Plan, s.PlanVersion, s.Start, s.End, s.Opening
		bounds = found
	} else {
		out.Plan, out.PlanVersion, out.PeriodStart, out.Opening = b.plan, b.planVersion, b.start, b.opening
		if b.end.Before(period.Forever) {
			out.PeriodEnd = b.end
		}
		before, err := l.seqBefore(ctx, b.key, b.start)
		if err != nil {
			return nil, err
		}
		bounds = [2]int64{before, b.seq}
	}
	lines, err := l.sumsUntil(ctx, b.key, bounds[0], bounds[1], at)
	if err != nil {
		return nil, err
	}
	// Holds of earlier periods may still have been open: they are part of opening.
	sum := balance{opening: out.Opening}
	heldBefore, err := l.heldAt(ctx, b.key, bounds[0])
	if err != nil {
		return nil, err
	}
	sum.held = heldBefore
	for _, s := range lines {
		sum.apply(s.Kind, s.Amount)
		out.Seq += s.Entries
	}
	out.Seq += bounds[0]
	out.Granted, out.Refunded, out.Used, out.Expired, out.Adjusted = sum.granted, sum.refunded, sum.used, sum.expired, sum.adjusted
	out.Held, out.Overage, out.Remaining, out.Limit = sum.held, sum.overage, sum.remaining(), sum.limit()
	return out, nil
}

// heldAt is what was held after entry seq.
func (l *Ledger) heldAt(ctx context.Context, k key, seq int64) (int64, error) {
	if seq == 0 {
		return 0, nil
	}
	lines, err := l.sumsUntil(ctx, k, 0, seq, period.Forever)
	if err != nil {
		return 0, err
	}
	var b balance
	for _, s := range lines {
		b.apply(s.Kind, s.Amount)
	}
	return b.held, nil
}

// apply moves amount as an entry of the kind does.
func (b *balance) apply(kind string, amount int64) {
	switch kind {
	case lineGrant:
		b.granted += amount
	case lineDebit:
		b.used += amount
	case lineCapture:
		b.used += amount
		b.held -= amount
	case lineOverage:
		b.overage += amount
	case lineUnoverage:
		b.overage -= amount
	case lineOwe:
		b.overage += amount
		b.owed += amount
	case lineSettle:
		b.used += amount
		b.overage -= amount
		b.owed -= amount
		b.settled += amount
	case lineUnowe:
		b.overage -= amount
		b.owed -= amount
	case lineUnsettle:
		b.refunded += amount
		b.settled -= amount
	case lineRefund:
		b.refunded += amount
	case lineExpire:
		b.expired += amount
	case lineAdjustUp:
		b.adjusted += amount
	case lineAdjustDown, lineVoid:
		b.adjusted -= amount
	case lineHold:
		b.held += amount
	case lineRelease:
		b.held -= amount
	}
}
