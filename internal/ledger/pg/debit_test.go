package pg

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

func TestDebit_DrawsAllowance_ReportsPosition(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	got := b.mustDebit(debitOf("acme", "k1", 3))
	item := got.Items[0]
	wantEqual(t, "charge", chargeOf(item), charge{Charged: 3, Remaining: 7})
	wantEqual(t, "limit", item.Limit, 10)
	wantEqual(t, "draws", drawsOf(item), "api_calls/allowance:3 ")
	assert.True(t, !item.ResetAt.IsZero() && !got.Replayed, "reset at %v, replayed %v", item.ResetAt, got.Replayed)
	b.mustVerify()
}

func TestDebit_Retry_GetsFirstResult_ChargesOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	first := b.mustDebit(debitOf("acme", "k1", 4))
	b.mustDebit(debitOf("acme", "k2", 4))
	again := b.mustDebit(debitOf("acme", "k1", 4))
	want := *first
	want.Replayed = true
	wantEqual(t, "replay", *again, want)
	wantEqual(t, "remaining of the replay", again.Items[0].Remaining, 6)
	wantEqual(t, "remaining", b.mustBalance("acme", "api_calls").Remaining, 2)
	wantRefusal(b, errcode.IdempotencyKeyReused, debitOf("acme", "k1", 5))
	b.mustVerify()
}

func TestDebit_Denied_ChangesNothing_ExplainsItself(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	b.mustDebit(debitOf("acme", "k1", 8))
	before := b.mustBalance("acme", "api_calls")
	e := wantRefusal(b, errcode.QuotaExceeded, debitOf("acme", "k2", 3))
	denial := *ledger.DenialOf(e)
	wantEqual(t, "denial", denial, ledger.Denial{
		Limiting: ledger.Limiting{Kind: "allowance", Meter: "api_calls", Level: "tenant"}, Required: 3, Available: 2, Remaining: 2, Limit: 10,
		ResetAt: before.PeriodEnd, WouldSucceedAt: before.PeriodEnd, AsOf: denial.AsOf,
		Lacking: []ledger.Lack{{Meter: "api_calls", Required: 3, Available: 2, ResetAt: before.PeriodEnd}},
	})
	assert.True(t, e.RetryAfter > 0, "retry after %v", e.RetryAfter)
	after := b.mustBalance("acme", "api_calls")
	after.AsOf = before.AsOf
	assert.Equal(t, before, after, "a denial changed the balance")
	b.mustVerify()
}

func TestDebit_MeterNotInPlan_RefusedUntilGranted(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	debit := &ledger.Debit{Tenant: "acme", Key: "k1", Items: []ledger.Item{{Meter: "credits", Amount: 5}}}
	wantRefusal(b, errcode.MeterNotInPlan, debit)
	b.mustGrant("acme", "g1", "credits", 7)
	mustDo(b, debit)
	debit.Key = "k2"
	e := wantRefusal(b, errcode.CreditsExhausted, debit)
	denial := ledger.DenialOf(e)
	assert.True(t, denial.ResetAt.IsZero() && denial.Available == 2, "got %+v", denial)
	b.mustVerify()
}

func TestDebit_SeveralItems_AllOrNone(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	b.mustGrant("acme", "g1", "credits", 5)
	both := func(key string, calls, credits int64) *ledger.Debit {
		items := []ledger.Item{{Meter: "api_calls", Amount: calls}, {Meter: "credits", Amount: credits}}
		return &ledger.Debit{Tenant: "acme", Key: key, Items: items}
	}
	wantRefusal(b, errcode.CreditsExhausted, both("k1", 1, 6))
	mustDo(b, both("k2", 1, 5))
	wantRefusal(b, errcode.CreditsExhausted, both("k3", 1, 1))
	wantEqual(t, "api_calls remaining", b.mustBalance("acme", "api_calls").Remaining, 9)
	b.mustVerify()
}

