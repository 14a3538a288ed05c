package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// usedUp returns a batch at the instant now. Its only balance has used `used` units of a monthly allowance, and holds
// reserve one unit each of the rest.
func usedUp(now time.Time, used int64, holds int) *Batch {
	k := BalanceKey{Tenant: "t", Meter: "m"}
	monthly := Allowance{Amount: used + int64(holds), Every: period.Month, Anchor: period.Calendar}
	b := NewBatch()
	b.Now, b.Books[k] = now, NewBook(BalanceRow{BalanceKey: k})
	book := b.Books[k]
	book.LoadGrants(nil, nil)
	book.History = []TenantTerms{{Since: now, Plan: "p", AnchorAt: now, Zone: time.UTC}}
	version := PlanVersion{Version: 1, CreatedAt: now, Allowances: map[string]Allowance{"m": monthly}}
	book.Plans = map[string][]PlanVersion{"p": {version}}
	book.Timeline = NewTimeline(k, book.History, book.Plans)
	calls := []*Call{debitCall("used", used)}
	for i := range holds {
		id := fmt.Sprint("h", i)
		lasts := time.Duration(i+1) * time.Second
		calls = append(calls, NewCall(&Hold{Tenant: "t", Key: id, HoldID: id, Items: debited(1), TTL: lasts}))
	}
	b.Targets = NewTargetState()
	b.Decide(calls)
	return b
}

func debited(amount int64) []Item { return []Item{{Meter: "m", Amount: amount}} }

func debitCall(key string, amount int64) *Call {
	return NewCall(&Debit{Tenant: "t", Key: key, Items: debited(amount)})
}

// At the end of the time that periods can have, nothing can be said about the next one. The refusal itself stays.
func TestRefusal_NextPeriodCannotBeComputed_StillRefuses(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]errcode.Code{
		2026: errcode.CreditsExhausted, 9990: errcode.CreditsExhausted, 9997: errcode.QuotaExceeded,
	} {
		b, c := usedUp(time.Date(year, 12, 10, 0, 0, 0, 0, time.UTC), 10, 0), debitCall("more", 11)
		require.True(t, b.Decide([]*Call{c}).Done(), year)
		require.Equal(t, want, errcode.Of(c.Err), "%d: %v", year, c.Err)
	}
}

// A refusal looks at the holds that end first. Its cost grows with their number, not with the square of it.
func BenchmarkRefusal_Holds(b *testing.B) {
	now := time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC)
	for _, holds := range []int{0, 100, 1000} {
		batch := usedUp(now, 10, holds)
		for _, amount := range []int64{1, 1_000_000} {
			b.Run(fmt.Sprintf("%d holds, %d more", holds, amount), func(b *testing.B) {
				for b.Loop() {
					c := debitCall("more", amount)
					require.True(b, batch.Decide([]*Call{c}).Done() && c.Err != nil, c.Err)
				}
			})
		}
	}
}
