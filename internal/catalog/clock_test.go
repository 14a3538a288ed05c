package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// While PostgreSQL's clock is ten days ahead, a change gets the time of the instance's clock. So the change is in
// force at once, not ten days later. A block that has not expired stays in force.
func TestStore_PostgresAhead_ChangesHoldAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresWithClock(t)
	s := openStore(t, server.URL, StoreConfig{})
	put(t, s.PutMeter, Meter{ID: "calls", Unit: "call"})
	put(t, s.PutPlan, Plan{ID: "small", Allowances: []Allowance{{Meter: "calls", Amount: 10, Every: "month", Anchor: "calendar"}}})
	put(t, s.PutTenant, Tenant{ID: "acme", Plan: "small"})
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "acme", Action: "block", ExpiresAt: time.Now().Add(time.Hour)})
	server.Shift(240 * time.Hour)
	soonest, latest := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	inTime := func(what string, at time.Time) {
		t.Helper()
		assert.True(t, !at.Before(soonest) && !at.After(latest), "%s is stamped %s", what, at)
	}
	inTime("a plan's version", put(t, s.PutPlan, Plan{ID: "small", Allowances: []Allowance{{Meter: "calls", Amount: 20, Every: "month", Anchor: "calendar"}}}).CreatedAt)
	inTime("a plan", put(t, s.PutPlan, Plan{ID: "large", Allowances: []Allowance{{Meter: "calls", Amount: 99, Every: "month", Anchor: "calendar"}}}).CreatedAt)
	inTime("a tenant", put(t, s.PutTenant, Tenant{ID: "late", Plan: "small"}).CreatedAt)
	patch(t, s, "acme", TenantPatch{Plan: new("large"), Apply: applyNow})
	terms, err := s.ListTerms(t.Context(), "acme", listing.Query{Limit: 10})
	require.NoError(t, err)
	require.Len(t, terms.Items, 2)
	inTime("new terms", terms.Items[1].EffectiveAt)
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "other", Action: "block", ExpiresAt: time.Now().Add(time.Hour)})
	server.Shift(0)
	for _, value := range []string{"acme", "other"} {
		_, err = s.Block(t.Context(), block.KindTenant, value, "")
		require.NoError(t, err, "the block of %s", value)
	}
}
