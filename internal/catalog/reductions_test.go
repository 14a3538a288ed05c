package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestGivesLess_ComparesInTheLongRun(t *testing.T) {
	t.Parallel()
	of := func(amount int64, every period.Interval) *Allowance { return &Allowance{Amount: amount, Every: every} }
	const most = 1<<53 - 1
	for _, tc := range []struct {
		a, b *Allowance
		less bool
	}{
		{of(9, period.Month), of(10, period.Month), true},
		{of(10, period.Month), of(10, period.Month), false},
		{of(12, period.Year), of(1, period.Month), false},
		{of(11, period.Year), of(1, period.Month), true},
		{of(31, period.Month), of(1, period.Day), false},
		{of(most, period.Year), of(most, period.Hour), true},
		{of(most, period.Hour), of(most, period.Year), false},
		{of(most, period.Once), of(1, period.Month), true},
		{of(most, period.Once), of(0, period.Month), false},
		{of(1, period.Month), of(most, period.Once), false},
	} {
		require.Equal(t, tc.less, tc.a.givesLess(tc.b), "%v after %v", tc.a, tc.b)
	}
}

func TestApply_WarnsWhomAPlanGivesLess(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	text := func(tokens int, seats string) string {
		return fmt.Sprintf(`
meters: {tokens: {unit: token}, seats: {unit: seat}}
plans:
  free: {allowances: [{meter: tokens, amount: %d, every: month, anchor: calendar}%s]}
  empty: {allowances: [{meter: tokens, amount: %d, every: month, anchor: calendar}]}
`, tokens, seats, tokens)
	}
	const seats = ", {meter: seats, amount: 3, every: month, anchor: calendar}"
	require.Empty(t, apply(t, s, text(1000, seats), false).Warnings, "new plans take nothing away")
	for i := range 3 {
		put(t, s.PutTenant, Tenant{ID: fmt.Sprintf("t%d", i), Plan: "free"})
	}
	put(t, s.PutTenant, Tenant{ID: "own", Plan: "free", Overrides: map[string]int64{"tokens": 5}})

	require.Empty(t, apply(t, s, text(1001, seats), true).Warnings)
	report := apply(t, s, text(999, ""), true)
	require.Equal(t, []string{
		"plan free: tokens falls from 1000 a month to 999 a month for 3 tenants", // tenant "own" overrides the amount
		"plan free: seats is taken away (it was 3 a month) for 4 tenants",
	}, report.Warnings)
	require.Contains(t, report.String(), "! plan free: tokens falls from 1000 a month to 999 a month for 3 tenants\n")
}

func TestApply_WarnsWhoLosesFeaturesAndGauges(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	text := func(features, seats string) string {
		return fmt.Sprintf(`
meters: {seats: {unit: seat, kind: gauge}}
plans:
  free: {features: {%s}, allowances: [%s]}
`, features, seats)
	}
	report := apply(t, s, text("sso: true, beta: false, upload: 500, exports: 3, rows: 9", "{meter: seats, amount: 10}"), false)
	require.Empty(t, report.Warnings)
	for i := range 3 {
		put(t, s.PutTenant, Tenant{ID: fmt.Sprintf("t%d", i), Plan: "free"})
	}
	put(t, s.PutTenant, Tenant{ID: "own", Plan: "free", Features: feature.Set{"sso": feature.Switch(true), "upload": feature.Number(1)}})

	report = apply(t, s, text("sso: false, beta: true, upload: 100, exports: 0, rows: 10", "{meter: seats, amount: 3}"), true)
	require.Equal(t, []string{
		"plan free: seats falls from 10 to 3 for 4 tenants",
		"plan free: feature exports is lost by 4 tenants",
		"plan free: feature sso is lost by 3 tenants", // tenant "own" overrides the feature
		"plan free: feature upload falls from 500 to 100 for 3 tenants",
	}, report.Warnings)
	stored, _, warnings, err := s.PutPlanWarning(ctx, Plan{ID: "free", Features: feature.Set{"rows": feature.Switch(true)}})
	require.NoError(t, err)
	require.EqualValues(t, 2, stored.Version)
	require.Equal(t, []string{
		"plan free: seats is taken away (it was 10) for 4 tenants", "plan free: feature exports is lost by 4 tenants",
		"plan free: feature sso is lost by 3 tenants", "plan free: feature upload is lost by 3 tenants",
	}, warnings)
	_, _, warnings, err = s.PutPlanWarning(ctx, Plan{ID: "free", Features: feature.Set{"rows": feature.Switch(true)}})
	require.NoError(t, err)
	require.Empty(t, warnings, "nothing was changed")
}

