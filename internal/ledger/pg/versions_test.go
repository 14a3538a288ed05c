package pg

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// version adds a version of a plan, made now, that says when it applies.
func (b *bundle) version(id string, number int, apply string, allowances ...string) {
	b.t.Helper()
	b.plan(id, number, b.now(), allowances...)
	b.exec("UPDATE plans SET apply = $3 WHERE plan = $1 AND version = $2", id, number, apply)
}

// A version that applies now amends open periods of all tenants of the plan when they are next used, on every instance.
func TestVersions_ApplyNow_AmendsOnEveryInstance(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 100, "year", "")
	other := b.on(openLedger(t, b.url))
	b.signUp("acme", "pro")
	b.signUp("bolt", "pro")
	b.mustDebit(debitOf("acme", "k1", 30))
	other.mustDebit(debitOf("bolt", "k1", 10))
	b.mustDebit(debitOf("bolt", "k2", 10))
	b.version("pro", 2, "now", "api_calls 500 year tenant")
	wantEqual(t, "remaining", other.mustDebit(debitOf("acme", "k3", 1)).Items[0].Remaining, 469)
	wantEqual(t, "remaining", b.mustDebit(debitOf("bolt", "k3", 1)).Items[0].Remaining, 479)
	got := b.mustBalance("acme", "api_calls")
	assert.True(t, got.PlanVersion == 2 && got.Amended == 400, "got %+v", got)
	b.version("pro", 3, "now", "api_calls 50 year tenant", "seats 5 year tenant")
	wantEqual(t, "a meter that the plan gains", b.mustBalance("acme", "seats").Remaining, 5)
	wantEqual(t, "remaining", b.mustDebit(debitOf("acme", "k4", 1)).Items[0].Remaining, 18)
	b.mustVerify()
}

// A version that waits changes nothing. It costs each balance one read of its terms, and then none.
func TestVersions_ThatWait_AreReadOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 100, "year", "")
	b.signUp("acme", "pro")
	b.mustDebit(debitOf("acme", "k1", 1))
	b.version("pro", 2, "next_period", "api_calls 500 year tenant")
	period := b.mustBalance("acme", "api_calls")
	made := one[time.Time](b, "SELECT max(created_at) FROM plans WHERE version > 1")
	p := unchangedPeriod{start: period.PeriodStart, plans: made, until: period.PeriodEnd.Add(-time.Second)}
	k := b.wantTermsReadOnce(p)
	p.until = period.PeriodEnd
	assert.False(t, b.learned.isUnchanged(k, p), "known beyond the end of the period")
	b.mustVerify()
}

// A balance whose open period has the newest version of its plan needs no terms, whatever happens to other plans.
func TestVersions_Newest_NeedsNoTerms(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 100, "year", "")
	b.allowance("other", "api_calls", 100, "year", "")
	b.signUp("acme", "pro")
	b.mustDebit(debitOf("acme", "k1", 1))
	b.version("other", 2, "now", "api_calls 500 year tenant")
	b.mustDebit(debitOf("acme", "k2", 1))
	made := one[time.Time](b, "SELECT max(created_at) FROM plans WHERE version > 1")
	assert.True(t, b.learned.isNewest("pro", 1, made), "the versions of the plan are not known")
	assert.False(t, b.learned.isNewest("pro", 1, made.Add(time.Second)), "after a later version")
	b.mustVerify()
}

// A version that is committed after an instance has decided under the older one amends the period at the next use.
func TestVersions_CommittedLate_AmendAfterNewestEntry(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 100, "year", "")
	b.signUp("acme", "pro")
	b.mustDebit(debitOf("acme", "k1", 1))
	made := b.now()
	late := b.mustDebit(debitOf("acme", "k2", 1))
	b.plan("pro", 2, made, "api_calls 500 year tenant")
	b.exec("UPDATE plans SET apply = 'now' WHERE version = 2")
	wantEqual(t, "remaining", b.mustDebit(debitOf("acme", "k3", 1)).Items[0].Remaining, 497)
	amended := one[time.Time](b, "SELECT effective_at FROM entries WHERE kind = 'amend_up'")
	assert.False(t, amended.Before(late.AsOf), "amended at %s; the entry before is of %s", amended, late.AsOf)
	b.mustVerify()
}

