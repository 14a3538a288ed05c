package pg

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// changeNow changes the tenant's plan at once, from the given instant on. It writes one row of tenant_terms, as the
// catalogue does.
func (b *bundle) changeNow(tenant, plan string, at time.Time) {
	b.t.Helper()
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate)
		SELECT tenant_id, $2, $3, anchor, timezone, true FROM tenants WHERE tenant_id = $1`, tenant, at, plan)
}

func (b *bundle) now() time.Time {
	b.t.Helper()
	return one[time.Time](b, "SELECT clock_timestamp()")
}

// A change of terms that applies at once writes no balance. The next use of each balance writes the effect of the
// change, and each read shows this effect.
func TestTermsNow_EverySubject_RightWhenTouched(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 1000, "hour", "per_subject = 10")
	b.allowance("large", "api_calls", 5000, "hour", "per_subject = 40")
	b.signUp("acme", "small")
	debit := func(subject, key string, amount int64) *ledger.Debit { return debitFor(subject, "acme", key, amount) }
	const subjects = 5
	for i := range subjects {
		b.mustDebit(debit(fmt.Sprint("user-", i), fmt.Sprint("before-", i), 4))
	}
	b.changeNow("acme", "large", b.now())
	for i := range subjects {
		subject := fmt.Sprint("user-", i)
		got := b.mustSubject("acme", "api_calls", subject)
		assert.True(t, got.Plan == "large" && got.Remaining == 36 && got.Used == 4, "%s is read as %+v", subject, got)
		b.mustDebit(debit(subject, fmt.Sprint("after-", i), 30))
		wantRefusal(b, errcode.QuotaExceeded, debit(subject, fmt.Sprint("much-", i), 7))
		got = b.mustSubject("acme", "api_calls", subject)
		assert.True(t, got.Plan == "large" && got.Used == 34 && got.Remaining == 6, "%s: %+v", subject, got)
	}
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Plan == "large" && got.Used == subjects*34 && got.Remaining == 5000-subjects*34,
		"the tenant's balance is %+v", got)
	b.mustVerify()
}

// A change of terms may be committed after an entry whose instant is later than the change. Then the change amends the
// allowance at an instant after that entry.
func TestTermsNow_CommittedLate_AmendsAfterItsEntries(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 100, "year", "")
	b.allowance("large", "api_calls", 500, "year", "")
	b.signUp("acme", "small")
	b.mustDebit(debitOf("acme", "k0", 1))
	stamped := b.now()
	late := b.mustDebit(debitOf("acme", "k1", 30))
	b.changeNow("acme", "large", stamped)
	b.mustDebit(debitOf("acme", "k2", 7))
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Plan == "large" && got.Used == 38 && got.Amended == 400 && got.Remaining == 500-31-7,
		"got %+v", got)
	amended := one[time.Time](b, "SELECT effective_at FROM entries WHERE kind = 'amend_up'")
	assert.False(t, amended.Before(late.AsOf), "amended at %s; the entry before is of %s", amended, late.AsOf)
	b.mustVerify()
}

// A change of terms may have an instant before a period's end, and be committed after the next period was opened with
// the old terms. Then the change amends the allowance of that next period, once.
func TestTermsNow_CommittedAfterNextPeriodOpened_AmendsIt(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 100, "year", "")
	b.allowance("large", "api_calls", 500, "year", "")
	b.signUp("acme", "small")
	b.mustDebit(debitOf("acme", "k1", 30))
	opened := b.mustBalance("acme", "api_calls").PeriodStart
	// So that the change is later than the first terms.
	b.exec("UPDATE tenant_terms SET effective_at = effective_at - interval '1 hour'")
	b.exec("UPDATE balances SET terms_at = terms_at - interval '1 hour'")
	b.changeNow("acme", "large", opened.Add(-time.Second))
	b.mustDebit(debitOf("acme", "k2", 7))
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Plan == "large" && got.Used == 37 && got.Amended == 400 && got.PeriodStart.Equal(opened),
		"%s: %+v", opened, got)
	b.mustDebit(debitOf("acme", "k3", 7))
	wantEqual(t, "amended, after one more debit", b.mustBalance("acme", "api_calls").Amended, 400)
}

// A roll may lag behind a change of terms: it began before the change, or its as_of is older. A balance that it
// processes after the change has the period that begins at the instant of the change.
func TestTermsNow_RollLagsBehind_TakesEffectAtItsInstant(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 100, "day", "")
	b.allowance("large", "api_calls", 500, "year", "")
	b.signUp("acme", "small")
	grant := topupOf("acme", "g1", "api_calls", 5)
	grant.ExpiresAt = b.now().Add(time.Second)
	mustDo(b, grant)
	b.rewind("acme", time.Second)
	before := b.now()
	at := b.now()
	b.changeNow("acme", "large", at)
	rolled, err := b.RunRoll(t.Context(), &before, func(Roll) {})
	assert.True(t, err == nil && rolled.Processed == 1, "got %+v, %v", rolled, err)
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Plan == "large" && got.PeriodStart.Equal(at), "changed at %s: %+v", at, got)
	b.mustVerify()
}

// A meter that the plan lacked comes into the plan with an allowance of 0, granted once. So its period begins without
// an entry. Another plan gives more later: that entry is not the one with which the period began.
func TestTermsNow_OnceAfterNothing_PeriodBeganBefore(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "credits", 1, "month", "")
	b.allowance("none", "api_calls", 0, "once", "").allowance("some", "api_calls", 7, "once", "")
	b.signUp("acme", "small")
	b.mustGrant("acme", "g1", "api_calls", 5)
	b.changeNow("acme", "none", b.now())
	wantRefusal(b, errcode.CreditsExhausted, debitOf("acme", "k1", 9))
	b.changeNow("acme", "some", b.now())
	b.mustDebit(debitOf("acme", "k2", 1))
	b.wantSums("acme", "api_calls", ledger.Sums{Opening: 5, Granted: 7, Used: 1})
	b.mustVerify()
}

// A change gives an allowance of 0, granted once, that lasts a day. A later change raises its amount. The units that it
// gives end with the day that began with the change before, at which no grant was made.
func TestTermsNow_OnceOfNothing_EndsAsItBegan(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 2, "once", "")
	b.allowance("none", "api_calls", 0, "once", "expires_in_days = 1")
	b.signUp("acme", "small")
	b.mustDebit(debitOf("acme", "k1", 1))
	at := b.now()
	b.changeNow("acme", "none", at)
	b.mustDebit(debitOf("acme", "k2", 1))
	b.version("none", 2, "now", "api_calls 5 once tenant")
	b.exec("UPDATE plan_allowances SET expires_in_days = 4 WHERE plan = 'none' AND version = 2")
	b.mustDebit(debitOf("acme", "k3", 1))
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 2, Amended: 5, Used: 3})
	b.mustVerify()
}

// wantTermsReadOnce makes the second debit of acme's 100 api_calls. It fails the test unless this debit reads the terms
// and the next one does not have to.
func (b *bundle) wantTermsReadOnce(p unchangedPeriod) ledger.BalanceKey {
	b.t.Helper()
	k := ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}
	assert.False(b.t, b.learned.isUnchanged(k, p), "known before it was read")
	wantEqual(b.t, "remaining", b.mustDebit(debitOf("acme", "k2", 1)).Items[0].Remaining, 98)
	assert.True(b.t, b.learned.isUnchanged(k, p), "the next debit reads the terms again")
	return k
}

// If a change has no effect on a meter, the ledger examines it only once for each balance, and not with every debit.
func TestTermsNow_NoEffectOnMeter_ReadOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("small", "api_calls", 100, "year", "")
	b.signUp("acme", "small")
	b.mustDebit(debitOf("acme", "k1", 1))
	at := b.now().Truncate(time.Microsecond)
	b.changeNow("acme", "small", at)
	start := b.mustBalance("acme", "api_calls").PeriodStart
	b.wantTermsReadOnce(unchangedPeriod{start: start, terms: at, plans: epoch, until: b.now()})
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.Used == 2 && got.Remaining == 98, "got %+v", got)
	// Another instance gets the same result, like this instance after a restart.
	other := b.on(openLedger(t, b.url))
	wantEqual(t, "remaining", other.mustDebit(debitOf("acme", "k3", 1)).Items[0].Remaining, 97)
	b.mustVerify()
}

// A trial that the version before has given has an operation that does not say that it is granted once. It stays until
// its own end, and its use reduces no other allowance.
func TestTermsNow_TrialOfAnOlderVersion_IsGrantedOnce(t *testing.T) {
	t.Parallel()
	for used, rest := range map[int64]int64{40: 60, 100: 0} {
		b := newBundle(t).allowance("trial", "api_calls", 100, "once", "expires_in_days = 14")
		b.allowance("paid", "api_calls", 100, "month", "")
		b.signUp("acme", "trial")
		b.mustDebit(debitOf("acme", "k1", used))
		b.exec("UPDATE grants SET operation_id = replace(operation_id, '§once/', '§allowance/')")
		b.changeNow("acme", "paid", b.now())
		got := b.mustBalance("acme", "api_calls")
		assert.True(t, got.Remaining == 100+rest && got.Carried != nil && *got.Carried == 0,
			"%d were used: %+v", used, got)
		left := b.mustDebit(debitOf("acme", "k2", 1)).Items[0].Remaining
		assert.Equal(t, 99+rest, left, "%d were used", used)
	}
}