func TestDebit_UnknownTenantOrMeter_IsNamed(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	wantRefusal(b, errcode.TenantNotFound, debitOf("nobody", "k1", 1))
	wantRefusal(b, errcode.NotFound, &ledger.Debit{Tenant: "acme", Key: "k1", Items: []ledger.Item{{Meter: "nothing", Amount: 1}}})
	suspended := debitOf("acme", "k9", 1)
	suspended.Suspended = true
	wantRefusal(b, errcode.TenantSuspended, suspended)
}

func TestDebit_1000Units_200ClientsTwice_Grant1000(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	other := openLedger(t, b.url)
	var granted, denied, replayed atomic.Int64
	testenv.Together(200, func(client int) {
		for i := range 6 {
			debit := debitOf("acme", fmt.Sprintf("c%d-%d", client, i), 1)
			answers := make([]error, 2)
			var twins sync.WaitGroup
			for twin, l := range []*Ledger{b.Ledger, other} {
				twins.Go(func() {
					r, err := Do(t.Context(), l, debit)
					answers[twin] = err
					if err == nil && r.Replayed {
						replayed.Add(1)
					}
				})
			}
			twins.Wait()
			switch {
			case answers[0] == nil && answers[1] == nil:
				granted.Add(1)
			case errcode.Of(answers[0]) == errcode.QuotaExceeded && errcode.Of(answers[1]) == errcode.QuotaExceeded:
				denied.Add(1)
			default:
				t.Errorf("twins disagree: %v and %v", answers[0], answers[1])
			}
		}
	})
	type answers struct{ Granted, Denied, Replayed int64 }
	wantEqual(t, "answers", answers{granted.Load(), denied.Load(), replayed.Load()}, answers{Granted: 1000, Denied: 200, Replayed: 1000})
	wantEqual(t, "totals", b.mustVerify().Totals["api_calls"], audit.Totals{Issued: 1000, Used: 1000})
}

func TestDryRun_AnswersAsDebit_WritesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	dry := mustDo(b, debitOf("acme", "k1", 4), DryRun(true))
	require.Zero(t, one[int](b, "SELECT count(*) FROM entries"), "entries that a dry run left")
	made := b.mustDebit(debitOf("acme", "k1", 4))
	assert.Equal(t, dry.Items, made.Items, "dry run differs from the debit")
	wantRefusal(b, errcode.QuotaExceeded, debitOf("acme", "k2", 7), DryRun(true))
}

func TestDebit_StoredDenial_StaysAfterTopup(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	sticky := debitOf("acme", "k1", 11)
	sticky.Items[0].StoreDenial = true
	wantRefusal(b, errcode.CreditsExhausted, sticky)
	wantRefusal(b, errcode.CreditsExhausted, debitOf("acme", "k2", 11))
	b.mustGrant("acme", "g1", "api_calls", 100)
	e := wantRefusal(b, errcode.CreditsExhausted, sticky)
	denial := ledger.DenialOf(e)
	assert.True(t, denial.Replayed && denial.Available == 10, "got %+v", e)
	b.mustDebit(debitOf("acme", "k2", 11)) // the denial of k2 was not stored, so the retry is decided anew
	b.mustVerify()
}

func TestDebit_Overage_StaysWithinMaxAmount(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	drain := func(key string, amount int64) *ledger.Debit {
		d := debitOf("acme", key, amount)
		d.Mode = ledger.ModeDrain
		return d
	}
	for key, amount := range map[string]int64{"k1": ledger.MaxAmount, "k2": 10} {
		mustDo(b, drain(key, amount))
	}
	assert.Equal(t, "items[0].amount", wantRefusal(b, errcode.InvalidArgument, drain("k3", 1)).Field(), "got field")
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 10, Overage: ledger.MaxAmount})
	b.mustVerify()
}

func TestAdjust_ForgottenKey_IsRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	adjust := func(amount int64) *ledger.Adjust {
		return &ledger.Adjust{Tenant: "acme", Key: "fix", Meter: "api_calls", Amount: amount, Reason: "counted twice"}
	}
	mustDo(b, adjust(5))
	b.exec("UPDATE entries SET operation_id = 'of a month long ago' WHERE operation_id = 'fix'")
	assert.Equal(t, "Idempotency-Key", wantRefusal(b, errcode.Conflict, adjust(7)).Field(), "got field")
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Adjusted: 5})
}
