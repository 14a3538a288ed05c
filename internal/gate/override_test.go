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

// TestSettleCharge_OverrideOfASubject_IsOfTheOverride: the bucket of a subject with its own override refills at the
// override's rate after a refund or settlement, and a settlement above the estimate takes what is missing.
func TestSettleCharge_OverrideOfASubject_IsOfTheOverride(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
		for what, rate := range map[string]string{"smaller": "1000/s", "larger": "1/day"} {
			t.Run(kind+" "+what, func(t *testing.T) {
				t.Parallel()
				in := newInstance(t, testenv.Postgres(t), nil).catalogue()
				per := []string{"tenant", "subject"}
				in.putLimits(catalog.Limit{Rule: "r", Per: per, Kind: kind, Rate: rate})
				in.putOverride(override.Override{Rule: "r", Tenant: "acme", Subject: "u", Rate: "100/day"})
				look := ChargeRequest{Request: Request{Tenant: "acme", Subject: "u", DryRun: true}}
				testenv.Eventually(t, func() bool {
					out, err := in.Charge(t.Context(), look)
					return err == nil && out.Limits[0].Limit == 100
				}, "the override is in force")
				left := int64(100)
				for _, cost := range []int64{9, 12, 0, 20} {
					out, _ := in.charged(ChargeRequest{Request: Request{Subject: "u"}, Cost: 10})
					done, err := in.SettleCharge(t.Context(), testenv.Must(t).Get(in.ParseCharge(out.ID)), cost)
					require.True(t, err == nil && done.Settled, "%d: %+v, %v", cost, done, err)
					left -= cost
					require.Equal(t, left, done.Limits[0].Remaining, "after %d", cost)
					_, after := in.charged(look)
					require.Equal(t, left, after["r"], "after %d", cost)
				}
			})
		}
	}
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
