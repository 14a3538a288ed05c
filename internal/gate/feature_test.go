package gate

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// statements counts the statements that a pool sends to PostgreSQL.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// newBare returns a gate that has only a catalogue, and the counter of the catalogue's statements. The catalogue
// reads nothing until a change is announced. The gate panics if it needs a limit or a balance.
func newBare(t *testing.T) (*Gate, *statements) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testenv.AsService(testenv.Postgres(t)))
	require.NoError(t, err)
	counted := &statements{}
	cfg.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	store := catalog.NewStore(testenv.Store(pool), catalog.StoreConfig{})
	c := catalog.New(store, catalog.Config{ReloadEvery: time.Hour, Heartbeat: time.Hour})
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	tenants := newTenants(c, Config{}, func([]string) {})
	return &Gate{tenants: tenants, metrics: newGateMetrics(nil), clock: time.Now}, counted
}

func TestCheck_FeatureAlone_AsksNoBackend(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, counted := newBare(t)
	c := g.tenants.catalog
	features := feature.Set{"sso": feature.Switch(true), "seats": feature.Number(0)}
	_, _, err := c.PutPlan(ctx, catalog.Plan{ID: "pro", Features: features})
	require.NoError(t, err)
	_, _, err = c.PutTenant(ctx, catalog.Tenant{ID: "acme", Plan: "pro"})
	require.NoError(t, err)
	allowed := func(name string) bool {
		out, err := g.Check(ctx, Request{Tenant: "acme", Feature: name})
		require.NoError(t, err)
		require.Equal(t, out.Allowed, out.Code == "")
		return out.Allowed
	}
	soon := func(name string, want bool) {
		t.Helper()
		testenv.Eventually(t, func() bool { return allowed(name) == want }, name, " is ", want)
	}
	soon("sso", true)

	before := counted.n.Load()
	for range 1000 {
		require.True(t, allowed("sso"))
		require.False(t, allowed("seats"))
		require.False(t, allowed("unknown"))
		_, err := g.Consume(ctx, Request{Tenant: "acme", Feature: "unknown", Key: "k"})
		require.Equal(t, CodeFeatureNotInPlan, CodeOf(err))
	}
	require.Less(t, counted.n.Load()-before, int64(40),
		"statements of 4,000 questions, and of the catalogue that follows changes meanwhile")

	// A change of the plan, of the tenant, or of the tenant's plan has effect as soon as it is announced.
	features = feature.Set{"sso": feature.Switch(false), "seats": feature.Number(5)}
	_, _, err = c.PutPlan(ctx, catalog.Plan{ID: "pro", Features: features})
	require.NoError(t, err)
	soon("sso", false)
	soon("seats", true)
	on := feature.Switch(true)
	_, err = c.PatchTenant(ctx, "acme", catalog.TenantPatch{Features: map[string]*feature.Value{"sso": &on}})
	require.NoError(t, err)
	soon("sso", true)
	_, _, err = c.PutPlan(ctx, catalog.Plan{ID: "free"})
	require.NoError(t, err)
	_, err = c.PatchTenant(ctx, "acme", catalog.TenantPatch{
		Plan: new("free"), Apply: "now", Removed: []string{"features"},
	})
	require.NoError(t, err)
	soon("seats", false)
	soon("sso", false)
}
