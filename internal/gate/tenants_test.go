package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
)

func TestTenants_PlansRule_ReplacesGeneralOfSameID(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.putLimits(catalog.Limit{Rule: "burst", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "100/s"},
		catalog.Limit{Rule: "daily", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1000/day"})
	in.catalogue(catalog.Limit{Rule: "burst", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"})
	names := func(tenant string) (out []string) {
		f, err := in.tenants.facts(t.Context(), tenant)
		require.NoError(t, err)
		req := request("", "calls", 1)
		for _, r := range f.rules.apply(nil, &req, f.plan) {
			out = append(out, r.compiled.ID+" "+r.compiled.Rate.String())
		}
		return out
	}
	assert.Equal(t, []string{"burst 5/s", "daily 1000/day"}, names("acme"), "rules of acme")
	assert.Equal(t, []string{"burst 100/s", "daily 1000/day"}, names("nobody"), "rules of an unknown tenant")
}
