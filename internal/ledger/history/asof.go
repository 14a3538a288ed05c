package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// BalanceAsOf returns a balance as it was at a past instant. Its list of grants is empty. CodeNotFound: the balance did not exist yet.
func (r *Reader) BalanceAsOf(ctx context.Context, tenant, meter, subject string, at time.Time) (*ledger.Balance, error) {
	at, e := r.past(at)
	if e != nil {
		return nil, e
	}
	b, _, err := r.ledger.View(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}, at)
	if err != nil {
		return nil, err
	}
	return r.bookAsOf(ctx, b, at)
}

// BalancesAsOf returns a tenant's balances as they were at a past instant, without those that did not exist yet.
func (r *Reader) BalancesAsOf(ctx context.Context, tenant, subject string, at time.Time) ([]ledger.Balance, error) {
	at, e := r.past(at)
	if e != nil {
		return nil, e
	}
	books, _, err := r.ledger.Views(ctx, tenant, subject, at)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Balance, 0, len(books))
	for _, b := range books {
		past, err := r.bookAsOf(ctx, b, at)
		switch {
		case err == nil:
			out = append(out, *past)
		case ledger.CodeOf(err) != ledger.CodeNotFound:
			return nil, err
		}
	}
	return out, nil
}

// past returns at, to the microsecond, if it lies in the past.
func (r *Reader) past(at time.Time) (time.Time, *ledger.Error) {
	at = ledger.Micros(at)
	if e := ledger.ValidateInstant("as_of", at); e != nil {
		return at, e
	}
	if now := r.ledger.Now(); at.After(now.Add(time.Second)) {
		return at, ledger.Errorf(ledger.CodeInvalidArgument, "as_of", "must not lie in the future; it is %s now", now.UTC().Format(time.RFC3339))
	}
	return at, nil
}

// bookAsOf returns b, which was viewed at the instant at, as it was then.
func (r *Reader) bookAsOf(ctx context.Context, b *ledger.Book, at time.Time) (*ledger.Balance, error) {
	// A period can begin without an entry; UpdatedAt does not show that.
	if !at.Before(b.Start) && (len(b.Unwritten) > 0 || !b.UpdatedAt.After(at)) {
		out := b.View(at) // nothing was written since: what was due until then is worked off in memory
		out.AsOf, out.Grants = at, []ledger.GrantRecord{}
		return &out, nil
	}
	return r.pastBalance(ctx, b, at)
}

// pastBalance sums the entries that were due until at, in the period that contains it.
func (r *Reader) pastBalance(ctx context.Context, b *ledger.Book, at time.Time) (*ledger.Balance, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := &ledger.Balance{BalanceKey: b.BalanceKey, AsOf: at, Grants: []ledger.GrantRecord{}}
	var bounds [2]int64
	if at.Before(b.Start) {
		s, found, err := r.closedStatement(ctx, b.BalanceKey, at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, ledger.Errorf(ledger.CodeNotFound, "as_of", "meter %q of tenant %q has no period at %s", b.Meter, b.Tenant, at.Format(time.RFC3339))
		}
		if err != nil {
			return nil, unavailable("read period", err)
		}
		out.Plan, out.PlanVersion, out.PeriodStart, out.PeriodEnd, out.Opening = s.Plan, s.PlanVersion, s.Start, s.End, s.Opening
		bounds = found
	} else {
		out.Plan, out.PlanVersion, out.PeriodStart, out.Opening, out.Carried = b.Plan, b.PlanVersion, b.Start, b.Opening, new(b.Carried)
		if b.End.Before(period.Forever) {
			out.PeriodEnd = b.End
		}
		before, err := r.seqBefore(ctx, b.BalanceKey, b.Start)
		if err != nil {
			return nil, err
		}
		bounds = [2]int64{before, b.Seq}
	}
	lines, err := r.sumsUntil(ctx, b.BalanceKey, bounds[0], bounds[1], at)
	if err != nil {
		return nil, err
	}
	// Holds of earlier periods may still have been open: they are part of opening.
	held, err := r.heldAt(ctx, b.BalanceKey, bounds[0])
	if err != nil {
		return nil, err
	}
	sums := ledger.Sums{Opening: out.Opening, Held: held}
	if err := addLines(&sums, lines); err != nil {
		return nil, err
	}
	out.Seq = bounds[0]
	for _, line := range lines {
		out.Seq += line.Entries
	}
	out.Sums, out.Remaining, out.Limit = sums, sums.Remaining(), sums.Limit()
	return out, nil
}

// heldAt returns what was held after entry seq.
func (r *Reader) heldAt(ctx context.Context, k ledger.BalanceKey, seq int64) (int64, error) {
	if seq == 0 {
		return 0, nil
	}
	lines, err := r.sumsUntil(ctx, k, 0, seq, period.Forever)
	if err != nil {
		return 0, err
	}
	var sums ledger.Sums
	err = addLines(&sums, lines)
	return sums.Held, err
}

// addLines adds lines to sums. It fails on a kind of entry that this version does not know.
func addLines(sums *ledger.Sums, lines []StatementLine) error {
	for _, line := range lines {
		if _, known := line.Kind.Moves(); !known {
			return &ledger.Error{Code: ledger.CodeInternal, Detail: "the journal has entries that this version does not know: " + string(line.Kind)}
		}
		sums.Apply(line.Kind, line.Amount)
	}
	return nil
}
