package pg

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// allowance adds an allowance to version 1 of a plan. columns sets further columns of plan_allowances, in the form
// "name = value, ...".
func (b *bundle) allowance(plan, meter string, amount int64, every, columns string) *bundle {
	b.t.Helper()
	at := time.Now().UTC().Add(-100 * time.Hour)
	b.meter(meter)
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING", plan, at)
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ($1, 1, $2, 0, $3, $4, 'tenant')`,
		plan, meter, amount, every)
	if columns != "" {
		b.exec("UPDATE plan_allowances SET "+columns+" WHERE plan = $1 AND meter = $2", plan, meter)
	}
	return b
}

// signUp creates a tenant whose periods began a minute ago.
func (b *bundle) signUp(id, plan string) {
	b.t.Helper()
	at := time.Now().UTC().Add(-time.Minute)
	b.tenant(id, plan, at, at, "UTC")
}

func drawsOf(item ledger.ItemResult) string {
	out := ""
	for _, d := range item.Draws {
		out += fmt.Sprintf("%s/%s:%d ", d.Meter, d.Source, d.Amount)
	}
	return out
}

func TestDebit_BestEffortTakesRest_DrainRecordsOverage(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	best := debitOf("acme", "k1", 12)
	best.Mode = ledger.ModeBestEffort
	wantEqual(t, "best effort", chargeOf(b.mustDebit(best).Items[0]), charge{Charged: 10, Shortfall: 2})
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 10})
	b.mustGrant("acme", "g1", "api_calls", 3)
	drain := debitOf("acme", "k2", 5)
	drain.Mode = ledger.ModeDrain
	first := b.mustDebit(drain).Items[0]
	wantEqual(t, "drain", chargeOf(first), charge{Charged: 3, Shortfall: 2})
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 13, Used: 13, Overage: 2})
	nothing := debitOf("acme", "k3", 5)
	nothing.Mode = ledger.ModeBestEffort
	wantEqual(t, "best effort with nothing left", chargeOf(b.mustDebit(nothing).Items[0]), charge{Shortfall: 5})
	for _, d := range []*ledger.Debit{best, drain, nothing} {
		again := b.mustDebit(d)
		assert.True(t, again.Replayed && again.Items[0].Charged+again.Items[0].Shortfall == again.Items[0].Requested,
			"got %+v", again)
	}
	again := b.mustDebit(drain).Items[0]
	wantEqual(t, "draws of the replay", again.Draws, first.Draws)
	wantEqual(t, "charge of the replay", again.Charged, first.Charged)
	b.mustVerify()
}

func TestDebit_OverflowsIntoCredits_ThenOverageUpToCap(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 10, "month", "overflow_meter = 'credits', overflow_price = 3, overage_policy = 'allow', overage_cap = 5")
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", 10) // pays for 3 units, and one credit remains
	assert.EqualValues(t, "api_calls/allowance:8 ", drawsOf(b.mustDebit(debitOf("acme", "k1", 8)).Items[0]), "drawn")
	first := b.mustDebit(debitOf("acme", "k2", 9))
	assert.Equal(t, "api_calls/allowance:2 credits/topup:9 api_calls/overage:4 ", drawsOf(first.Items[0]), "drawn")
	e := wantRefusal(b, errcode.QuotaExceeded, debitOf("acme", "k3", 2))
	wantEqual(t, "available: the one unit of overage that is left", ledger.DenialOf(e).Available, 1)
	again := b.mustDebit(debitOf("acme", "k2", 9))
	assert.Equal(t, first.Items, again.Items, "replay differs")
	assert.True(t, again.Replayed, "replay differs")
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 10, Overage: 4})
	check, err := b.Check(t.Context(), "acme", "", []ledger.Item{{Meter: "api_calls", Amount: 1}})
	assert.True(t, err == nil && check.Allowed && check.Items[0].MaxAllowedNow == 1 && check.Copies[0].Beyond,
		"got %+v, %v", check, err)
	b.mustVerify()
}

// The payment of owed units has used up the allowance. A refund later in the period, in another transaction, must
// find the allowance again and return the units to it.
func TestRefund_PreservedOverage_ReturnsWhatAllowancePaid(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.exec("UPDATE plan_allowances SET overage_policy = 'allow', overage_at_period_end = 'preserve' WHERE plan = 'hourly'")
	b.mustDebit(debitOf("acme", "k1", 25))
	b.rewind("acme", time.Hour)
	b.mustDebit(debitOf("acme", "k2", 1)) // the new period pays 10 of the 15 units owed
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 10, Overage: 6, Owed: 5, Paid: 10})
	b.rewind("acme", 0)
	r := mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 9})
	wantEqual(t, "refund", refundedOf(r), refunded{Refunded: 9, Remaining: 4})
	b.mustVerify()
}

func TestDebit_SubjectCap_ChargedWithTenant_NamedInDenial(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 100, "hour", "per_subject = 10")
	b.signUp("acme", "pro")
	as := func(subject, key string, amount int64) *ledger.Debit { return debitFor(subject, "acme", key, amount) }
	first := b.mustDebit(as("ann", "k1", 7))
	wantEqual(t, "debit of ann", chargeOf(first.Items[0]), charge{Charged: 7, Remaining: 93})
	e := wantRefusal(b, errcode.QuotaExceeded, as("ann", "k2", 4))
	wantEqual(t, "what limits", ledger.DenialOf(e).Limiting, ledger.Limiting{Kind: "allowance", Meter: "api_calls", Subject: "ann", Level: "subject"})
	wantEqual(t, "available", ledger.DenialOf(e).Available, 3)
	b.mustDebit(as("bob", "k3", 10))
	b.mustDebit(debitOf("acme", "k4", 60)) // the debit has no subject, so no cap limits it
	again := b.mustDebit(as("ann", "k1", 7))
	assert.True(t, again.Replayed && slices.Equal(again.Items[0].Draws, first.Items[0].Draws), "got %+v", again)
	wantSums(t, b.mustSubject("acme", "api_calls", "ann"), ledger.Sums{Granted: 10, Used: 7})
	wantEqual(t, "limit of ann", b.mustSubject("acme", "api_calls", "ann").Limit, 10)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 100, Used: 77})
	b.mustVerify()
	b.rewind("acme", 2*time.Hour)
	b.mustDebit(as("ann", "k5", 10))
	b.mustVerify()
}

func holdOf(tenant, key, id string, amount int64) *ledger.Hold {
	return &ledger.Hold{Tenant: tenant, Key: key, HoldID: id, Items: []ledger.Item{{Meter: "api_calls", Amount: amount}}}
}

// changeOf returns a change of hold h1.
func changeOf(key string, action ledger.HoldAction) *ledger.HoldChange {
	return &ledger.HoldChange{Tenant: "acme", Key: key, HoldID: "h1", Action: action}
}

// capture returns a capture of amount units of hold h1.
func capture(key string, amount int64) *ledger.HoldChange {
	c := changeOf(key, ledger.ActionCapture)
	c.Items = []ledger.Item{{Meter: "api_calls", Amount: amount}}
	return c
}

// finalCapture is like capture, and releases the rest.
func finalCapture(key string, amount int64) *ledger.HoldChange {
	c := capture(key, amount)
	c.Final = true
	return c
}

func TestHold_CapturedInParts_ReleasesRest(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	held := mustDo(b, holdOf("acme", "k1", "h1", 6))
	wantEqual(t, "hold", holdingOf(held), holding{Status: ledger.HoldActive, Held: 6, Remaining: 4})
	wantEqual(t, "life of the hold", held.ExpiresAt.Sub(held.AsOf), ledger.HoldTTLDefault)
	wantRefusal(b, errcode.QuotaExceeded, debitOf("acme", "k2", 5))
	first := mustDo(b, capture("c1", 2))
	wantEqual(t, "first capture", holdingOf(first), holding{Status: ledger.HoldActive, Held: 4, Captured: 2, Remaining: 4})
	wantEqual(t, "final capture", holdingOf(mustDo(b, finalCapture("c2", 1))), holding{Status: ledger.HoldCaptured, Captured: 3, Remaining: 7})
	again := mustDo(b, capture("c1", 2))
	require.True(t, again.Replayed, "got %+v", again)
	again.Replayed = false
	for _, r := range []*ledger.HoldResult{first, again} {
		for i := range r.Items {
			r.Items[i].Limit, r.Items[i].ResetAt = 0, time.Time{}
		}
	}
	assert.Equal(t, first, again, "replay differs")
	for key, action := range map[string]ledger.HoldAction{"c3": ledger.ActionCapture, "c4": ledger.ActionRelease} {
		wantRefusal(b, errcode.HoldNotActive, changeOf(key, action))
	}
	wantRefusal(b, errcode.Conflict, holdOf("acme", "k9", "h1", 1))
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 3})
	b.mustVerify()
}

func TestCapture_BeyondHold_DecidedAsDebit(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, holdOf("acme", "k1", "h1", 6))
	before := b.mustBalance("acme", "api_calls")
	wantRefusal(b, errcode.CreditsExhausted, capture("c1", 11))
	after := b.mustBalance("acme", "api_calls")
	after.AsOf = before.AsOf
	assert.Equal(t, before, after, "a denied capture changed the balance")
	r := mustDo(b, capture("c2", 9))
	wantEqual(t, "capture", holdingOf(r), holding{Status: ledger.HoldCaptured, Captured: 9, Remaining: 1})
	b.mustVerify()
}

func TestHold_Expired_ReturnsUnits_ForfeitsEndedGrant(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	h := holdOf("acme", "k1", "h1", 6)
	h.TTL = 10 * time.Minute
	mustDo(b, h)
	long := holdOf("acme", "k2", "h2", 3)
	long.TTL = 5 * time.Hour
	mustDo(b, long)
	b.rewindHolds(20 * time.Minute)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Held: 3})
	wantRefusal(b, errcode.HoldNotActive, changeOf("c1", ledger.ActionCapture))
	b.rewindHolds(time.Hour)
	b.wantSums("acme", "api_calls", ledger.Sums{Opening: 3, Granted: 10, Held: 3}) // the second hold outlives its period
	mustDo(b, &ledger.HoldChange{Tenant: "acme", Key: "c2", HoldID: "h2", Action: ledger.ActionRelease})
	b.wantSums("acme", "api_calls", ledger.Sums{Opening: 3, Granted: 10, Expired: 3}) // units of an ended allowance expire
	b.mustVerify()
}

func (b *bundle) rewindHolds(by time.Duration) {
	b.t.Helper()
	b.rewind("acme", by)
	by += 7 * time.Second
	for _, sql := range append(testenv.RewindHolds(testenv.OfTenant), testenv.RewoundHolds) {
		b.exec(sql, "", by)
	}
}

func TestExtend_KeepsHoldActive(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	b.exec("UPDATE plan_allowances SET anchor = 'tenant'") // rewinding moves no month of the calendar
	h := holdOf("acme", "k1", "h1", 6)
	h.TTL = 10 * time.Minute
	mustDo(b, h)
	extend := changeOf("c1", ledger.ActionExtend)
	extend.TTL = 3 * time.Hour
	r := mustDo(b, extend)
	require.Equal(t, 3*time.Hour, r.ExpiresAt.Sub(r.AsOf), "life of the hold")
	b.rewindHolds(time.Hour)
	r = mustDo(b, changeOf("c2", ledger.ActionCapture))
	wantEqual(t, "capture", holdingOf(r), holding{Status: ledger.HoldCaptured, Captured: 6, Remaining: 4})
	b.mustVerify()
}

func TestHold_OverflowsIntoCredits_CapturesWholeUnits(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 4, "month", "overflow_meter = 'credits', overflow_price = 3, per_subject = 50")
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", 4)
	b.mustGrant("acme", "g2", "credits", 20)
	h := holdOf("acme", "k1", "h1", 10)
	h.Subject = "ann"
	r := mustDo(b, h)
	wantEqual(t, "held", r.Items[0].Held, 10)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 24, Held: 18})
	b.mustVerify()
	wantEqual(t, "captured", mustDo(b, finalCapture("c1", 7)).Items[0].Captured, 7)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 24, Used: 9})
	wantSums(t, b.mustSubject("acme", "api_calls", "ann"), ledger.Sums{Granted: 50, Used: 7})
	b.mustVerify()
}

func TestRefund_InParts_ReturnsToGrantsUpToDebit(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 10, "month", "overflow_meter = 'credits', overflow_price = 2, overage_policy = 'allow', per_subject = 100")
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", 6)
	b.mustDebit(debitFor("ann", "acme", "k1", 15)) // 10 of the allowance, 3 paid by credits, 2 of overage
	refund := func(key string, amount int64) *ledger.Refund {
		return &ledger.Refund{Tenant: "acme", Key: key, OperationID: "k1", Amount: amount}
	}
	r := mustDo(b, refund("r1", 4)) // 2 of overage, 2 paid by credits
	wantEqual(t, "refund", refundedOf(r), refunded{Refunded: 4})
	b.wantSums("acme", "credits", ledger.Sums{Granted: 6, Refunded: 4, Used: 6})
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Used: 10})
	b.mustVerify()
	wantRefusal(b, errcode.RefundExceedsDebit, refund("r2", 12))
	mustDo(b, refund("r3", 0))
	wantRefusal(b, errcode.RefundExceedsDebit, refund("r4", 0))
	again := mustDo(b, refund("r1", 4))
	assert.True(t, again.Replayed && again.Items[0].Refunded == 4, "got %+v", again)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10, Refunded: 10, Used: 10})
	wantEqual(t, "limit", b.mustBalance("acme", "api_calls").Limit, 10)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 6, Refunded: 6, Used: 6})
	wantSums(t, b.mustSubject("acme", "api_calls", "ann"), ledger.Sums{Granted: 100, Refunded: 15, Used: 15})
	wantRefusal(b, errcode.InvalidArgument, &ledger.Refund{Tenant: "acme", Key: "r5", OperationID: "g1"})
	wantRefusal(b, errcode.OperationNotFound, &ledger.Refund{Tenant: "acme", Key: "r6", OperationID: "nothing"})
	b.mustVerify()
}

func TestRefund_OverflowAtPriceOne_NamesOwnMeter(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 1, "month", "overflow_meter = 'credits', overflow_price = 1")
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", 6)
	b.mustDebit(debitOf("acme", "k1", 5))
	r := mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Meter: "api_calls", Amount: 4})
	wantEqual(t, "refunded", r.Items[0].Refunded, 4)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 6, Refunded: 4, Used: 4})
	b.mustVerify()
}

func TestRefund_EndedAllowance_ForfeitedOrRegranted(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.mustDebit(debitOf("acme", "k1", 8))
	b.rewind("acme", 2*time.Hour)
	r := mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 3})
	wantEqual(t, "forfeited", refundedOf(r), refunded{Refunded: 3, Forfeited: 3, Remaining: 10})
	r = mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r2", OperationID: "k1", Amount: 4, Return: ledger.ReturnRegrant})
	wantEqual(t, "regranted", refundedOf(r), refunded{Refunded: 4, Remaining: 14})
	b.mustVerify()
	b.rewind("acme", 2*time.Hour)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 10}) // the part of the allowance has ended with the period
	b.mustDebit(debitOf("acme", "k9", 1))
	b.mustVerify()
}

func TestVoid_TakesBackRest_AdjustGoesBothWays(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	g := topupOf("acme", "g1", "api_calls", 50)
	g.GrantID = "gift"
	mustDo(b, g)
	b.mustDebit(debitOf("acme", "k1", 30)) // 10 of the allowance, 20 of the gift
	void := func(key string) *ledger.GrantChange {
		return &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: "acme", Key: key, GrantID: "gift", Reason: "chargeback"}
	}
	v := mustDo(b, void("v1"))
	type change struct{ Amount, Before, Remaining int64 }
	wantEqual(t, "void", change{v.Amount, v.Before, v.Remaining}, change{Amount: -30, Before: 30})
	wantRefusal(b, errcode.Conflict, void("v2"))
	adjust := func(key string, amount int64, seq *int64) *ledger.Adjust {
		return &ledger.Adjust{Tenant: "acme", Key: key, Meter: "api_calls", Amount: amount, Reason: "goodwill", IfSeq: seq}
	}
	up := mustDo(b, adjust("a1", 25, nil))
	require.EqualValues(t, 25, up.Remaining, "remaining")
	wantRefusal(b, errcode.Conflict, adjust("a2", -26, nil))
	wantRefusal(b, errcode.Conflict, adjust("a3", -5, new(up.Seq-1)))
	require.EqualValues(t, 20, mustDo(b, adjust("a4", -5, &up.Seq)).Remaining, "remaining")
	again := mustDo(b, void("v1"))
	assert.True(t, again.Replayed && again.Amount == -30, "got %+v", again)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 60, Used: 30, Adjusted: -10})
	b.mustVerify()
}

func TestRollover_CarriesWithinBounds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name              string
		columns           string
		used, want, after int64 // units used in the first period, units left one period later, and two periods later
	}{
		{"at most the maximum", "rollover_max = 30", 20, 130, 130},
		{"all that is left below the maximum", "rollover_max = 30", 95, 105, 130},
		{"at least the minimum", "rollover_min = 15, rollover_max = 30", 95, 115, 130},
		{"without a maximum it grows", "rollover_min = 0", 20, 180, 280},
		{"nothing without a rule", "", 20, 100, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t).allowance("pro", "api_calls", 100, "hour", tc.columns)
			b.signUp("acme", "pro")
			b.mustGrant("acme", "g1", "api_calls", 7)
			b.mustDebit(debitOf("acme", "k1", tc.used))
			b.rewind("acme", time.Hour)
			got := b.mustBalance("acme", "api_calls").Remaining
			wantEqual(t, "remaining, with the 7 that were paid for", got, tc.want+7)
			b.mustVerify()
			b.rewind("acme", time.Hour)
			wantEqual(t, "remaining one more period on", b.mustBalance("acme", "api_calls").Remaining, tc.after+7)
			b.mustDebit(debitOf("acme", "k2", 1))
			b.mustVerify()
		})
	}
}

func TestPlanChange_Now_Amends_Prorates_KeepsPaidGrants(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 100, "hour", "")
	b.allowance("large", "api_calls", 3600, "hour", "")
	b.signUp("acme", "small")
	b.signUp("whole", "small")
	for _, tenant := range []string{"acme", "whole"} {
		b.mustGrant(tenant, "g1", "api_calls", 50)
		b.mustDebit(debitOf(tenant, "k1", 30))
		b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate, prorate)
			SELECT tenant_id, clock_timestamp(), 'large', anchor, timezone, true, tenant_id = 'acme' FROM tenants WHERE tenant_id = $1`, tenant)
	}
	got := b.mustBalance("acme", "api_calls")
	// The larger allowance is one unit a second for 59 of 60 minutes, less the duration of this test.
	assert.True(t, got.Granted == 150 && got.Amended >= 3380 && got.Amended <= 3442 && got.Used == 30 && got.Plan == "large", "got %+v", got)
	b.wantSums("whole", "api_calls", ledger.Sums{Granted: 150, Amended: 3500, Used: 30})
	b.mustDebit(debitOf("acme", "k2", 10))
	b.mustDebit(debitOf("whole", "k2", 10))
	b.mustVerify()
}

