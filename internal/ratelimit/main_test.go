package ratelimit

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

func TestMain(m *testing.M) { testenv.MainWithRedis(m) }

// baseOptions returns the options of a client from redisstore.NewClient.
func baseOptions(t testing.TB) redis.Options {
	t.Helper()
	c := testenv.CloseAtEnd(t, testenv.Must(t).Get(redisstore.NewClient("redis://unused")))
	return *c.(*redis.Client).Options()
}

// patientClient returns a client with the options of redisstore.NewClient and much longer timeouts, so that decisions
// on a busy machine do not become degraded. A killed server is still noticed at once, because it refuses connections.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	return clientWithin(t, o, testenv.Patience)
}

// parallelClient makes the test parallel and returns a patientClient of the shared Redis.
func parallelClient(t *testing.T) *redis.Client {
	t.Helper()
	t.Parallel()
	return patientClient(t, testenv.Redis(t))
}

// parallelServer makes the test parallel. It returns a Redis for this test and a patientClient of it.
func parallelServer(t *testing.T) (*testenv.RedisServer, *redis.Client) {
	t.Helper()
	t.Parallel()
	server := testenv.RedisPrivate(t)
	return server, patientClient(t, server.Options())
}

// clientWithin returns a client with the options of redisstore.NewClient and the given timeout.
func clientWithin(t testing.TB, o *redis.Options, timeout time.Duration) *redis.Client {
	t.Helper()
	opts := baseOptions(t)
	opts.Addr, opts.Username, opts.Password, opts.DB = o.Addr, o.Username, o.Password, o.DB
	opts.Dialer, opts.Network = nil, ""
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = timeout, timeout, timeout, timeout
	return testenv.CloseAtEnd(t, redis.NewClient(&opts))
}

// testGrace is the time by which a script prolongs the TTL of a key if it uses the test's time. Redis expires keys by
// its own clock, so a key without this grace could expire during a test.
const testGrace = 599 * time.Second

// settings are the configuration of a limiter and of its store.
type settings struct {
	Budget         time.Duration
	Lanes          int
	MaxQueue       int
	MaxLocalLevels int
	Replicas       func() *replica.Set
	Log            *slog.Logger
	Metrics        *Metrics
	Now            func() time.Time
	redisNow       func() int64
	forgetful      bool
}

// patientLimiter returns a limiter with a budget so long that a busy machine does not exceed it.
func patientLimiter(t testing.TB, client redis.UniversalClient, cfg settings) *Limiter {
	t.Helper()
	cfg.Budget = testenv.Patience
	return limiterOn(t, client, cfg)
}

// limiterOn returns a limiter on client, or in local mode if client is nil. At the end of the test the limiter is
// stopped before the client is closed.
func limiterOn(t testing.TB, client redis.UniversalClient, cfg settings) *Limiter {
	t.Helper()
	var store *redisstore.Store
	if client != nil {
		store = storeOn(t, client, cfg)
	}
	l := New(store, Config{
		Lanes: cfg.Lanes, MaxLocalLevels: cfg.MaxLocalLevels, Replicas: cfg.Replicas, Log: cfg.Log, Metrics: cfg.Metrics, Now: cfg.Now,
		redisNow: cfg.redisNow, forgetful: cfg.forgetful,
	})
	testenv.StopAtEnd(t, l.Stop)
	return l
}

// measured contains the registry of each store's metrics. The key is the *redisstore.Store.
var measured sync.Map

// storeOn returns a store on client. At the end of the test the store is stopped before the client is closed.
func storeOn(t testing.TB, client redis.UniversalClient, cfg settings) *redisstore.Store {
	t.Helper()
	registry := prometheus.NewRegistry()
	store := redisstore.New(client, redisstore.Config{
		Budget: cfg.Budget, MaxQueue: cfg.MaxQueue, Log: cfg.Log, Metrics: redisstore.NewMetrics(registry), Now: cfg.Now,
	})
	measured.Store(store, registry)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		assert.NoError(t, store.Stop(ctx), "stop")
		measured.Delete(store)
	})
	return store
}

// limitsScript returns the script lua.Limits on a store of its own.
func limitsScript(t testing.TB, client redis.UniversalClient) *redisstore.Script {
	t.Helper()
	return storeOn(t, client, settings{}).NewScript("limits", lua.Limits)
}

// redisSeries returns the values of a metric of l's store, by label.
func redisSeries(t testing.TB, l *Limiter, name string) map[string]float64 {
	t.Helper()
	registry, ok := measured.Load(l.store)
	require.True(t, ok, "a store without a registry")
	families := testenv.Must(t).Get(registry.(*prometheus.Registry).Gather())
	all := make(map[string]float64)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			all[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// redisCount returns the value of one series of l's store.
func redisCount(t testing.TB, l *Limiter, name, label string) float64 {
	t.Helper()
	return redisSeries(t, l, name)[label]
}

// shardCount returns the number of shards that l's store knows.
func shardCount(t testing.TB, l *Limiter) int {
	t.Helper()
	return len(redisSeries(t, l, "quotasvc_limit_breaker_open"))
}

// isAway reports whether decisions are made without Redis because Redis, or a master of its cluster, is away.
func isAway(l *Limiter) bool { return l.store.AnyAway() }

// tester is a *testing.T, a *testing.B or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

// compile returns the rule of a spec that must be valid.
func compile(t tester, spec rule.Spec) *rule.Rule {
	t.Helper()
	if spec.ID == "" {
		spec.ID = "rule"
	}
	r := testenv.Must(t).Get(rule.Compile(spec))
	return &r
}
