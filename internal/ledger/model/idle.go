package model

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// single returns periods, with each run of idle periods replaced by its single periods. It also returns the entries
// that the single periods would have had.
func (s *Memory) single(periods []ledger.PeriodRow) (out []ledger.PeriodRow, entries []ledger.Entry, err error) {
	for i := range periods {
		if periods[i].Idle == 0 {
			out = append(out, periods[i])
			continue
		}
		run, err := ledger.NewIdleRun(&periods[i], s.History, s.Plans)
		if err != nil {
			return nil, nil, err
		}
		for n := range run.Len() {
			p, err := run.Period(n)
			if err != nil {
				return nil, nil, err
			}
			out, entries = append(out, p.PeriodRow), append(entries, p.Entries...)
		}
		if err := checkRun(&periods[i], out[len(out)-run.Len():]); err != nil {
			return nil, nil, err
		}
	}
	return out, entries, nil
}

// checkRun checks the single periods of a run. It returns an error unless these periods follow each other from the
// run's start to its end, have correct sums, and change the balance as the run does.
func checkRun(run *ledger.PeriodRow, periods []ledger.PeriodRow) error {
	at, opening, used := run.Start, run.Opening, int64(0)
	for i := range periods {
		p := &periods[i]
		if !p.Start.Equal(at) || p.Opening != opening || p.Remaining()+p.Held != p.Closing || p.Held != run.Held {
			return fmt.Errorf("period %d of the run %+v does not follow the one before: %+v", i, run, p)
		}
		at, opening, used = p.End, p.Closing, used+p.Used
	}
	if !at.Equal(run.End) || opening != run.Closing || used != run.Used {
		return fmt.Errorf("the periods of the run %+v end at %s with %d, and pay %d", run, at, opening, used)
	}
	return nil
}

// journalOf returns the entries of a balance in order. The entries of single idle periods replace the entries of a
// run. The result depends neither on when the balance was used nor on rolls.
func (s *Memory) journalOf(k ledger.BalanceKey) ([]ledger.Entry, error) {
	_, out, err := s.single(s.periods[k])
	if err != nil {
		return nil, err
	}
	runs := slices.DeleteFunc(slices.Clone(s.periods[k]), func(p ledger.PeriodRow) bool { return p.Idle == 0 })
	for _, lines := range s.entries {
		for _, l := range lines {
			if l.BalanceKey == k && !slices.ContainsFunc(runs, func(p ledger.PeriodRow) bool { return p.Start.Equal(l.PeriodStart) }) {
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b ledger.Entry) int {
		if c := a.PeriodStart.Compare(b.PeriodStart); c != 0 {
			return c
		}
		return int(a.Seq - b.Seq) // entries of idle periods have Seq 0, and their order is right
	})
	return out, nil
}
