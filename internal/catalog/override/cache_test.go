package override

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle is a cache and a catalogue in a separate database.
type bundle struct {
	*Cache
	catalog *catalog.Catalog
	pool    *pgxpool.Pool // connections of the cache
	byHand  *pgxpool.Pool
}

func newBundle(t *testing.T, change ...func(*Config)) *bundle {
	t.Helper()
	url := testenv.Postgres(t)
	b := &bundle{pool: testenv.Pool(t, testenv.AsService(url)), byHand: testenv.Pool(t, url)}
	forTenants := catalog.NewStore(testenv.Store(testenv.Pool(t, testenv.AsService(url))), catalog.StoreConfig{})
	b.catalog = catalog.New(forTenants, catalog.Config{ReloadEvery: time.Hour})
	require.NoError(t, b.catalog.Start(t.Context()))
	testenv.StopAtEnd(t, b.catalog.Stop)
	forOverrides := catalog.NewStore(testenv.Store(b.pool), catalog.StoreConfig{})
	store := NewStore(forOverrides, func(*catalog.Limit) error { return nil })
	var cfg Config
	for _, f := range change {
		f(&cfg)
	}
	b.Cache = NewCache(store, cfg)
	testenv.StopAtEnd(t, b.Stop)
	testenv.Exec(t, b.byHand, `INSERT INTO tenants (tenant_id, plan, anchor) SELECT 't' || n, 'p', now() FROM generate_series(0, 999) n`)
	return b
}

func (b *bundle) tenant(t *testing.T, id string) *catalog.TenantFacts {
	t.Helper()
	found, err := b.catalog.Tenant(t.Context(), id)
	require.NoError(t, err)
	return &found
}

// rates returns, as text, the rates of the rules r and s for a tenant and a subject.
func (b *bundle) rates(t *testing.T, tenant, subject string) string {
	t.Helper()
	return b.ratesAt(t, tenant, subject, time.Now())
}

func (b *bundle) ratesAt(t *testing.T, tenant, subject string, now time.Time) string {
	t.Helper()
	sets, text := b.Of(t.Context(), b.tenant(t, tenant), subject), ""
	for _, rule := range []string{"r", "s"} {
		if o := sets.Rule(rule, true, now); o != nil {
			text += rule + o.Rate + " "
		}
	}
	return text
}

// refuseConnections makes PostgreSQL close the service's connections and refuse new connections.
func (b *bundle) refuseConnections(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 0', current_database()); END $$",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user",
	} {
		testenv.Exec(t, b.byHand, statement)
	}
}

// reads returns the number of queries that the cache has sent to PostgreSQL.
func reads(t *testing.T, lanes *prometheus.Registry) uint64 {
	t.Helper()
	families, err := lanes.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "quotasvc_lane_batch_items" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("no metric")
	return 0
}

// rows returns the number of stored overrides.
func (b *bundle) rows(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, b.byHand.QueryRow(t.Context(), "SELECT count(*) FROM limit_overrides").Scan(&n))
	return n
}

func TestCache_ManyAtOnce_FewReads_AndOnlyOfWhoHasOverrides(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	testenv.Exec(t, b.byHand, `INSERT INTO limit_overrides (rule, tenant_id, subject, rate)
		SELECT 'r', 't' || n, '', n + 1 || '/s' FROM generate_series(0, 499) n
		UNION ALL SELECT 's', 't' || n, 'u', '7/s' FROM generate_series(250, 749) n
		UNION ALL SELECT 's', 't1', 'u' || n, '7/s' FROM generate_series(1, 20000) n`)
	require.Equal(t, 21_000, b.rows(t))
	want := func(n int, subject string) (text string) {
		if n < 500 {
			text = fmt.Sprintf("r%d/s ", n+1)
		}
		if n >= 250 && n < 750 && subject == "u" {
			text += "s7/s "
		}
		return text
	}
	for range 2 { // first from PostgreSQL, then from memory
		var all sync.WaitGroup
		for n := range 1000 {
			for _, subject := range []string{"", "u", "v"} {
				all.Go(func() {
					assert.Equal(t, want(n, subject), b.rates(t, fmt.Sprint("t", n), subject), "t%d %q", n, subject)
				})
			}
		}
		all.Wait()
	}
	// The cache has the sets of 500 tenants. It also has the sets of two subjects of 501 tenants: t1, and the 500
	// tenants whose subjects have overrides. Tenants and subjects without overrides are never looked up.
	require.Equal(t, 500+2*501, b.sets.Len())
	require.Equal(t, "r2/s s7/s ", b.rates(t, "t1", "u20000"))
	require.Equal(t, 500+2*501+1, b.sets.Len(), "a tenant's 20,000 subjects are not read with it")
}

