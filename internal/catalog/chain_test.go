package catalog

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// requireChains fails the test unless each tenant and each plan has a chain, and the auditor computes the same chains.
func requireChains(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var missing int
	require.NoError(t, s.db.Pool().QueryRow(ctx, `SELECT (SELECT count(*) FROM tenants)
		+ (SELECT count(DISTINCT plan) FROM plans) - (SELECT count(*) FROM terms_chains)`).Scan(&missing))
	require.Zero(t, missing, "tenants and plans without a chain")
	report, err := audit.New(s.db.Pool(), s.db.Target()).Verify(ctx, audit.Options{ReadOnly: true})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
}

// Each way to write or to withdraw terms extends the chain of the tenant, as the auditor computes it.
func TestChain_EveryChangeOfTerms_VerifyAgrees(t *testing.T) {
	t.Parallel()
	here, there := instances(t)
	s := here.Store
	step := func(what string, change func() error) {
		t.Helper()
		require.NoError(t, change(), what)
		requireChains(t, s)
	}
	patches := func(p TenantPatch) func() error {
		return func() error { _, err := s.PatchTenant(t.Context(), "acme", p); return err }
	}
	puts := func(plan string) func() error {
		return func() error { _, _, err := s.PutTenant(t.Context(), Tenant{ID: "acme", Plan: plan}); return err }
	}
	withdraws := func() error { return s.DeletePending(t.Context(), "acme") }
	step("the first terms", func() error { return nil })
	step("a tenant on a plan by default", func() error { return s.MakeTenant(t.Context(), "made", "lean") })
	step("terms that wait", puts("lean"))
	step("the same terms again", puts("lean"))
	step("terms before those that wait", patches(TenantPatch{Timezone: new("Asia/Tokyo"), Apply: applyNow}))
	step("taken back", withdraws)
	step("overrides at once", patches(TenantPatch{
		Overrides: map[string]*int64{"calls": new(int64(7))}, Apply: applyNow, Reason: "a \"gift\" ☃",
	}))
	step("a dry run", func() error {
		_, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Plan: new("lean"), Apply: applyNow, DryRun: true})
		return err
	})
	at := time.Now().Add(100 * time.Hour)
	step("terms that wait until an instant", patches(TenantPatch{Plan: new("lean"), EffectiveAt: &at}))
	here.clock.Advance(101 * time.Hour)
	there.clock.Advance(101 * time.Hour)
	step("in force by itself", func() error { return there.AdvanceTenants(t.Context()) })
	at = at.Add(200 * time.Hour)
	step("terms that wait again", patches(TenantPatch{Plan: new("both"), EffectiveAt: &at}))
	here.clock.Advance(200 * time.Hour)
	there.clock.Advance(200 * time.Hour)
	step("in force by the next change", patches(TenantPatch{Timezone: new("UTC"), Apply: applyNow}))
	step("a file", func() error {
		f := &File{Tenants: []Tenant{{ID: "acme", Plan: "flat"}, {ID: "new", Plan: "lean"}}}
		_, err := s.Apply(t.Context(), f, false)
		return err
	})
	step("a version of a plan", func() error {
		a := monthly("calls", 6)
		a.AlertAt = []int64{50, 90}
		_, _, err := s.PutPlan(t.Context(), Plan{ID: "lean", Allowances: []Allowance{a}, Apply: applyNow})
		return err
	})
	assert.Greater(t, len(termsOf(t, s, "acme")), 5, "terms of acme")
}

// Rows that were written by hand do not join the chain with the next change: verify goes on to report them.
func TestChain_RowsByHand_StayOutside(t *testing.T) {
	t.Parallel()
	const (
		add     = "INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone) SELECT tenant_id, "
		added   = add + "effective_at + interval '1 s', plan, anchor, timezone FROM tenant_terms WHERE initial"
		changed = "UPDATE tenant_terms SET prorate = true WHERE NOT initial"
		removed = "DELETE FROM tenant_terms WHERE NOT initial"
		version = "INSERT INTO plans (plan, version, created_at) VALUES ('lean', 9, now())"
	)
	for name, c := range map[string]struct {
		sql   string
		patch bool // a change at once comes before the terms that wait take effect
	}{
		"terms added":                       {added, false},
		"terms added before a change":       {added, true},
		"terms that wait changed":           {changed, false},
		"terms that wait removed":           {removed, false},
		"waiting terms gone, then a change": {removed, true},
		"version added":                     {version, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, _ := instances(t)
			s := here.Store
			at := time.Now().Add(time.Hour)
			patch(t, s, "acme", TenantPatch{Plan: new("lean"), EffectiveAt: &at})
			byHand(t, s, c.sql)
			if c.patch {
				patch(t, s, "acme", TenantPatch{Timezone: new("Asia/Tokyo"), Apply: applyNow})
			}
			here.clock.Advance(2 * time.Hour)
			put(t, here.PutPlan, Plan{ID: "lean", Allowances: []Allowance{monthly("calls", 4)}})
			require.NoError(t, here.AdvanceTenants(t.Context()))
			report, err := audit.New(s.db.Pool(), s.db.Target()).Verify(t.Context(), audit.Options{})
			require.NoError(t, err)
			assert.NotEmpty(t, report.Differences)
		})
	}
}
