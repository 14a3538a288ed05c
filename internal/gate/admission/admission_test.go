package admission

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
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// statements counts what is sent to PostgreSQL.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// newCatalog returns a catalogue that reads nothing unless it is told of a change, and the count of its statements.
func newCatalog(t *testing.T) (*catalog.Catalog, *statements) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testenv.AsService(testenv.Postgres(t)))
	require.NoError(t, err)
	counted := &statements{}
	cfg.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	store, err := catalog.NewStore(pool, catalog.StoreConfig{Target: namedsql.Target(testenv.OnCitus()), Timeout: testenv.Patience})
	require.NoError(t, err)
	c := catalog.New(store, catalog.Config{ReloadEvery: time.Hour, Heartbeat: time.Hour})
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	return c, counted
}

// The gate is nil here: whoever would ask it for a limit or a balance would panic.
func TestCheck_FeatureAlone_AsksNoBackend(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, counted := newCatalog(t)
	_, _, err := c.PutPlan(ctx, catalog.Plan{ID: "pro", Features: feature.Set{"sso": feature.Switch(true), "seats": feature.Number(0)}})
	require.NoError(t, err)
	_, _, err = c.PutTenant(ctx, catalog.Tenant{ID: "acme", Plan: "pro"})
	require.NoError(t, err)
	a := New(nil, c, nil, nil)
	allowed := func(name string) bool {
		out, err := a.Check(ctx, gate.Request{Tenant: "acme", Feature: name})
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
		_, err := a.Consume(ctx, gate.Request{Tenant: "acme", Feature: "unknown", Key: "k"})
		require.Error(t, err)
	}
	require.Less(t, counted.n.Load()-before, int64(40), "statements of 4,000 questions, and of the catalogue that follows changes meanwhile")

	// Changes of the plan, of the tenant, and of the tenant's plan hold as soon as they are announced.
	_, _, err = c.PutPlan(ctx, catalog.Plan{ID: "pro", Features: feature.Set{"sso": feature.Switch(false), "seats": feature.Number(5)}})
	require.NoError(t, err)
	soon("sso", false)
	soon("seats", true)
	on := feature.Switch(true)
	_, err = c.PatchTenant(ctx, "acme", catalog.TenantPatch{Features: map[string]*feature.Value{"sso": &on}})
	require.NoError(t, err)
	soon("sso", true)
	_, _, err = c.PutPlan(ctx, catalog.Plan{ID: "free"})
	require.NoError(t, err)
	_, _, err = c.PutTenant(ctx, catalog.Tenant{ID: "acme", Plan: "free"})
	require.NoError(t, err)
	soon("seats", false)
	soon("sso", false) // the PUT has no features
}
