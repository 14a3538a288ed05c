package notice

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// batch returns the changes of a batch of debits of 1 unit. All debits are on one balance, which was granted 1,000
// units. used is the number of units that were used before. levels are the thresholds of the plan, or nil if the plan
// names none.
func batch(debits int, used int64, levels *[]int16) *ledger.Changes {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	row := ledger.BalanceRow{BalanceKey: ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}, Start: start, End: start.AddDate(0, 1, 0), RollAt: start.AddDate(0, 1, 0)}
	row.Granted, row.Used = 1000, used+int64(debits)
	book := ledger.NewBook(row)
	book.Terms = &ledger.Allowance{Amount: 1000, AlertAt: levels}
	c := &ledger.Changes{Books: []*ledger.Book{book}}
	for i := range debits {
		e := ledger.Entry{Kind: ledger.EntryDebit, Amount: 1, CreatedAt: start}
		e.BalanceKey, e.PeriodStart, e.OperationID = row.BalanceKey, start, fmt.Sprint("k", i)
		c.Entries = append(c.Entries, e)
	}
	return c
}

// If a batch crosses no threshold, Of allocates nothing, for any number of thresholds in the plan. It does not read
// the batch's entries.
func TestOf_CrossesNoThreshold_CostsNoMoreThanWithoutAny(t *testing.T) {
	for name, levels := range map[string]*[]int16{"the default": nil, "none": {}, "ten": {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}} {
		c := batch(50, 10, levels)
		told := Of(c)
		assert.True(t, told.Empty(), "%s: %+v", name, told)
		assert.Zero(t, testing.AllocsPerRun(100, func() { Of(c) }), "%s: allocations", name)
	}
	assert.Len(t, Of(batch(200, 10, &[]int16{10, 20})).Events, 2, "two thresholds are crossed")
}

func BenchmarkOf(b *testing.B) {
	for name, levels := range map[string]*[]int16{"none": {}, "ten": {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}} {
		b.Run(name, func(b *testing.B) {
			c := batch(50, 10, levels)
			b.ReportAllocs()
			for b.Loop() {
				Of(c)
			}
		})
	}
}
