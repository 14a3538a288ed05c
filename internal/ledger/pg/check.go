package pg

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// CheckOutcome is the answer to one check: exactly one of its fields is set.
type CheckOutcome struct {
	Result *ledger.CheckResult
	Err    error
}

// CheckBatch returns the answers that debits would get now, in the order of requests. It reads all balances from
// PostgreSQL together, and records nothing.
func (l *Ledger) CheckBatch(ctx context.Context, requests []ledger.CheckRequest) []CheckOutcome {
	out := make([]CheckOutcome, len(requests))
	open := make([]*check, 0, len(requests))
	for i := range requests {
		if out[i].Err = requests[i].Validate(); out[i].Err == nil {
			open = append(open, &check{&requests[i], &out[i]})
		}
	}
	for _, group := range divide(l, open, func(c *check) string { return c.request.Tenant }) {
		l.checkTogether(ctx, group)
	}
	return out
}

// check is a request and its outcome, which is filled in later.
type check struct {
	request *ledger.CheckRequest
	out     *CheckOutcome
}

// callsOf returns the debits that the checks simulate, for a plan.
func callsOf(checks []*check) []*ledger.Call {
	calls := make([]*ledger.Call, len(checks))
	for i, c := range checks {
		calls[i] = ledger.NewCall(c.request.Debit())
	}
	return calls
}

// checkTogether answers the requests of one shard group: from the rows of their balances if the rows are enough,
// otherwise from a view.
func (l *Ledger) checkTogether(ctx context.Context, open []*check) {
	if open = l.checkRows(ctx, open); len(open) > 0 {
		l.checkViews(ctx, open)
	}
}

// checkRows answers the checks for which the rows of their balances are enough. They are enough if no event is due,
// the head grant covers the amount, and the plan's allowance is known, as for most debits. It takes one round trip
// with two statements; a view takes seven statements. It returns the checks that it did not answer. If a row cannot
// be read, it returns all checks, because a view finds out which row.
func (l *Ledger) checkRows(ctx context.Context, open []*check) (rest []*check) {
	rows := make([]*check, 0, len(open))
	calls := callsOf(open)
	for i, c := range open {
		if len(l.learned.keysFor(calls[i:i+1])) > 0 { // the decision needs further balances
			rest = append(rest, c)
			continue
		}
		rows = append(rows, c)
	}
	if len(rows) == 0 {
		return rest
	}
	p := newPlan(callsOf(rows))
	p.located = &ledger.Located{}
	p.arrange()
	var t *tx
	err := l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		t = &tx{ledger: l, conn: conn, batch: ledger.NewBatch()}
		err := t.readRows(ctx, p)
		if err != nil && !isUnreadable(err) {
			return unavailable("read balances", err)
		}
		return err
	})
	switch {
	case err == nil:
	case isUnreadable(err):
		return open
	default:
		for _, c := range rows {
			c.out.Err = err
		}
		return rest
	}
	t.dropLacking(p)
	for _, c := range rows {
		if !t.answers(c) {
			rest = append(rest, c)
		}
	}
	return rest
}

// readRows reads the rows of the plan's balances and the clock, at one instant.
func (t *tx) readRows(ctx context.Context, p *plan) error {
	tenants, meters, subjects := columnsOf(p.keys)
	out := &pgx.Batch{}
	t.began = t.ledger.clock.Begin()
	t.ledger.queueSnapshot(out)
	out.Queue(t.ledger.sql["SelectBalances"], tenants, meters, subjects).Query(scanBalances(t.batch.Books))
	out.Queue(t.ledger.sql["Clock"], slices.Compact(slices.Clone(tenants))).QueryRow(t.scanClock)
	out.Queue("COMMIT")
	return send(ctx, t.conn, out)
}

// dropLacking drops the books that lack grants or terms for a decision.
func (t *tx) dropLacking(p *plan) {
	for k, book := range t.batch.Books {
		grants, terms := t.lacks(book, p.demand[k])
		if grants || terms || !book.NextEvent.After(book.UpdatedAt) {
			delete(t.batch.Books, k)
		}
	}
}

// answers answers a check if the batch has all rows that the check needs. It reports whether it answered the check.
func (t *tx) answers(c *check) bool {
	for i := range c.request.Items {
		if t.batch.Books[ledger.BalanceKey{Tenant: c.request.Tenant, Meter: c.request.Items[i].Meter}] == nil {
			return false
		}
	}
	result, next, err := t.batch.Check(c.request)
	if next.Done() {
		c.out.Result, c.out.Err = result, err
	}
	return next.Done()
}

// checkViews answers checks from one view, or from several if some need further balances.
func (l *Ledger) checkViews(ctx context.Context, open []*check) {
	p := newPlan(callsOf(open))
	err := p.repeat(extraRounds, func() (lacks ledger.Next, err error) {
		b, err := l.view(ctx, p, time.Time{})
		if err != nil {
			return lacks, err
		}
		open = slices.DeleteFunc(open, func(c *check) bool {
			result, next, err := b.Check(c.request)
			if next.Done() {
				c.out.Result, c.out.Err = result, err
			}
			lacks.More, lacks.All = append(lacks.More, next.More...), lacks.All || next.All
			return next.Done()
		})
		p.calls = callsOf(open)
		return lacks, nil
	})
	if err == nil {
		return
	}
	err = uncomputable(err)
	if half := len(open) / 2; half > 0 && errcode.Of(err) == errcode.Internal {
		// One of the balances cannot be read or computed, but the other balances can.
		l.checkViews(ctx, open[:half])
		l.checkViews(ctx, open[half:])
		return
	}
	for _, c := range open {
		c.out.Result, c.out.Err = nil, err
	}
}
