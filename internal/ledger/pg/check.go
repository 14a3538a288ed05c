package pg

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// CheckOutcome is the answer to one check: one of the two.
type CheckOutcome struct {
	Result *ledger.CheckResult
	Err    error
}

// CheckBatch returns what debits would be answered now, in the order of requests. It reads PostgreSQL, the balances of different tenants
// together, and records nothing.
func (l *Ledger) CheckBatch(ctx context.Context, requests []ledger.CheckRequest) []CheckOutcome {
	out := make([]CheckOutcome, len(requests))
	open := make([]*check, 0, len(requests))
	for i := range requests {
		if out[i].Err = requests[i].Validate(); out[i].Err == nil {
			open = append(open, &check{&requests[i], &out[i]})
		}
	}
	for len(open) > 0 {
		// A decision changes the balances in memory, so that the tenant's next request needs a view of its own.
		inView := make(map[string]bool, len(open))
		var together, later []*check
		for _, c := range open {
			if inView[c.request.Tenant] {
				later = append(later, c)
				continue
			}
			inView[c.request.Tenant] = true
			together = append(together, c)
		}
		for _, group := range divide(l, together, func(c *check) string { return c.request.Tenant }) {
			l.checkTogether(ctx, group)
		}
		open = later
	}
	return out
}

// check is a request and the place for its answer.
type check struct {
	request *ledger.CheckRequest
	out     *CheckOutcome
}

// callsOf returns the debits that the checks are about, for a plan.
func callsOf(checks []*check) []*ledger.Call {
	calls := make([]*ledger.Call, len(checks))
	for i, c := range checks {
		calls[i] = ledger.NewCall(c.request.Debit())
	}
	return calls
}

// checkTogether answers requests of different tenants from one view, or from several if some need further balances.
func (l *Ledger) checkTogether(ctx context.Context, open []*check) {
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
	if half := len(open) / 2; half > 0 && ledger.CodeOf(err) == ledger.CodeInternal {
		// Something is wrong with one of the balances. The others can be read.
		l.checkTogether(ctx, open[:half])
		l.checkTogether(ctx, open[half:])
		return
	}
	for _, c := range open {
		c.out.Result, c.out.Err = nil, err
	}
}
