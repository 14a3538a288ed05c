package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func (in *instance) putOverride(o override.Override) {
	in.t.Helper()
	_, _, err := in.overrides.Put(in.t.Context(), o)
	require.NoError(in.t, err)
}

// limitFor checks a request of acme with this subject. It returns the capacity in the first verdict.
func (in *instance) limitFor(subject string) int64 {
	in.t.Helper()
	req := request("", "calls", 1)
	req.Subject = subject
	out, err := in.Check(in.t.Context(), req)
	if err != nil || len(out.Limits) != 1 {
		in.t.Errorf("%+v, %v", out.Limits, err)
		return 0
	}
	return out.Limits[0].Limit
}

func TestOverride_CompiledOnce_UntilRuleOrOverrideChanges(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, nil).catalogue()
	in.putTenant(catalog.Tenant{ID: "b", Plan: "basic"})
	rule := limitNamed("r", "", catalog.Match{})
	in.putLimits(rule)
	in.putOverride(override.Override{Rule: "r", Tenant: "acme", Rate: "77/s"})
	testenv.Eventually(t, func() bool { return in.limitFor("") == 77 }, "the override is in force")
	in.awaitAnnouncements(url)
	variantNow := func() *planRule {
		t.Helper()
		f, err := in.tenants.facts(t.Context(), "acme")
		require.True(t, err == nil && f.overrides != nil, err)
		return in.overridden(t.Context(), f.rules.rule("r"), &f, "")
	}
	first := variantNow()
	again := variantNow()
	assert.True(t, again == first, "%+v, then %+v", first, again)
	assert.True(t, first.compiled.Burst == 77 && first.compiled.Metric == "r", first)
	in.putLimits(limitNamed("other", "", catalog.Match{Tenant: "b"})) // makes another snapshot
	assert.True(t, variantNow().limitRule == first.limitRule, "the rule is compiled again although it is the same")

	rule.Kind, rule.Rate = "sliding_log", "5/s"
	in.putLimits(rule)
	assert.EqualValues(t, 77, in.limitFor(""), "the limit of the changed rule")
	// This burst is not valid for the rule, so the rule's own burst is in force.
	execute(t, url, "UPDATE limit_overrides SET burst = 8", "SELECT pg_notify('quotasvc_catalog', 'tenant:acme')")
	testenv.Eventually(t, func() bool { return in.limitFor("") == 5 }, "the rule itself")
}

// TestRefundCharge_Override_IsOfTheOverride: a refund finds the override of the tenant, so that it shows the limit that
// is in force, and leaves the bucket with the override's rate.
func TestRefundCharge_Override_IsOfTheOverride(t *testing.T) {
	t.Parallel()
	in := newInstance(t, testenv.Postgres(t), nil).catalogue()
	in.putLimits(limitNamed("r", "", catalog.Match{}))
	in.putOverride(override.Override{Rule: "r", Tenant: "acme", Rate: "77/day"})
	testenv.Eventually(t, func() bool { return in.limitFor("") == 77 }, "the override is in force")
	done, _ := in.charged(ChargeRequest{Cost: 70})
	c, err := in.ParseCharge(done.ID)
	require.NoError(t, err)
	refund, err := in.SettleCharge(t.Context(), c, 0)
	assert.True(t, err == nil && refund.Settled && len(refund.Limits) == 1 && refund.Limits[0].Limit == 77 &&
		refund.Limits[0].Remaining == 77, "%+v, %v", refund, err)
}
