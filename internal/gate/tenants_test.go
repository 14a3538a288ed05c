package gate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestTenants_PlansRule_ReplacesGeneralOfSameID(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	global := func(rule, rate string) {
		t.Helper()
		l := catalog.Limit{Rule: rule, Per: []string{"tenant"}, Kind: "token_bucket", Rate: rate}
		_, _, err := in.tenants.catalog.PutLimit(t.Context(), l)
		require.NoError(t, err)
	}
	global("burst", "100/s")
	global("daily", "1000/day")
	in.catalogue(catalog.Limit{Rule: "burst", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic"})
	testenv.Eventually(t, func() bool { return len(in.tenants.catalog.Snapshot().Limits) == 2 }, "the global limits are in the snapshot")
	names := func(tenant string) (out []string) {
		f, err := in.tenants.facts(t.Context(), tenant)
		require.NoError(t, err)
		req := request("", "calls", 1)
		for _, r := range f.rules.apply(nil, &req, f.plan) {
			out = append(out, r.compiled.ID+" "+r.compiled.Rate.String())
		}
		return out
	}
	got, want := names("acme"), []string{"burst 5/s", "daily 1000/day"}
	assert.True(t, slices.Equal(got, want), "acme has rules: %v, want %v", got, want)
	got, want = names("nobody"), []string{"burst 100/s", "daily 1000/day"}
	assert.True(t, slices.Equal(got, want), "an unknown tenant has rules: %v, want %v", got, want)
}
