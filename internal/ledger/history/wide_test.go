package history

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// many sets the amount of each entry of the given kinds to 2^62. A busy period reaches such a sum with 512 entries of
// the largest amount, 2^53.
func (b *bundle) many(kinds ...string) {
	b.t.Helper()
	b.exec("UPDATE entries SET amount = 1::bigint << 62 WHERE kind = ANY($1)", kinds)
}

// The use of a month may need more than 64 bits, if it has several periods whose sums are near their bound. Then the
// largest 64-bit number is shown.
func TestUsage_MonthBeyond64Bits_ShowsLargestNumber(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	for i := range 3 {
		must(b, &ledger.Debit{Tenant: "acme", Key: fmt.Sprint("d", i), Subject: "ann", Items: []ledger.Item{{Meter: "api_calls", Amount: 2}}})
		must(b, &ledger.Refund{Tenant: "acme", Key: fmt.Sprint("r", i), OperationID: fmt.Sprint("d", i), Amount: 1})
		b.rewind(time.Hour)
	}
	b.many("debit", "refund")
	to := time.Now().UTC().Add(time.Minute)
	w := b.rollups(2)
	for _, what := range []string{"entries", "rollups"} {
		for _, ask := range []UsageQuery{{}, {Group: UsageBySubject}, {Subject: "ann"}} {
			ask.Tenant, ask.Meter, ask.From, ask.To, ask.Step = "acme", "api_calls", to.AddDate(0, -2, 0), to, UsageByMonth
			use, err := b.Usage(t.Context(), ask)
			b.check(err)
			used, operations := int64(0), int64(0)
			for _, u := range use {
				used, operations = max(used, u.Used), operations+u.Operations
			}
			assert.True(t, used == math.MaxInt64 && operations >= 3, "from %s, %+v: %+v", what, ask, use)
		}
		b.check(w.Pass(t.Context()))
	}
}

// The sum of the units that were held and released has no bound, unlike the sum of the units used. A line of a
// statement shows at most the largest 64-bit number. The balance at an instant is summed from the same entries and is
// exact.
func TestStatement_LinesBeyond64Bits_BalanceAsOfExact(t *testing.T) {
	t.Parallel()
	b := newBundle(t).monthly("acme", 10)
	for i := range 3 {
		id := fmt.Sprint("h", i)
		must(b, &ledger.Hold{Tenant: "acme", Key: id, HoldID: id, Items: []ledger.Item{{Meter: "api_calls", Amount: 2}}})
		must(b, &ledger.HoldChange{Tenant: "acme", Key: id + "-release", HoldID: id, Action: ledger.ActionRelease})
	}
	b.many("hold", "release")
	must(b, &ledger.Hold{Tenant: "acme", Key: "open", HoldID: "open", Items: []ledger.Item{{Meter: "api_calls", Amount: 3}}})
	at := b.mustBalance("acme", "api_calls").AsOf
	must(b, debitOf("acme", "d1", 1))
	w := b.rollups(2)
	for _, from := range []string{"entries", "rollups"} {
		s, err := b.StatementCurrent(t.Context(), "acme", "api_calls", "")
		b.check(err)
		amounts := map[ledger.EntryKind]int64{}
		for _, line := range s.Lines {
			amounts[line.Kind] = line.Amount
		}
		wantEqual(t, "lines from "+from, amounts, map[ledger.EntryKind]int64{
			ledger.EntryGrant: 10, ledger.EntryDebit: 1, ledger.EntryHold: math.MaxInt64, ledger.EntryRelease: math.MaxInt64,
		})
		past, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", at)
		b.check(err)
		wantSums(t, past, ledger.Sums{Granted: 10, Held: 3})
		b.check(w.Pass(t.Context()))
	}
}