// A new version is compared with all versions that tenants may have, also while the newest one waits. A file that changes
// nothing warns of nothing.
func TestWarnings_OlderVersionInForce_IsCompared(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "tokens", Unit: "token"})
	put(t, s.PutMeter, Meter{ID: "seats", Unit: "seat"})
	of := func(apply string, tokens int64, more ...Allowance) Plan {
		p := Plan{ID: "free", Apply: apply, Allowances: append(more, monthly("tokens", tokens))}
		if len(more) > 0 {
			p.Features = feature.Set{"upload": feature.Number(500)}
		}
		return p
	}
	put(t, s.PutPlan, of("", 1000, monthly("seats", 3)))
	put(t, s.PutTenant, Tenant{ID: "acme", Plan: "free"})
	put(t, s.PutPlan, of("", 7)) // it waits
	want := []string{
		"plan free: seats is taken away (it was 3 a month) for up to 1 tenant",
		"plan free: tokens falls from 1000 a month to 9 a month for up to 1 tenant",
		"plan free: feature upload is lost by up to 1 tenant",
	}
	const text = "plans: {free: {apply: now, allowances: [{meter: tokens, amount: %d, every: month, anchor: calendar}]}}"
	require.Equal(t, want, apply(t, s, fmt.Sprintf(text, 9), true).Warnings)
	_, _, warnings, err := s.PutPlanWarning(ctx, of(applyNow, 9))
	require.NoError(t, err)
	require.Equal(t, want, warnings)
	require.Empty(t, apply(t, s, fmt.Sprintf(text, 9), true).Warnings)
	_, _, warnings, err = s.PutPlanWarning(ctx, of("", 10))
	require.NoError(t, err)
	require.Empty(t, warnings, "no older version is in force after one that applied now")
	require.Empty(t, apply(t, s, "plans: {free: {allowances: [{meter: tokens, amount: 10, every: month, anchor: calendar}]}}", true).Warnings)
}

// A warning takes no longer for a plan of a million tenants than for a plan of 10,001, because an index on the plan
// exists.
func TestWarnings_CountIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "tokens", Unit: "token"})
	put(t, s.PutPlan, Plan{ID: "free", Allowances: []Allowance{monthly("tokens", 2)}})
	testenv.Exec(t, s.db.Pool(), "INSERT INTO tenants (tenant_id, plan, anchor) SELECT 'many-' || n, 'free', now() FROM generate_series(1, 10050) AS n")
	report := apply(t, s, `plans: {free: {allowances: [{meter: tokens, amount: 1, every: month, anchor: calendar}]}}`, true)
	require.Equal(t, []string{"plan free: tokens falls from 2 a month to 1 a month for more than 10000 tenants"}, report.Warnings)
}

func TestPutPlan_OverflowIntoMeterThePlanLacks_NamesBoth(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "tokens", Unit: "token"})
	put(t, s.PutMeter, Meter{ID: "credits", Unit: "credit"})
	a := monthly("tokens", 1)
	a.Overflow = &Overflow{Meter: "credits", Price: price.Whole(2)}
	_, _, err := s.PutPlan(ctx, Plan{ID: "odd", Allowances: []Allowance{a}})
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"allowances[0].overflow.meter"}, fieldsIn(t, err))
	require.ErrorContains(t, err, `"credits", of which the plan "odd" has no allowance`)
	_, err = s.Apply(ctx, parsed(t, `
plans:
  odd:
    allowances:
      - {meter: tokens, amount: 1, every: month, anchor: calendar, overflow: {meter: credits, price: 2}}`), true)
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.ErrorContains(t, err, "plans.odd.allowances[0].overflow.meter")
	require.ErrorContains(t, err, "(line 5)")
	put(t, s.PutPlan, Plan{ID: "odd", Allowances: []Allowance{a, monthly("credits", 0)}})

	// A plan that an earlier version of the program has stored can be sent again unchanged.
	testenv.Exec(t, s.db.Pool(), `WITH plan AS (INSERT INTO plans (plan, version) VALUES ('old', 1))
		INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, overflow_meter, overflow_price)
		SELECT 'old', 1, 'tokens', 0, a.amount, a.every, a.anchor, a.overflow_meter, a.overflow_price FROM plan_allowances a WHERE a.meter = 'tokens'`)
	require.EqualValues(t, 1, put(t, s.PutPlan, Plan{ID: "old", Allowances: []Allowance{a}}).Version)
}
