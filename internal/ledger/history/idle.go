package history

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// derived returns the statement of the idle period that contains an instant, and the sums of the period as of this
// instant. run is the row of the run to which the period belongs.
func derived(b *ledger.Book, run *ledger.PeriodRow, at time.Time) (*Statement, ledger.Sums, error) {
	p, err := idleAt(b, run, at)
	if err != nil {
		return nil, ledger.Sums{}, &errcode.Error{Code: errcode.Internal, Detail: "the idle period cannot be derived", Cause: err}
	}
	s := statementOf(&p.PeriodRow)
	opened := ledger.Sums{Opening: p.Opening, Held: p.Held}
	var sums []sum
	for i := range p.Entries {
		e := &p.Entries[i]
		sums = append(sums, sumOf(e))
		if !e.EffectiveAt.After(at) {
			opened.Apply(e.Kind, e.Amount)
		}
	}
	s.Lines = linesOf(sums)
	return s, opened, nil
}

func idleAt(b *ledger.Book, row *ledger.PeriodRow, at time.Time) (*ledger.IdlePeriod, error) {
	run, err := ledger.NewIdleRun(row, b.History, b.Plans)
	if err != nil {
		return nil, err
	}
	i, err := run.IndexAt(at)
	if err != nil {
		return nil, err
	}
	return run.Period(i)
}