func TestCache_Change_TakesEffect_AndOutageChangesNothing(t *testing.T) {
	t.Parallel()
	now, lanes := time.Now(), prometheus.NewRegistry()
	b := newBundle(t, func(cfg *Config) { cfg.Now, cfg.Lanes = func() time.Time { return now }, lane.NewMetrics(lanes) })
	ctx := t.Context()
	l := catalog.Limit{Rule: "r", Per: []string{"subject"}, Kind: "token_bucket", Rate: "5/s"}
	testenv.Put(t, b.catalog.PutLimit, l)
	is := func(subject, want string) {
		t.Helper()
		testenv.Eventually(t, func() bool { return b.rates(t, "t1", subject) == want }, subject, " has ", want)
	}
	put := func(o Override) {
		t.Helper()
		_, _, err := b.Put(ctx, o)
		require.NoError(t, err)
	}
	is("u", "")
	put(Override{Rule: "r", Tenant: "t1", Rate: "6/s"})
	is("u", "r6/s ")
	put(Override{Rule: "r", Tenant: "t1", Subject: "u", Rate: "7/s"})
	is("u", "r7/s ")
	is("v", "r6/s ")
	put(Override{Rule: "r", Tenant: "t1", Subject: "u", Rate: "8/s", ExpiresAt: now.Add(time.Hour)})
	is("u", "r8/s ")
	require.Equal(t, "r6/s ", b.ratesAt(t, "t1", "u", now.Add(time.Hour)), "expired")
	require.NoError(t, b.Delete(ctx, "r", "t1", ""))
	is("v", "")
	put(Override{Rule: "r", Tenant: "t1", Rate: "9/s"})
	put(Override{Rule: "r", Tenant: "t2", Rate: "9/s"})
	is("v", "r9/s ")

	t2 := b.tenant(t, "t2")
	require.True(t, t2.RuleOverrides)
	b.refuseConnections(t)
	is("v", "r9/s ") // from memory
	before := reads(t, lanes)
	for range 100 {
		require.Nil(t, b.Of(ctx, t2, "").Rule("r", true, time.Now()), "unknown: the rule itself decides")
	}
	require.Equal(t, before+1, reads(t, lanes), "one attempt, then a pause")
	changed := *b.tenant(t, "t1")
	changed.Read++ // the catalogue has read the tenant again
	require.NotNil(t, b.Of(ctx, &changed, "").Rule("r", true, time.Now()), "what was known stays in use")
}

func TestPut_BoundOfRules_AndExpiredOnesGo(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	testenv.Exec(t, b.byHand, `INSERT INTO limits (rule, spec) SELECT 'r' || n, jsonb_build_object('rule', 'r' || n, 'per', jsonb_build_array('tenant'),
		'kind', 'token_bucket', 'rate', '5/s') FROM generate_series(1, 1001) n`)
	testenv.Exec(t, b.byHand, `INSERT INTO limit_overrides (rule, tenant_id, rate, expires_at) SELECT 'r' || n, 't1', '5/s', now() + interval '1 hour' FROM generate_series(1, 1000) n`)
	_, _, err := b.Put(ctx, Override{Rule: "r1001", Tenant: "t1", Rate: "6/s"})
	require.Equal(t, errcode.Conflict, errcode.Of(err))
	_, created, err := b.Put(ctx, Override{Rule: "r1000", Tenant: "t1", Rate: "6/s"})
	require.NoError(t, err)
	require.False(t, created)
	testenv.Exec(t, b.byHand, `UPDATE limit_overrides SET expires_at = now() - interval '1 second' WHERE rule <> 'r1000'`)
	_, created, err = b.Put(ctx, Override{Rule: "r1001", Tenant: "t2", Rate: "6/s"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, 1000-1-forgottenAtOnce+1+1, b.rows(t))
	_, err = b.List(ctx, "r1", listing.Query{Limit: 10, Cursor: "!"})
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
}
