package ledger

import (
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// IdleRun is a run of idle periods, from which each single period can be derived.
type IdleRun struct {
	row   PeriodRow
	terms Terms
}

// IdlePeriod is one period of a run, as if the ledger had stored it. Its entries are not in the journal, so they have
// no Seq.
type IdlePeriod struct {
	PeriodRow

	Entries []Entry
}

// NewIdleRun returns the run that row stores. history has the tenant's terms, and plans has the versions of the
// tenant's plans, as for NewTimeline. The row names the terms by the instant of agreement, plan and version, so terms
// that were committed later cannot change the run.
func NewIdleRun(row *PeriodRow, history []TenantTerms, plans map[string][]PlanVersion) (*IdleRun, error) {
	for i := range history {
		if h := &history[i]; h.Since.Equal(row.TermsAt) && h.Plan == row.Plan {
			for j := range plans[h.Plan] {
				if v := &plans[h.Plan][j]; v.Version == row.PlanVersion {
					r := &IdleRun{row: *row, terms: termsOf(row.BalanceKey, h, v)}
					return r, r.check()
				}
			}
		}
	}
	return nil, fmt.Errorf("ledger: the idle periods of %v from %s: plan %s version %d, agreed on at %s, does not exist",
		row.BalanceKey, row.Start.Format(time.RFC3339), row.Plan, row.PlanVersion, row.TermsAt.Format(time.RFC3339))
}

// check returns an error if the terms do not give the number of periods and the end that the row has.
func (r *IdleRun) check() error {
	n, end, err := r.terms.schedule().Count(r.row.Start, r.row.End)
	if err == nil && (int64(n) != r.row.Idle || !end.Equal(r.row.End)) {
		err = fmt.Errorf("ledger: %d periods until %s", n, end.Format(time.RFC3339Nano))
	}
	if err != nil {
		return fmt.Errorf("the %d idle periods of %v from %s until %s: %w",
			r.row.Idle, r.row.BalanceKey, r.row.Start.Format(time.RFC3339Nano), r.row.End.Format(time.RFC3339Nano), err)
	}
	return nil
}

// Len returns the number of periods.
func (r *IdleRun) Len() int { return int(r.row.Idle) }

// IndexAt returns the index of the period that contains the instant `at`, which must lie within the run.
func (r *IdleRun) IndexAt(at time.Time) (int, error) {
	n, _, err := r.terms.schedule().Count(r.row.Start, at)
	return n, err
}

// Period derives period i; 0 is the oldest. The time that this takes hardly depends on i: each earlier period takes
// some nanoseconds, until the state of the run is stable.
func (r *IdleRun) Period(i int) (*IdlePeriod, error) {
	p, err := r.terms.schedule().Nth(r.row.Start, i)
	if err != nil {
		return nil, err
	}
	s, _ := r.terms.Allowance.passAll(r.first(), i)
	return r.derive(p, s)
}

// first returns the state in which the oldest period begins.
func (r *IdleRun) first() idleState {
	return idleState{left: r.row.RolledOver, rollover: r.row.Rollover, owing: r.row.Owing}
}

// Follows returns an error unless each period of the run opens with what the period before it closed with, the last
// one closes with what the run closed with, and all of them used what the run used. Once the state is stable, it
// derives one period for all that follow.
func (r *IdleRun) Follows() error {
	s, opening, used := r.first(), r.row.Opening, int64(0)
	for i := 0; i < r.Len(); {
		nominal, err := r.terms.schedule().Nth(r.row.Start, i)
		if err != nil {
			return err
		}
		p, err := r.derive(nominal, s)
		if err != nil {
			return err
		}
		if p.Opening != opening {
			return fmt.Errorf("the period from %s opens with %d, and the one before it closed with %d", p.Start.Format(time.RFC3339), p.Opening, opening)
		}
		opening, used, i = p.Closing, used+p.Used, i+1
		next, _ := r.terms.Allowance.pass(s)
		if next == s && opening == p.Opening {
			break
		}
		s = next
	}
	if opening != r.row.Closing || used != r.row.Used {
		return fmt.Errorf("the last period closes with %d, and all of them used %d; the row has %d and %d", opening, used, r.row.Closing, r.row.Used)
	}
	return nil
}

// derive derives the period p, which begins in state s.
func (r *IdleRun) derive(p period.Period, s idleState) (*IdlePeriod, error) {
	first := r.first()
	// The period of this book ends where period i starts. Units that did not roll over are in grants that the run does
	// not change.
	b := NewBook(BalanceRow{
		BalanceKey: r.row.BalanceKey, Sums: Sums{Opening: r.row.Opening - first.left + s.left, Held: r.row.Held}, Start: r.row.Start, End: p.Start,
		UpdatedAt: p.Start, RollAt: period.Forever,
	})
	b.Timeline, b.loaded = Timeline{r.terms}, true
	o := &opening{terms: &r.terms, period: p, worth: r.terms.Allowance.Amount, owing: s.owing}
	if s.rollover > 0 {
		o.rollover = b.newRollover(s.rollover, p.Start, p.End, p.Start)
		o.rollover.Remaining = s.left
		b.addGrant(o.rollover)
	}
	var j []Entry
	b.open(o, p.Start, &j, p.Start)
	if err := b.step(b.End, b.End, &j); err != nil {
		return nil, err
	}
	out := &IdlePeriod{PeriodRow: b.Closed[0]}
	out.LastSeq, out.ClosedAt = r.row.LastSeq, r.row.ClosedAt
	for _, e := range j {
		if e.PeriodStart.Equal(p.Start) {
			e.Seq = 0
			out.Entries = append(out.Entries, e)
		}
	}
	return out, nil
}