func TestDebit_OverflowPriceNearMaxAmount_DoesNotWrap(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.allowance("pro", "api_calls", 1, "month", fmt.Sprintf("overflow_meter = 'credits', overflow_price = %d", ledger.MaxAmount))
	b.signUp("acme", "pro")
	b.mustGrant("acme", "g1", "credits", ledger.MaxAmount)
	e := wantRefusal(b, errcode.CreditsExhausted, debitOf("acme", "k1", ledger.MaxAmount))
	wantEqual(t, "available", ledger.DenialOf(e).Available, 2)
	b.mustDebit(debitOf("acme", "k2", 2))
	b.mustVerify()
}

func TestPeriods_TrialExpires_OverrideReplacesAmount(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("trial", "api_calls", 100, "once", "expires_in_days = 14")
	b.allowance("pro", "credits", 50, "hour", "")
	b.signUp("acme", "trial")
	b.signUp("big", "pro")
	b.exec(`UPDATE tenant_terms SET overrides = '{"credits": 900}' WHERE tenant_id = 'big'`)
	b.wantSums("big", "credits", ledger.Sums{Granted: 900})
	b.mustDebit(debitOf("acme", "k1", 30))
	b.rewind("acme", 13*24*time.Hour)
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 100, Used: 30})
	b.rewind("acme", 25*time.Hour)
	wantRefusal(b, errcode.CreditsExhausted, debitOf("acme", "k2", 1))
	b.mustVerify()
}
