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

// BalanceAsOf returns a balance as it was at a past instant. Its list of grants is empty. It returns errcode.NotFound
// if the balance did not exist yet.
func (r *Reader) BalanceAsOf(ctx context.Context, tenant, meter, subject string, at time.Time) (*ledger.Balance, error) {
	at, e := r.past(ctx, "as_of", at)
	if e != nil {
		return nil, e
	}
	past, err := reported(ctx, r, func(ctx context.Context, q *report) (*ledger.Balance, error) {
		b, _, err := q.ledger.View(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}, at)
		if err != nil {
			return nil, err
		}
		past, err := q.bookAsOf(ctx, b, at)
		if err != nil {
			return nil, err
		}
		return past, q.overflowAsOf(ctx, past)
	})
	return unlessArchived(ctx, r, tenant, "as_of", at, past, err)
}

// BalancesAsOf returns a tenant's balances as they were at a past instant, without balances that did not exist yet.
func (r *Reader) BalancesAsOf(ctx context.Context, tenant, subject string, at time.Time) ([]ledger.Balance, error) {
	at, e := r.past(ctx, "as_of", at)
	if e != nil {
		return nil, e
	}
	past, err := reported(ctx, r, func(ctx context.Context, q *report) ([]ledger.Balance, error) {
		books, _, err := q.ledger.Views(ctx, tenant, subject, at)
		if err != nil {
			return nil, err
		}
		out := make([]ledger.Balance, 0, len(books))
		for _, b := range books {
			past, err := q.bookAsOf(ctx, b, at)
			switch {
			case err == nil:
				if err := q.overflowAsOf(ctx, past); err != nil {
					return nil, err
				}
				out = append(out, *past)
			case errcode.Of(err) != errcode.NotFound:
				return nil, err
			}
		}
		return out, nil
	})
	return unlessArchived(ctx, r, tenant, "as_of", at, past, err)
}

// past returns the instant `at`, cut to microseconds, if it lies in the past. field is its name in errors. The
// instance's clock may have been changed since PostgreSQL's clock was read, so past reads PostgreSQL's clock again
// before it refuses an instant.
func (r *Reader) past(ctx context.Context, field string, at time.Time) (time.Time, error) {
	at = period.Micros(at)
	if e := ledger.ValidateInstant(field, at); e != nil {
		return at, e
	}
	if !at.After(r.ledger.Now().Add(time.Second)) {
		return at, nil
	}
	if err := r.ledger.Ping(ctx); err != nil {
		return at, err
	}
	if now := r.ledger.Now(); at.After(now.Add(time.Second)) {
		return at, errcode.Errorf(errcode.InvalidArgument, field, "must not lie in the future; it is %s now", now.UTC().Format(time.RFC3339))
	}
	return at, nil
}

// bookAsOf returns a balance as it was at an instant. b is a view of the balance at that instant.
func (q *report) bookAsOf(ctx context.Context, b *ledger.Book, at time.Time) (*ledger.Balance, error) {
	// A period can begin without an entry; UpdatedAt does not show that.
	if !at.Before(b.Start) && (len(b.Unwritten) > 0 || !b.UpdatedAt.After(at)) {
		out := b.View(at) // nothing was written since: the view has processed due events in memory
		out.AsOf, out.Grants = at, []ledger.GrantRecord{}
		return &out, nil
	}
	return q.pastBalance(ctx, b, at)
}

// pastBalance adds up the entries that were due until an instant, in the period that contains the instant.
func (q *report) pastBalance(ctx context.Context, b *ledger.Book, at time.Time) (*ledger.Balance, error) {
	if err := q.follow(ctx, b.BalanceKey, b.Seq-int64(len(b.Unwritten))); err != nil {
		return nil, err
	}
	out := &ledger.Balance{BalanceKey: b.BalanceKey, AsOf: at, Grants: []ledger.GrantRecord{}}
	var own span // the entries of the period
	var held int64
	if at.Before(b.Start) {
		c, err := q.closedPeriod(ctx, b.BalanceKey, at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, errcode.Errorf(errcode.NotFound, "as_of", "meter %q of tenant %q has no period at %s", b.Meter, b.Tenant, at.Format(time.RFC3339))
		}
		if err != nil {
			return nil, Failed("read period", err)
		}
		if c.Idle > 0 {
			s, sums, err := derived(b, &c.PeriodRow, at)
			if err != nil {
				return nil, err
			}
			out.Plan, out.PlanVersion, out.PeriodStart, out.PeriodEnd, out.Carried = s.Plan, s.PlanVersion, s.Start, s.End, new(int64(0))
			out.Sums, out.Remaining, out.Limit, out.Seq = sums, sums.Remaining(), sums.Limit(), c.own.after
			return out, nil
		}
		out.Plan, out.PlanVersion, out.PeriodStart, out.PeriodEnd, out.Opening = c.Plan, c.PlanVersion, c.Start, c.End, c.Opening
		own, held = c.own, c.heldBefore
	} else {
		out.Plan, out.PlanVersion, out.PeriodStart, out.Opening, out.Carried = b.Plan, b.PlanVersion, b.Start, b.Opening, new(b.Carried)
		if b.End.Before(period.Forever) {
			out.PeriodEnd = b.End
		}
		var err error
		if own.after, held, err = q.beforePeriod(ctx, b.BalanceKey, b.Start); err != nil {
			return nil, err
		}
		own.last = b.Seq
	}
	entered, err := q.sumsAsOf(ctx, b.BalanceKey, own, at)
	if err != nil {
		return nil, err
	}
	// If holds of earlier periods are still open, Opening includes their units.
	sums := ledger.Sums{Opening: out.Opening, Held: held}
	if err := apply(&sums, entered); err != nil {
		return nil, err
	}
	out.Seq = own.after
	for _, s := range entered {
		out.Seq += s.entries
	}
	out.Sums, out.Remaining, out.Limit = sums, sums.Remaining(), sums.Limit()
	return out, nil
}
