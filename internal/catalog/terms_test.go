package catalog

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

// wide stores the plan "both", which has calls and credits, and the plan "lean", which has only calls. It stores the
// tenant acme with the plan "both".
func wide(t *testing.T, s *Store) {
	t.Helper()
	for _, id := range []string{"calls", "credits", "seats"} {
		put(t, s.PutMeter, Meter{ID: id, Unit: "unit"})
	}
	put(t, s.PutPlan, Plan{ID: "both", Allowances: []Allowance{monthly("calls", 10), monthly("credits", 20)}})
	put(t, s.PutPlan, Plan{ID: "lean", Allowances: []Allowance{monthly("calls", 5)}})
	put(t, s.PutTenant, Tenant{ID: "acme", Plan: "both"})
}

// term is a row of the history of a tenant's terms, without plan, anchor and zone.
type term struct {
	overrides    map[string]int64
	now, prorate bool
	reason       string
}

func historyOf(t *testing.T, s *Store, tenant string) []term {
	t.Helper()
	rows, err := s.db.Pool().Query(t.Context(),
		"SELECT overrides, at_once, prorate, coalesce(reason, '') FROM tenant_terms WHERE tenant_id = $1 ORDER BY effective_at", tenant)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x term, err error) {
		return x, row.Scan(&x.overrides, &x.now, &x.prorate, &x.reason)
	})
	require.NoError(t, err)
	return list
}

func TestPatchTenant_OverridesMerge_PutReplaces(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	wide(t, s)
	acme := patch(t, s, "acme", TenantPatch{Overrides: map[string]*int64{"calls": new(int64(100)), "credits": new(int64(0))}, Apply: applyNow})
	require.Equal(t, map[string]int64{"calls": 100, "credits": 0}, acme.Overrides)
	acme = patch(t, s, "acme", TenantPatch{Overrides: map[string]*int64{"credits": nil, "seats": nil}, Apply: applyNow})
	require.Equal(t, map[string]int64{"calls": 100}, acme.Overrides, "null takes one back, and there need not be one")
	require.Equal(t, acme, get(t, s.Tenant, "acme"))
	require.Equal(t, acme, patch(t, s, "acme", TenantPatch{Overrides: map[string]*int64{"calls": new(int64(100))}}), "nothing changed")
	require.Equal(t, []term{
		{overrides: map[string]int64{}},
		{overrides: map[string]int64{"calls": 100, "credits": 0}, now: true},
		{overrides: map[string]int64{"calls": 100}, now: true},
	}, historyOf(t, s, "acme"))

	replaced := put(t, s.PutTenant, Tenant{ID: "acme", Plan: "both", Overrides: map[string]int64{"credits": bound.MaxAmount}})
	require.Equal(t, map[string]int64{"calls": 100}, replaced.Overrides, "they wait")
	require.Equal(t, map[string]int64{"credits": bound.MaxAmount}, replaced.Pending.Overrides)
	_, _, err := s.PutTenant(ctx, Tenant{ID: "acme", Plan: "both"})
	require.Equal(t, CodeChangePending, errcode.Of(err))
	require.NoError(t, s.DeletePending(ctx, "acme"))
	replaced = put(t, s.PutTenant, Tenant{ID: "acme", Plan: "both"})
	require.Nil(t, replaced.Pending.Overrides)
	list, err := s.ListTenants(ctx, listing.Query{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, replaced, list.Items[0])

	made := put(t, s.PutTenant, Tenant{ID: "new", Plan: "lean", Overrides: map[string]int64{"calls": 7}})
	require.Equal(t, map[string]int64{"calls": 7}, made.Overrides)
	require.Equal(t, []term{{overrides: map[string]int64{"calls": 7}}}, historyOf(t, s, "new"))
}

func TestPutTenant_OverrideNeedsMeterOfPlan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	wide(t, s)
	five := new(int64(5))
	_, err := s.PatchTenant(ctx, "acme", TenantPatch{Overrides: map[string]*int64{"seats": five, "calls": five, "none": five}})
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"overrides.none", "overrides.seats"}, fieldsIn(t, err))
	require.ErrorContains(t, err, "names a meter that the plan both does not have")
	_, _, err = s.PutTenant(ctx, Tenant{ID: "new", Plan: "lean", Overrides: map[string]int64{"credits": 5}})
	require.Equal(t, []string{"overrides.credits"}, fieldsIn(t, err))
	_, err = s.Tenant(ctx, "new")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))

	patch(t, s, "acme", TenantPatch{Overrides: map[string]*int64{"calls": five, "credits": five}, Apply: applyNow})
	_, err = s.PatchTenant(ctx, "acme", TenantPatch{Plan: new("lean")})
	require.Equal(t, []string{"overrides.credits"}, fieldsIn(t, err), "the change would leave an override that says nothing")
	acme := patch(t, s, "acme", TenantPatch{Plan: new("lean"), Overrides: map[string]*int64{"credits": nil}, Apply: applyNow})
	require.Equal(t, map[string]int64{"calls": 5}, acme.Overrides)

	// If a later version of the plan lacks an overridden meter, the tenant can still be changed.
	put(t, s.PutPlan, Plan{ID: "lean", Allowances: []Allowance{monthly("seats", 1)}})
	acme = patch(t, s, "acme", TenantPatch{Status: new(StatusSuspended)})
	require.Equal(t, map[string]int64{"calls": 5}, acme.Overrides)
	_, err = s.PatchTenant(ctx, "acme", TenantPatch{Overrides: map[string]*int64{"calls": new(int64(6))}})
	require.Equal(t, []string{"overrides.calls"}, fieldsIn(t, err))
	acme = patch(t, s, "acme", TenantPatch{Overrides: map[string]*int64{"calls": nil, "seats": five}, Apply: applyNow})
	require.Equal(t, map[string]int64{"seats": 5}, acme.Overrides)
}

