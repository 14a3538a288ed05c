package pg

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestRefund_OfCapture_CountsInUnitsOfHeldMeter(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 4, "month", "overflow_meter = 'credits', overflow_price = 3")
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", 20)
	mustDo(b, holdOf("acme", "k1", "h1", 6))
	// The first entry of the second capture is on the overflow meter. The stored answer is in this first entry.
	for i, key := range []string{"c1", "c2"} {
		mustDo(b, capture(key, 4-int64(i)))
	}
	refund := func(key, of string, amount int64) *ledger.Refund {
		return &ledger.Refund{Tenant: "acme", Key: key, OperationID: of, Meter: "api_calls", Amount: amount}
	}
	total := int64(0)
	for _, of := range []string{"c1", "c2"} {
		r := mustDo(b, refund("half-"+of, of, 2))
		wantEqual(t, "meter", r.Items[0].Meter, "api_calls")
		wantEqual(t, "refunded", r.Items[0].Refunded, 2)
		total += 2 + mustDo(b, refund("rest-"+of, of, 0)).Items[0].Refunded
		wantRefusal(b, errcode.RefundExceedsDebit, refund("more-"+of, of, 1))
	}
	wantEqual(t, "refunded in all", total, 7)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 20, Refunded: 9, Used: 9})
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 4, Refunded: 4, Used: 4})
	b.mustVerify()
}

func TestRegrant_KeepsPriorityAndCostBasis(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1)
	g := topupOf("acme", "g1", "credits", 9)
	g.GrantID, g.CostBasis, g.Priority, g.ExpiresAt = "sale", "0.10", new(int32(7)), time.Now().Add(time.Hour)
	mustDo(b, g)
	b.mustDebit(&ledger.Debit{Tenant: "acme", Key: "k1", Items: []ledger.Item{{Meter: "credits", Amount: 9}}})
	b.rewind("acme", 2*time.Hour) // the grant expires
	r := mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Return: ledger.ReturnRegrant})
	require.EqualValues(t, 9, r.Items[0].Remaining, "remaining")
	got := b.mustBalance("acme", "credits").Grants
	assert.True(t, len(got) == 1 && got[0].Source == ledger.SourceRefund && got[0].Priority == 7 &&
		got[0].CostBasis == "0.10", "got %+v", got)
	b.mustVerify()
}

// A version of the plan has an instant before the sign-up of a tenant, and is committed after the tenant's first use.
// It then looks as if it had been in force at the sign-up. The open period keeps the terms with which it was opened.
func TestPlanVersion_CommittedLate_KeepsTermsOfOpenPeriod(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at := time.Now().UTC().Add(-time.Hour)
	b.plan("pro", 1, at.Add(-time.Hour), "api_calls 10 month calendar")
	b.exec("UPDATE plan_allowances SET overage_policy = 'allow'")
	b.tenant("acme", "pro", at, at, "UTC")
	b.mustDebit(debitOf("acme", "k1", 4))
	b.plan("pro", 2, at.Add(-time.Second), "api_calls 20 month calendar")
	other := openLedger(t, b.url) // an instance that has not read the first version
	item := b.on(other).mustDebit(debitOf("acme", "k2", 7)).Items[0]
	wantEqual(t, "charged", item.Charged, 7)
	wantEqual(t, "draws", drawsOf(item), "api_calls/allowance:6 api_calls/overage:1 ")
	b.mustVerify()
}

// The sums of a balance are near their bound. Use is refused with its own error code, and used units can still be
// refunded. Reads and PostgreSQL's constraints accept sums at the bound.
func TestTurnover_SumsAtTheirBound_UseRefusedRefundsPass(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.simple("acme", 0)
	b.mustGrant("acme", "g1", "credits", ledger.MaxAmount)
	b.exec("UPDATE balances SET used = $1, refunded = $1 WHERE meter = 'credits'", ledger.UsedMax-1)
	debit := func(key string) *ledger.Debit {
		return &ledger.Debit{Tenant: "acme", Key: key, Items: []ledger.Item{{Meter: "credits", Amount: ledger.MaxAmount}}}
	}
	mustDo(b, debit("last"))
	wantRefusal(b, errcode.AmountOutOfRange, debit("more"))
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "back", OperationID: "last"})
	got := b.mustBalance("acme", "credits")
	wantEqual(t, "remaining", got.Remaining, ledger.MaxAmount)
	wantEqual(t, "used", got.Used, ledger.UsedMax-1+ledger.MaxAmount)
}
