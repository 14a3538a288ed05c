package gate

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/store/claim"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// instance is one instance of the service without its HTTP API.
type instance struct {
	*Gate
	t        testing.TB
	measured *prometheus.Registry // metrics of the limiter and the balance cache
	redis    *redisstore.Store    // nil in local mode
}

// nothingHeld waits after a failure of Redis until this process holds no value. A held value counts as an answer of
// Redis.
func (in *instance) nothingHeld() {
	in.t.Helper()
	testenv.Eventually(in.t, func() bool { return !in.redis.Watch().Holds() }, "nothing is held")
}

// newInstance starts an instance that uses a database and a Redis. A nil client means local mode.
func newInstance(t testing.TB, databaseURL string, client redis.UniversalClient, change ...func(*Config)) *instance {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	stop := func(what string, f func(context.Context) error) {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
			defer cancel()
			if err := f(ctx); err != nil {
				t.Logf("stop %s: %v", what, err) // expected in tests that kill servers
			}
		})
	}
	if client != nil {
		stop("redis", func(context.Context) error { return client.Close() })
	}
	measured := prometheus.NewRegistry()
	var redisStore *redisstore.Store
	if client != nil {
		redisStore = redisstore.New(client, redisstore.Config{Budget: testenv.Patience, Metrics: redisstore.NewMetrics(measured)})
		stop("redis requests", redisStore.Stop)
	}
	service := testenv.AsService(databaseURL)
	limiter := ratelimit.New(redisStore, ratelimit.Config{Metrics: ratelimit.NewMetrics(measured)})
	stop("limiter", limiter.Stop)
	cache := balances.New(redisStore, balances.Config{Metrics: measured})
	cache.Start()
	stop("cache", cache.Stop)
	pool, err := pgxpool.New(t.Context(), service)
	require.NoError(t, err)
	stop("pool", func(context.Context) error { pool.Close(); return nil })
	store := catalog.NewStore(testenv.Store(pool), catalog.StoreConfig{CheckLimit: CheckLimit, CheckRules: CheckRules})
	cat := catalog.New(store, catalog.Config{OnReset: limiter.ForgetBucket, Heartbeat: testenv.Patience, LoadTimeout: testenv.Patience})
	require.NoError(t, cat.Start(t.Context()))
	stop("catalog", cat.Stop)
	l, err := pg.Open(t.Context(), pg.Config{
		DatabaseURL: service, Readers: 2, Log: log, Metrics: prometheus.NewRegistry(), AnswerBudget: testenv.Patience, OnCommit: cache.Publish,
	})
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context()))
	stop("ledger", l.Stop)
	overrides := override.NewStore(store, CheckLimit)
	cfg := Config{
		IDKey: []byte("key of tests"), Once: claim.New(redisStore), Overrides: override.NewCache(overrides, override.Config{LoadTimeout: testenv.Patience}),
		LoadBudget: testenv.Patience,
	}
	stop("overrides", cfg.Overrides.Stop)
	for _, f := range change {
		f(&cfg)
	}
	in := &instance{Gate: New(l, cat, limiter, cache, cfg), t: t, measured: measured, redis: redisStore}
	in.refundBudget = testenv.Patience
	return in
}

// patientClient returns a client with long timeouts, so that a slow answer on a busy machine is no outage.
func patientClient(options *redis.Options) redis.UniversalClient {
	const patience = testenv.Patience
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, -1, 1
	return redis.NewClient(options)
}

// serviceClient returns a client with the timeouts of the service.
func serviceClient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	return client
}

// pace pauses between two requests of a background load.
func pace() { time.Sleep(10 * time.Millisecond) }

// sum returns the sum of the series of a metric that have all the given label values.
func (in *instance) sum(metric string, values ...string) (sum float64) {
	in.t.Helper()
	families, err := in.measured.Gather()
	require.NoError(in.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			lacks := func(value string) bool {
				return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == value })
			}
			if f.GetName() == metric && !slices.ContainsFunc(values, lacks) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// newShared starts an instance on the PostgreSQL and Redis servers that all tests of this process share.