// The billing period is the same for all balances of a tenant, also if a period goes on that began under a plan of
// which no version waits.
func TestVersions_PeriodOfEarlierPlan_EndsWaitOfAllMeters(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := b.now()
	b.plan("old", 1, now.Add(-48*time.Hour), "api_calls 10 day calendar", "seats 10 week tenant")
	b.plan("new", 1, now.Add(-48*time.Hour), "api_calls 10 day calendar", "seats 10 week tenant")
	b.tenant("acme", "old", now.Add(-24*time.Hour), now.Add(-24*time.Hour), "UTC")
	agree := func(ago time.Duration, plan string) {
		b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, at_once)
			VALUES ('acme', $1, $2, $3, 'UTC', true)`, now.Add(-ago), plan, now.Add(-30*time.Minute))
	}
	agree(3*time.Hour, "old")
	agree(2*time.Hour, "new")
	b.exec("UPDATE tenants SET plan = 'new'")
	b.plan("new", 2, now.Add(-time.Hour), "api_calls 20 day calendar", "seats 20 week tenant")
	b.exec("UPDATE plans SET apply = 'next_period' WHERE version = 2")
	for _, meter := range []string{"seats", "api_calls"} {
		wantEqual(t, "version of "+meter, b.mustBalance("acme", meter).PlanVersion, 1)
	}
	b.mustVerify()
}

// A version that waits and is committed after the billing period has ended amends the period that was opened without
// it, also if the amount stays.
func TestVersions_CommittedAfterBoundary_AmendOpenPeriod(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := b.now()
	b.plan("pro", 1, now.Add(-48*time.Hour), "api_calls 10 day tenant", "seats 10 day tenant")
	b.tenant("acme", "pro", now.Add(-24*time.Hour), now.Add(-24*time.Hour), "UTC")
	b.mustDebit(debitOf("acme", "k1", 1)) // opens the period that has just begun
	b.plan("pro", 2, now.Add(-time.Second), "api_calls 10 day tenant", "seats 20 day tenant")
	b.exec("UPDATE plans SET apply = 'next_period' WHERE version = 2")
	b.exec("UPDATE plan_allowances SET overage_policy = 'allow' WHERE version = 2")
	wantEqual(t, "version in a read", b.mustBalance("acme", "api_calls").PlanVersion, 2)
	wantEqual(t, "charged", b.mustDebit(debitOf("acme", "k2", 12)).Items[0].Charged, 12)
	wantEqual(t, "version", b.mustBalance("acme", "api_calls").PlanVersion, 2)
	wantEqual(t, "version of the other", b.mustBalance("acme", "seats").PlanVersion, 2)
	b.mustVerify()
}

// A version is in force for a tenant that signs up, or changes its terms, between the instant of the version and its
// commit. The same is true of the second of two versions that wait for one instant.
func TestVersions_CommittedAfterTerms_AmendTheirPeriod(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := b.now()
	b.plan("pro", 1, now.Add(-48*time.Hour),
		"api_calls 10 day tenant", "seats 10 once calendar", "exports 10 day tenant")
	b.tenant("old", "pro", now.Add(-24*time.Hour), now.Add(-24*time.Hour), "UTC")
	b.plan("pro", 2, now.Add(-2*time.Second),
		"api_calls 11 day tenant", "seats 11 once calendar", "exports 11 day tenant")
	b.exec("UPDATE plans SET apply = 'next_period' WHERE version = 2")
	b.tenant("new", "pro", now, now, "UTC")
	for _, tenant := range []string{"old", "new"} {
		for _, meter := range []string{"api_calls", "seats", "exports"} {
			d := debitOf(tenant, "k1"+meter, 1)
			d.Items[0].Meter = meter
			b.mustDebit(d)
		}
	}
	b.plan("pro", 3, now.Add(-time.Second),
		"api_calls 20 day tenant", "seats 20 once calendar", "extras 20 day tenant")
	b.exec("UPDATE plans SET apply = 'next_period' WHERE version = 3")
	for _, tenant := range []string{"old", "new"} {
		b.mustDebit(debitOf(tenant, "k2", 1))
		wantEqual(t, "remaining of "+tenant, b.mustBalance(tenant, "api_calls").Remaining, 18)
		wantEqual(t, "a meter that is lost", b.mustBalance(tenant, "exports").Remaining, 0)
		wantEqual(t, "a meter that is new", b.mustBalance(tenant, "extras").Remaining, 20)
	}
	wantEqual(t, "a once-only allowance stays", b.mustBalance("old", "seats").Remaining, 9)
	wantEqual(t, "and is that of the newest version", b.mustBalance("new", "seats").Remaining, 19)
	b.mustVerify()
}