func TestTenant_WrongOverridesAreNamed(t *testing.T) {
	t.Parallel()
	many := map[string]int64{}
	for i := range MaxOverrides + 1 {
		many["m"+strings.Repeat("x", i)] = 1
	}
	for _, c := range []struct {
		overrides map[string]int64
		want      []string
	}{
		{map[string]int64{"b": -1, "a": bound.MaxAmount + 1, "c": 0, "d": bound.MaxAmount}, []string{"overrides.a", "overrides.b"}},
		{map[string]int64{"": 1, "a b": 1, strings.Repeat("x", 129): 1}, []string{"overrides.", "overrides.a b", "overrides." + strings.Repeat("x", 129)}},
		{many, []string{"overrides"}},
	} {
		require.Equal(t, c.want, fieldsIn(t, validate(&Tenant{ID: "t", Plan: "p", Overrides: c.overrides})))
		require.Equal(t, c.want, fieldsIn(t, validate(&TenantPatch{Overrides: check.PatchTo(c.overrides)})))
	}
	delete(many, "m")
	require.NoError(t, validate(&Tenant{ID: "t", Plan: "p", Overrides: many}))
}

func TestPatchTenant_OverridesLikeMap(t *testing.T) {
	t.Parallel()
	meter := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		var got map[string]int64
		want := map[string]int64{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			changes := rapid.MapOf(meter, rapid.Ptr(rapid.Int64Range(0, 3), true)).Draw(t, "change")
			for m, amount := range changes {
				if amount == nil {
					delete(want, m)
				} else {
					want[m] = *amount
				}
			}
			before := maps.Clone(got)
			after := check.Patched(got, changes)
			require.True(t, maps.Equal(before, got), "the overrides before were changed: %v, they: %v", got, before)
			got = after
			require.True(t, maps.Equal(want, got) && (len(got) != 0 || got == nil), "%v, want %v", got, want)
		}
	})
}

func TestPatchTenant_IfVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	wide(t, s)
	require.EqualValues(t, 1, put(t, s.PutTenant, Tenant{ID: "x", Plan: "both"}).Version)
	require.EqualValues(t, 1, put(t, s.PutTenant, Tenant{ID: "x", Plan: "both"}).Version, "nothing changed")
	suspended := TenantPatch{Status: new(StatusSuspended), IfVersion: new(int64(1))}
	require.EqualValues(t, 2, patch(t, s, "x", suspended).Version)
	_, err := s.PatchTenant(ctx, "x", suspended)
	require.Equal(t, errcode.Conflict, errcode.Of(err))
	require.Equal(t, []string{"If-Match"}, fieldsIn(t, err))
	require.ErrorContains(t, err, `must be "2", the tenant's present version, not "1"`)
	for _, version := range []int64{0, 1, 3, bound.MaxAmount} {
		_, err := s.ReplaceTenant(ctx, Tenant{ID: "x", Plan: "lean"}, version)
		require.Equal(t, []string{"If-Match"}, fieldsIn(t, err))
	}
	stored, err := s.ReplaceTenant(ctx, Tenant{ID: "x", Plan: "lean"}, 2)
	require.NoError(t, err)
	require.EqualValues(t, 3, stored.Version)
	require.Equal(t, stored, get(t, s.Tenant, "x"))
	_, err = s.ReplaceTenant(ctx, Tenant{ID: "none", Plan: "lean"}, 1)
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
	_, err = s.Tenant(ctx, "none")
	require.Equal(t, errcode.TenantNotFound, errcode.Of(err))
}

func TestPatchTenant_DryRun_ChangesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	wide(t, s)
	before := get(t, s.Tenant, "acme")
	p := TenantPatch{
		Plan: new("lean"), Overrides: map[string]*int64{"calls": new(int64(3))}, Metadata: json.RawMessage(`{"b":1, "a":2}`),
		Apply: applyNow, Reason: "asked for it", DryRun: true,
	}
	dry, err := s.PatchTenant(ctx, "acme", p)
	require.NoError(t, err)
	require.Equal(t, before, dry.Before)
	require.Equal(t, "lean", dry.After.Plan)
	require.Equal(t, before, get(t, s.Tenant, "acme"))
	require.Len(t, historyOf(t, s, "acme"), 1)

	p.DryRun = false
	done, err := s.PatchTenant(ctx, "acme", p)
	require.NoError(t, err)
	dry.After.UpdatedAt = done.After.UpdatedAt
	require.Equal(t, dry, done)
	require.Equal(t, term{overrides: map[string]int64{"calls": 3}, now: true, reason: "asked for it"}, historyOf(t, s, "acme")[1])

	for _, bad := range []TenantPatch{
		{Plan: new("none"), DryRun: true},
		{Overrides: map[string]*int64{"seats": new(int64(1))}, DryRun: true},
		{Plan: new("both"), IfVersion: new(int64(1)), DryRun: true},
	} {
		_, dryErr := s.PatchTenant(ctx, "acme", bad)
		bad.DryRun = false
		_, doneErr := s.PatchTenant(ctx, "acme", bad)
		require.Error(t, dryErr)
		require.Equal(t, doneErr, dryErr)
	}
}