func newShared(t testing.TB, change ...func(*Config)) *instance {
	t.Helper()
	return newInstance(t, testenv.Postgres(t), patientClient(testenv.Redis(t)), change...)
}

// newTwo starts two instances on one database and one Redis.
func newTwo(t testing.TB) (a, b *instance) {
	t.Helper()
	database, options := testenv.Postgres(t), testenv.Redis(t)
	return newInstance(t, database, patientClient(options)), newInstance(t, database, patientClient(options))
}

// catalogue stores the meters "calls", "credits" and "other". It also stores the plan "basic", with 10 calls a year
// and the given limits, and the tenant "acme" on this plan.
func (in *instance) catalogue(limits ...catalog.Limit) *instance {
	in.t.Helper()
	in.putMeters("calls", "credits", "other")
	allowances := []catalog.Allowance{yearly("calls", 10), noCredits}
	in.putPlan(catalog.Plan{ID: "basic", Limits: limits, Allowances: allowances})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic"})
	return in
}

func (in *instance) putMeters(ids ...string) {
	in.t.Helper()
	for _, id := range ids {
		_, _, err := in.tenants.catalog.PutMeter(in.t.Context(), catalog.Meter{ID: id, Unit: "unit"})
		require.NoError(in.t, err)
	}
}

// yearly returns an allowance that a plan grants in each calendar year.
func yearly(meter string, amount int64) catalog.Allowance {
	return catalog.Allowance{Meter: meter, Amount: amount, Every: period.Year, Anchor: period.Calendar}
}

// noCredits is the allowance of a plan whose credits are all bought.
var noCredits = catalog.Allowance{Meter: "credits", Amount: 0, Every: period.Once, Anchor: period.Calendar}

// putPlan stores a plan and waits until it is in the snapshot.
func (in *instance) putPlan(p catalog.Plan) {
	in.t.Helper()
	stored, _, err := in.tenants.catalog.PutPlan(in.t.Context(), p)
	require.NoError(in.t, err)
	testenv.Eventually(in.t, func() bool {
		got := in.tenants.catalog.Snapshot().Plans[p.ID]
		return got != nil && got.Version == stored.Version
	}, "the plan is in the snapshot")
}

func (in *instance) putTenant(tn catalog.Tenant) {
	in.t.Helper()
	_, _, err := in.tenants.catalog.PutTenant(in.t.Context(), tn)
	require.NoError(in.t, err)
}

func (in *instance) topUp(key, meter string, amount int64) {
	in.t.Helper()
	g := &ledger.Grant{Tenant: "acme", Key: key, Meter: meter, Amount: amount, Source: ledger.SourceTopup}
	_, err := in.Grant(in.t.Context(), g, false)
	require.NoError(in.t, err)
}

// request returns a request of tenant acme for the given amount of a meter.
func request(key, meter string, amount int64) Request {
	return Request{Tenant: "acme", Key: key, Items: []ledger.Item{{Meter: meter, Amount: amount}}}
}

// forTenant returns req as a request of another tenant.
func forTenant(tenant string, req Request) Request {
	req.Tenant = tenant
	return req
}

// dryRun returns req as a dry run.
func dryRun(req Request) Request {
	req.DryRun = true
	return req
}

// fromPostgres returns req with a MaxStale of zero, so that PostgreSQL answers it.
func fromPostgres(req Request) Request {
	zero := time.Duration(0)
	req.MaxStale = &zero
	return req
}

// codeOf returns the code of err, or "" if err is nil.
func codeOf(err error) errcode.Code {
	if err == nil {
		return ""
	}
	return CodeOf(err)
}

// expectCode reports a test failure if err does not have the given code. The code "" means success.
func (in *instance) expectCode(code errcode.Code, what string, err error) {
	in.t.Helper()
	assert.Equal(in.t, code, codeOf(err), "%s: %v", what, err)
}

