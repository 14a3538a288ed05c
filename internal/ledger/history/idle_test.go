package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// figures has the statement of an idle period, and the balance as of the middle of the period.
type figures struct {
	Statement *Statement
	Middle    *ledger.Balance
}

// idlePeriods reads the statements of successive hours. The sums of a statement must add up to its closing balance.
// Each statement must open with the closing balance of the hour before.
func (b *bundle) idlePeriods(first time.Time, hours int) (out []figures) {
	b.t.Helper()
	for i := range hours {
		at := first.Add(time.Duration(i) * time.Hour)
		s, err := b.Statement(b.t.Context(), "acme", "api_calls", "", at)
		b.check(err)
		assert.True(b.t, s.foots() && (i == 0 || s.Opening == out[i-1].Statement.Closing),
			"%s does not foot, or not with the hour before: %+v", at, s)
		var sums ledger.Sums
		for _, line := range s.Lines {
			sums.Apply(line.Kind, line.Amount)
		}
		wantEqual(b.t, "lines of the statement", [3]int64{sums.Granted, sums.Used, sums.Expired}, [3]int64{s.Granted, s.Used, s.Expired})
		middle, err := b.BalanceAsOf(b.t.Context(), "acme", "api_calls", "", at.Add(30*time.Minute))
		b.check(err)
		wantEqual(b.t, "start of the period as of its middle", middle.PeriodStart, at)
		// These fields may differ between the runs: the time of the answer, the number of its last entry, and
		// Carried, which only open periods have.
		s.AsOf, middle.Seq, middle.Carried = time.Time{}, 0, nil
		out = append(out, figures{s, middle})
	}
	return out
}

// The statements of idle periods are derived from the terms. They are the same before and after a run of idle periods
// is stored. They are also the same if each period is closed alone.
func TestStatement_IdlePeriods_SameBeforeAndAfterTheyAreWritten(t *testing.T) {
	t.Parallel()
	const hours = 9
	for name, tc := range map[string]struct {
		debit int64
		// closing is the closing balance of each period. middle is the number of units that remain in the middle of the
		// period. 10 units an hour are granted, and 4 to 25 units roll over.
		closing, middle [hours]int64
	}{
		"rollover": {6, [hours]int64{4, 14, 24, 25, 25, 25, 25, 25, 25}, [hours]int64{4, 14, 24, 34, 35, 35, 35, 35, 35}},
		// 37 units are owed: the allowance and the minimum of the rollover pay 14, 14 and 9 units of the debt
		"overage owed on": {47, [hours]int64{0, 0, 0, 5, 15, 25, 25, 25, 25}, [hours]int64{0, 0, 0, 5, 15, 25, 35, 35, 35}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t).allowance("rolls", "api_calls", 10, "hour", "tenant")
			b.exec("UPDATE plan_allowances SET rollover_min = 4, rollover_max = 25, overage_policy = 'allow', overage_at_period_end = 'preserve'")
			at := time.Now().UTC().Add(-time.Minute)
			b.tenant("acme", "rolls", at, at)
			must(b, debitOf("acme", "k0", tc.debit))
			b.rewind(hours * time.Hour)
			first := period.Micros(at).Add(-hours*time.Hour - 7*time.Second)
			derived := b.idlePeriods(first, hours)
			must(b, debitOf("acme", "k1", 1))
			written := b.idlePeriods(first, hours)
			for i := range derived {
				assert.Equal(t, derived[i], written[i], "hour %d", i)
				wantEqual(t, fmt.Sprint("closing and middle of hour ", i), [2]int64{derived[i].Statement.Closing, derived[i].Middle.Remaining},
					[2]int64{tc.closing[i], tc.middle[i]})
			}
			b.mustVerify()
			wantEqual(t, "rows of closed periods", one[int](b, "SELECT count(*) FROM periods"), 2)
		})
	}
}