func TestPatchTenant_ReasonNeedsTermsOrStatus(t *testing.T) {
	t.Parallel()
	plan := new("lean")
	require.NoError(t, validate(&TenantPatch{Plan: plan, Reason: strings.Repeat("x", MaxReason)}))
	require.NoError(t, validate(&TenantPatch{Status: new(StatusActive), Reason: "why"}))
	for _, p := range []TenantPatch{
		{Reason: "why"},
		{Plan: plan, Reason: strings.Repeat("x", MaxReason+1)},
		{Plan: plan, Reason: "\x00"},
		{Plan: plan, Reason: "\xff"},
	} {
		require.Equal(t, []string{"reason"}, fieldsIn(t, validate(&p)))
	}
}

func TestPatchTenant_NowAppliesWaitingTerms(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	wide(t, s)
	now := func(plan string) int {
		t.Helper()
		patch(t, s, "acme", TenantPatch{Plan: &plan, Apply: applyNow})
		return len(historyOf(t, s, "acme"))
	}
	require.Equal(t, 1, now("both"), "the plan it signed up to is in force")
	// A program before version 1.2 stored a change that waits like this: the tenant has the plan, its row is not immediate.
	byHand(t, s, "UPDATE tenants SET plan = 'lean', version = version + 1 WHERE tenant_id = 'acme'")
	byHand(t, s, `INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone)
		SELECT tenant_id, clock_timestamp(), 'lean', anchor, timezone FROM tenants WHERE tenant_id = 'acme'`)
	require.Equal(t, 3, now("lean"), "it was to wait for the next period")
	require.Equal(t, 3, now("lean"), "a retry")
	require.True(t, historyOf(t, s, "acme")[2].now)
	put(t, s.PutPlan, Plan{ID: "lean", Allowances: []Allowance{monthly("calls", 6)}})
	require.Equal(t, 4, now("lean"), "a newer version of the plan was to wait")
	require.Equal(t, 4, now("lean"))
	require.EqualValues(t, 4, get(t, s.Tenant, "acme").Version, "each was a change")
}

func TestPutPlan_TrialNeedsOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	wide(t, s)
	trial := func(days int64) Plan {
		return Plan{ID: "trial", Allowances: []Allowance{{Meter: "calls", Amount: 5, Every: period.Once, Anchor: period.Tenant, ExpiresInDays: &days}}}
	}
	for _, days := range []int64{1, MaxExpiresInDays} {
		p := trial(days)
		stored := put(t, s.PutPlan, p)
		require.Equal(t, p.Allowances, stored.Allowances)
		require.Equal(t, stored, planOf(t, s, "trial", 0))
	}
	for _, days := range []int64{0, -1, MaxExpiresInDays + 1, 1 << 40} {
		p := trial(days)
		require.Equal(t, []string{"allowances[0].expires_in_days"}, fieldsIn(t, validate(&p)))
	}
	p := trial(14)
	p.Allowances[0].Every = period.Month
	require.Equal(t, []string{"allowances[0].expires_in_days"}, fieldsIn(t, validate(&p)))
	p = trial(14)
	p.Allowances[0].Rollover = &Rollover{Max: 1}
	require.Equal(t, []string{"allowances[0].rollover"}, fieldsIn(t, validate(&p)))
}

func TestPutPlan_OverflowInOneStep(t *testing.T) {
	t.Parallel()
	into := func(meter, other string) Allowance {
		a := monthly(meter, 1)
		a.Overflow = &Overflow{Meter: other, Price: price.Whole(2)}
		return a
	}
	p := Plan{ID: "p", Allowances: []Allowance{into("a", "c"), into("b", "c"), monthly("c", 1), into("d", "elsewhere")}}
	require.NoError(t, validate(&p))
	p.Allowances[2] = into("c", "elsewhere")
	require.Equal(t, []string{"allowances[0].overflow.meter", "allowances[1].overflow.meter"}, fieldsIn(t, validate(&p)))
	p = Plan{ID: "p", Allowances: []Allowance{into("a", "b"), into("b", "a")}}
	require.Equal(t, []string{"allowances[0].overflow.meter", "allowances[1].overflow.meter"}, fieldsIn(t, validate(&p)))
	p = Plan{ID: "p", Allowances: []Allowance{into("a", "a")}}
	require.Equal(t, []string{"allowances[0].overflow.meter"}, fieldsIn(t, validate(&p)))
}