// consumes makes a consume, whose error must have the given code. The code "" means success.
func (in *instance) consumes(code errcode.Code, what string, req Request) Debited {
	in.t.Helper()
	out, err := in.Consume(in.t.Context(), req)
	require.Equal(in.t, code, codeOf(err), "%s: %v", what, err)
	return out
}

// debits makes a debit, whose error must have the given code. The code "" means success.
func (in *instance) debits(code errcode.Code, what string, req Request) Debited {
	in.t.Helper()
	out, err := in.Debit(in.t.Context(), req)
	require.Equal(in.t, code, codeOf(err), "%s: %v", what, err)
	return out
}

// checks makes a check that must be answered.
func (in *instance) checks(req Request) Check {
	in.t.Helper()
	got, err := in.Check(in.t.Context(), req)
	require.NoError(in.t, err)
	return got
}

func (in *instance) remaining(meter string) int64 {
	in.t.Helper()
	b, err := in.ledger.Balance(in.t.Context(), "acme", meter, "")
	require.NoError(in.t, err)
	return b.Remaining
}

// awaitAnnouncements waits until this instance has processed all announcements that were made before the call.
// Otherwise an earlier announcement could remove a tenant from the cache after the test has read that tenant.
func (in *instance) awaitAnnouncements(databaseURL string) {
	in.t.Helper()
	conn, err := pgx.Connect(in.t.Context(), databaseURL)
	require.NoError(in.t, err)
	defer conn.Close(context.Background())
	// Announcements are processed in order, and each announcement of a change makes a new snapshot. The first round
	// may see the snapshot of an earlier announcement. The second round ends only after the announcement of the first
	// round was processed.
	for range 2 {
		before := in.tenants.catalog.Snapshot()
		const change = "WITH changed AS (UPDATE meters SET updated_at = now() RETURNING meter) SELECT pg_notify('quotasvc_catalog', 'meter:' || meter) FROM changed"
		_, err = conn.Exec(in.t.Context(), change)
		require.NoError(in.t, err)
		testenv.Eventually(in.t, func() bool { return in.tenants.catalog.Snapshot() != before }, "the announcement is processed")
	}
}

// breakable returns the URL of a proxy in front of a database, and a function that breaks the proxy as if the server
// had stopped. The function closes all connections. Every new connection is closed as well.
func breakable(t testing.TB, databaseURL string) (url string, end func()) {
	t.Helper()
	link, url := testenv.NewLinkTo(t, databaseURL)
	return url, func() {
		t.Helper()
		nobody := "127.0.0.1:1"
		link.Server.Store(&nobody)
		execute(t, databaseURL, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
}

// blocker is a transaction that holds locks until it is released.
type blocker struct {
	t    testing.TB
	conn *pgx.Conn
}

// lockRows runs a statement that takes locks, in a transaction that keeps them until release.
func lockRows(t testing.TB, databaseURL, statement string) *blocker {
	t.Helper()
	b := &blocker{t, testenv.Connect(t, databaseURL)}
	b.exec("BEGIN")
	b.exec(statement)
	return b
}

func (b *blocker) exec(statement string) {
	b.t.Helper()
	_, err := b.conn.Exec(b.t.Context(), statement)
	require.NoError(b.t, err)
}

// waiters returns the number of sessions that wait for locks in this database.
func (b *blocker) waiters() (n int) {
	b.t.Helper()
	require.NoError(b.t, b.conn.QueryRow(b.t.Context(), testenv.Waiting()).Scan(&n))
	return n
}

// awaitWaiter waits until at least n sessions wait for locks in this database.
func (b *blocker) awaitWaiter(n int) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool { return b.waiters() >= n }, "sessions wait for the lock")
}

func (b *blocker) release() {
	b.t.Helper()
	b.exec("ROLLBACK")
}
