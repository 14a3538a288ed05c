package ledger

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// wealthy returns a batch with one balance, which has no plan and MaxAmount remaining units. The arguments `used` and
// `refunded` are sums of its open period.
func wealthy(k BalanceKey, used, refunded int64) *Batch {
	now := time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC)
	b := NewBatch()
	b.Now, b.Targets = now, NewTargetState()
	book := NewBook(BalanceRow{
		BalanceKey: k, Sums: Sums{Opening: MaxAmount, Used: used, Refunded: refunded}, Seq: 1, Start: now, End: period.Forever,
		HeadID: "g", HeadSource: SourceTopup, HeadRemaining: MaxAmount, NextEvent: period.Forever, UpdatedAt: now,
	})
	book.LoadGrants([]*OpenGrant{{GrantRecord: GrantRecord{
		Tenant: k.Tenant, Meter: k.Meter, ID: "g", Source: SourceTopup, Amount: MaxAmount, Remaining: MaxAmount, EffectiveAt: now,
		ExpiresAt: period.Forever, Status: GrantActive,
	}}}, nil)
	b.Books[k] = book
	return b
}

// Repeated debits and refunds of the largest amount are refused with a clear error, long before a sum exceeds 64
// bits. After that, used units can still be refunded.
func TestTurnover_LargestAmounts_RefusedBeforeSumsOverflow(t *testing.T) {
	t.Parallel()
	k := BalanceKey{"acme", "credits", ""}
	b := wealthy(k, 0, 0)
	book := b.Books[k]
	decide := func(op Operation) *Call {
		t.Helper()
		c := NewCall(op)
		next := b.Decide([]*Call{c})
		require.True(t, next.Done(), "%+v: %+v", op, next)
		return c
	}
	for i := range 1100 {
		d := &Debit{Tenant: "acme", Key: fmt.Sprint("d", i), Items: []Item{{Meter: "credits", Amount: MaxAmount}}}
		c := decide(d)
		if c.Err != nil {
			require.True(t, errcode.Of(c.Err) == errcode.AmountOutOfRange && i >= 512, "debit %d: %v", i, c.Err)
			h := &Hold{Tenant: "acme", Key: "h", HoldID: "h", Items: []Item{{Meter: "credits", Amount: 1}}}
			c = decide(h)
			assert.Equal(t, errcode.AmountOutOfRange, errcode.Of(c.Err), "hold: %v", c.Err)
			assert.True(t, book.Used == book.Refunded && book.Used <= math.MaxInt64-MaxAmount,
				"used %d, refunded %d", book.Used, book.Refunded)
			return
		}
		r := &Refund{Tenant: "acme", Key: fmt.Sprint("r", i), OperationID: d.Key}
		b.Located.Operations = map[OperationRef][]Entry{r.target(): b.Stored[c.ID]}
		c = decide(r)
		require.True(t, c.Err == nil, "refund %d: %v", i, c.Err)
	}
	t.Errorf("1,100 debits of the largest amount passed: used %d", book.Used)
}

// A refund fails and changes nothing if the balance would exceed MaxAmount, the largest number that every client can
// read exactly.
func TestRefund_BeyondLargestBalance_RefusedWithoutTrace(t *testing.T) {
	t.Parallel()
	k := BalanceKey{"acme", "credits", ""}
	b := wealthy(k, 0, 0)
	book := b.Books[k]
	r := &Refund{Tenant: "acme", Key: "r", OperationID: "old"}
	b.Located.Operations = map[OperationRef][]Entry{r.target(): {{BalanceKey: k, OperationID: "old", Line: 1, Kind: EntryDebit, Grant: "g", Source: SourceTopup, Amount: 7}}}
	before := fmt.Sprintf("%+v", book.BalanceRow)
	c := NewCall(r)
	next := b.Decide([]*Call{c})
	require.True(t, next.Done() && errcode.Of(c.Err) == errcode.AmountOutOfRange, "%+v, %v", next, c.Err)
	assert.Equal(t, before, fmt.Sprintf("%+v", book.BalanceRow), "it left a trace")
	assert.Empty(t, b.Targets.Refunds, "it left a trace")
	assert.Empty(t, b.journal, "it left a trace")
}
