package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/gate/provision"
	"github.com/quotasvc/quotasvc/internal/httpapi"
	"github.com/quotasvc/quotasvc/internal/httpapi/envoyrls"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/report/denial"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
	"github.com/quotasvc/quotasvc/internal/serve/ops"
	"github.com/quotasvc/quotasvc/internal/serve/tracing"
	"github.com/quotasvc/quotasvc/internal/store/claim"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// service has all running parts except the listeners. They start in the order of their dependencies, and stop in
// reverse order. First the ledger stops: its lanes finish accepted operations. The catalogue is next. Then the cache
// publishes the last committed balances. The limiter and the connections stop last.
type service struct {
	log       *slog.Logger
	secrets   *rotation
	target    namedsql.Target // whether tables are distributed over a Citus cluster
	api       http.Handler
	console   http.Handler       // nil: there is no console, or the listener of the API serves it
	drain     func()             // ends the open streams of browsers; nil: no console
	sites     []site             // HTML pages at the API's address
	envoy     *envoyrls.Server   // nil: the rate limit service is off
	adminKey  func(string) error // replaces the admin key
	ids       access.IDKey       // signs the ids of charges and leases, and the secrets of links and sessions
	strangers *access.Strangers
	shown     ops.Service
	stops     []stopper
	ledger    atomic.Pointer[pg.Ledger] // nil until it is started; it observes whether PostgreSQL can be reached
}

// away returns why PostgreSQL cannot be reached. It returns nil if PostgreSQL may be reachable.
func (s *service) away() error {
	if l := s.ledger.Load(); l != nil {
		return l.Away()
	}
	return nil
}

// suspect makes the ledger check whether PostgreSQL can be reached.
func (s *service) suspect() {
	if l := s.ledger.Load(); l != nil {
		l.Suspect()
	}
}

type stopper struct {
	what string
	stop func(context.Context) error
}

// inspect returns the kind and the clock of the database. It fails if the service cannot run with its databases.
func inspect(ctx context.Context, cfg *serviceConfig, log *slog.Logger) (namedsql.Target, *clock.Clock, error) {
	var none namedsql.Target
	if err := checkSchema(ctx, string(cfg.DatabaseURL)); err != nil {
		return none, nil, err
	}
	if err := checkReportSessions(ctx, string(cfg.ReportDatabaseURL)); err != nil {
		return none, nil, err
	}
	target, err := databaseTarget(ctx, string(cfg.DatabaseURL))
	if err != nil {
		return none, nil, err
	}
	agreed, err := cfg.clockOf(ctx, string(cfg.DatabaseURL), log)
	if err != nil {
		return none, nil, err
	}
	if ahead := agreed.Ahead(); ahead != 0 && !cfg.testClock {
		return none, nil, fmt.Errorf("this database's time is that of the test clock of `quotasvc dev`, %s ahead of the clocks: only dev can serve it", ahead)
	}
	return target, agreed, nil
}

// movable returns the test clock, which can move the ledger's time, or nil outside of dev.
func (c *serviceConfig) movable(db *pgstore.Store, l *pg.Ledger, agreed *clock.Clock) *testclock.Clock {
	if !c.testClock {
		return nil
	}
	return testclock.New(db, l, agreed)
}

// openProvisioner returns the provisioner, which creates tenants on their first use. It returns nil if no default
// plan is configured. /readyz warns while the default plan does not exist.
func (s *service) openProvisioner(cat *catalog.Catalog, l *pg.Ledger) *provision.Provisioner {
	cfg := s.secrets.cfg
	if cfg.DefaultPlan == "" {
		return nil
	}
	p := provision.New(cat, provision.Config{Plan: cfg.DefaultPlan, PerSecond: cfg.DefaultPlanRate, Clock: l})
	s.shown.Warnings = append(s.shown.Warnings, ops.Condition{Name: "default_plan", Check: p.Missing})
	if err := p.Missing(); err != nil {
		s.log.Warn("no tenant is made on its first use", "error", err)
	}
	return p
}

// openEnvoy opens Envoy's rate limit service, if it is configured.
func (s *service) openEnvoy(cfg *serviceConfig, g *gate.Gate, keys *access.Directory, m *measurements) {
	if cfg.EnvoyRLSListen == "" {
		return
	}
	envoyrls.SetLogger(s.log)
	s.envoy = envoyrls.New(g, envoyrls.Config{
		Keys: keys, RequestTimeout: httpapi.DefaultRequestTimeout, LegacyHeaders: cfg.legacyHeaders(), Tracer: m.traces.Tracer(),
		Log: s.log, Metrics: m.registry,
	})
}

// start creates and starts all parts. If a part fails to start, start stops the parts that have started.
func start(ctx context.Context, secrets *rotation, log *slog.Logger) (_ *service, err error) {
	cfg := secrets.cfg
	target, agreed, err := inspect(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	s := &service{log: log, secrets: secrets, target: target}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stopWithin(ctx, cfg.StopTimeout))
		}
	}()
	m := newMeasurements()
	if m.traces, err = tracing.Start(ctx, versionText(), log, levelWriter{cfg.lines.queue, slog.LevelDebug}); err != nil {
		return nil, err
	}
	s.onStop("tracing", func(ctx context.Context) error { m.traces.Stop(ctx); return nil })
	store, limiter, cache, err := s.startRedis(ctx, cfg, agreed, m)
	if err != nil {
		return nil, err
	}
	cat, keys, err := s.startCatalog(ctx, cfg, agreed, m, limiter)
	if err != nil {
		return nil, err
	}
	sums, err := s.startRollups(ctx, cfg, m)
	if err != nil {
		return nil, err
	}
	l, err := s.startLedger(ctx, cfg, agreed, m, limiter, afterCommit(cache, sums))
	if err != nil {
		return nil, err
	}
	hooks, err := s.startEvents(ctx, cfg, m, l, cat.Store)
	if err != nil {
		return nil, err
	}
	h, err := s.openHistory(ctx, cfg, m, l)
	if err != nil {
		return nil, err
	}
	checks, err := s.startVerifier(ctx, cfg, m, cache)
	if err != nil {
		return nil, err
	}
	overrides := s.openOverrides(cfg, cat.Store)
	refusals, err := s.startDenials(ctx, cfg, m, l)
	if err != nil {
		return nil, err
	}
	provisioner := s.openProvisioner(cat, l)
	names := claim.New(store)
	g := gate.New(l, cat, limiter, cache, gate.Config{
		LoadsMax: cfg.CheckReads, Overrides: overrides, Provisioner: provisioner, Denials: refusals, Once: names,
		IDKey: s.ids.Secret, UnsignedUntil: s.ids.UnsignedUntil, Log: log, Metrics: m.registry,
	})
	err = s.startAPI(cfg, m, parts{ledger: l, history: h, catalog: cat, gate: g, claims: names}, httpapi.Config{
		Keys: keys, Overrides: overrides.Store, Verifier: checks, Webhooks: hooks,
		TestClock: cfg.movable(cat.DB(), l, agreed),
	})
	if err != nil {
		return nil, err
	}
	s.openEnvoy(cfg, g, keys, m)
	s.show(ctx, m, l, cat, h, store, limiter)
	return s, nil
}

// parts has the parts of the service that the API uses.
type parts struct {
	ledger  *pg.Ledger
	history *history.Reader
	catalog *catalog.Catalog
	gate    *gate.Gate
	claims  *claim.Names
}

// startAPI creates the API, the parts that only it uses, and the HTML pages. `of` configures the API.
func (s *service) startAPI(cfg *serviceConfig, m *measurements, p parts, of httpapi.Config) (err error) {
	if of.TrustedProxies, err = parseProxies(cfg.TrustedProxies); err != nil {
		return err
	}
	of.Status = s.startStatus(m, p.ledger, p.history)
	exists := func(ctx context.Context, tenant string) error {
		_, err := p.catalog.Store.Tenant(ctx, tenant)
		return err
	}
	of.Links = link.NewStore(p.catalog.DB(), s.strangers, exists)
	of.Log, of.Registry, of.Traced, of.LegacyHeaders, of.LinkBase = s.log, m.registry, m.traces != nil, cfg.legacyHeaders(), cfg.PortalURL
	api, err := httpapi.New(p.gate, p.ledger, p.history, p.catalog, of)
	if err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	s.api, s.adminKey = m.traces.Handler(api.Handler()), of.Keys.SetBootstrap
	client := forwarded.NewProxies(of.TrustedProxies, s.log).Client
	if err := errors.Join(s.openPortal(cfg, of.Links, client), s.openConsole(cfg, p.catalog.DB(), of.Keys, p.claims, client)); err != nil {
		return err
	}
	s.api = beside(s.api, s.sites...)
	return nil
}

// checkReportSessions refuses a replica for reports behind a pooler that shares sessions. It accepts a replica that
// does not answer, because the replica may start later.
func checkReportSessions(ctx context.Context, url string) error {
	if url == "" {
		return nil
	}
	if err := pgpool.CheckServer(ctx, url); errors.Is(err, pgpool.ErrSessionsShared) {
		return fmt.Errorf("%s: %w", settingName("report-database-url"), err)
	}
	return nil
}

// measurements has the metrics and the tracing that several parts share.
type measurements struct {
	registry *prometheus.Registry
	lanes    *lane.Metrics
	limits   *ratelimit.Metrics
	redis    *redisstore.Metrics
	replicas *replica.Metrics
	traces   *tracing.Tracing // nil: tracing is off
}

func newMeasurements() *measurements {
	registry := prometheus.NewRegistry()
	registerBuild(registry)
	return &measurements{
		registry: registry, lanes: lane.NewMetrics(registry), limits: ratelimit.NewMetrics(registry), redis: redisstore.NewMetrics(registry),
		replicas: replica.NewMetrics(registry),
	}
}

// startRedis starts the parts that use Redis: limits and cached balances. The service starts even if Redis is down.
// If no URL is configured, both parts keep their state in this process.
func (s *service) startRedis(ctx context.Context, cfg *serviceConfig, agreed *clock.Clock, m *measurements) (*redisstore.Store, *ratelimit.Limiter, *balances.Cache, error) {
	limits := ratelimit.Config{MaxLocalLevels: 2 * cfg.TenantsInMemory, Log: s.log, Metrics: m.limits}
	copies := balances.Config{
		FreshFor: cfg.CacheFresh, LocalMax: cfg.TenantsInMemory, Clock: agreed, Log: s.log, Metrics: m.registry,
	}
	if cfg.RedisURL == "" {
		s.log.Warn("no redis is configured: limits and cached balances are kept in this process; use this with one instance only")
		limiter, cache := ratelimit.New(nil, limits), balances.New(nil, copies)
		s.onStop("limiter", limiter.Stop)
		s.onStop("balance cache", cache.Stop)
		return nil, limiter, cache, nil
	}
	store, err := redisstore.Open(string(cfg.RedisURL), redisstore.Config{
		Log: s.log, Metrics: m.redis, LaneMetrics: m.lanes, Tracer: m.traces.Tracer(), Traces: m.traces.Provider(),
		Login: &s.secrets.redis, WatchMax: watchMax(cfg.TenantsInMemory),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	s.onStop("redis connections", func(context.Context) error { return store.Close() })
	heartbeat := replica.NewHeartbeat(store, replica.Config{Minimum: cfg.Replicas, Log: s.log, Metrics: m.replicas})
	s.onStop("heartbeat", heartbeat.Stop) // the heartbeat stops after the last decision
	limits.Replicas = heartbeat.Replicas
	limiter, cache := ratelimit.New(store, limits), balances.New(store, copies)
	s.onStop("requests to redis", store.Stop)
	s.onStop("limiter", limiter.Stop)
	started := store.Start(ctx)
	if err := s.watchEviction(ctx, store); err != nil {
		return nil, nil, nil, err
	}
	if err := errors.Join(started, heartbeat.Start(ctx)); err != nil {
		s.log.Warn("redis is down; the service starts without it", "error", err)
	}
	cache.Start()
	s.onStop("balance cache", func(ctx context.Context) error {
		if err := cache.Stop(ctx); err != nil {
			// The answers of other instances stay correct: they drop copies that are too old.
			s.log.Warn("publishing the last balances failed", "error", err)
		}
		return nil
	})
	return store, limiter, cache, nil
}

// watchMax returns how many Redis keys are watched. A tenant needs one key for its balance and three for limits. Up to
// redisstore.DefaultWatchMax/3 tenants, only three keys of each are counted, so that the process stays below 150 MB.
func watchMax(tenants int) int {
	if tenants <= redisstore.DefaultWatchMax/3 {
		return 3 * tenants
	}
	return 4 * tenants
}

// watchEviction returns an error if a master of Redis may evict keys. Otherwise it starts periodic checks, because the
// policy or the master may change. If a later check finds a problem, the service keeps running with a warning: without
// the service there would be no limits at all.
func (s *service) watchEviction(ctx context.Context, store *redisstore.Store) error {
	w := redisstore.NewEvictionWatch(store, s.log)
	if err := w.Look(ctx); err != nil {
		return err
	}
	s.shown.Warnings = append(s.shown.Warnings, ops.Condition{Name: "redis_eviction", Check: w.Found})
	w.Start()
	s.onStop("questions about eviction", w.Stop)
	return nil
}

// startCatalog starts the catalogue and the API keys. A notification about the catalogue also updates the keys.
func (s *service) startCatalog(ctx context.Context, cfg *serviceConfig, agreed *clock.Clock, m *measurements, limiter *ratelimit.Limiter) (*catalog.Catalog, *access.Directory, error) {
	pools, err := s.openRooms(ctx, cfg, m)
	if err != nil {
		return nil, nil, err
	}
	db := pgstore.New(pools[pgstore.Reading], pgstore.Config{
		Target: s.target, Clock: agreed, Away: s.away, Suspect: s.suspect, Rooms: pools, Caller: callerOf,
	})
	store := catalog.NewStore(db, catalog.StoreConfig{CheckLimit: gate.CheckLimit, CheckRules: gate.CheckRules})
	keyStore := access.NewStore(db)
	if s.ids, err = keyStore.IDKey(ctx); err != nil {
		return nil, nil, err
	}
	s.strangers = access.NewStrangers(s.ids.Secret)
	keys, err := access.NewDirectory(keyStore, string(cfg.AdminKey), access.Config{
		Log: s.log, Metrics: m.registry, Strangers: s.strangers,
	})
	if err != nil {
		return nil, nil, err
	}
	c := catalog.New(store, catalog.Config{
		Tenants: 2 * cfg.TenantsInMemory, OnReset: limiter.ForgetBucket, OnKeys: keys.Changed, OnHeard: keys.Heard,
		Log: s.log, Metrics: m.registry,
	})
	s.onStop("catalogue", c.Stop)
	if err := c.Start(ctx); err != nil {
		return nil, nil, err
	}
	s.onStop("keys", keys.Stop)
	return c, keys, keys.Start(ctx)
}

// openOverrides opens the cache of the limits' overrides.
func (s *service) openOverrides(cfg *serviceConfig, c *catalog.Store) *override.Cache {
	overrides := override.NewCache(override.NewStore(c, gate.CheckLimit), override.Config{Sets: 2 * cfg.TenantsInMemory})
	s.onStop("overrides", overrides.Stop)
	return overrides
}

// startDenials starts the recorder that stores refused requests.
func (s *service) startDenials(ctx context.Context, cfg *serviceConfig, m *measurements, l *pg.Ledger) (*denial.Recorder, error) {
	r, err := denial.Open(ctx, denial.Config{DatabaseURL: string(cfg.DatabaseURL), Login: &s.secrets.database, Log: s.log, Metrics: m.registry, Clock: l, RejectionsHigh: cfg.RejectionsHigh})
	if err != nil {
		return nil, err
	}
	s.onStop("denials", func(ctx context.Context) error {
		if err := r.Stop(ctx); err != nil { // no decision depends on stored refusals
			s.log.Warn("storing the last denials failed", "error", err)
		}
		return nil
	})
	r.Start()
	return r, nil
}

// startRollups starts the part that adds up the entries of the journal.
func (s *service) startRollups(ctx context.Context, cfg *serviceConfig, m *measurements) (*history.Rollups, error) {
	w, err := history.OpenRollups(ctx, history.RollupConfig{Target: s.target, DatabaseURL: string(cfg.DatabaseURL), Login: &s.secrets.database, Log: s.log, Metrics: m.registry})
	if err != nil {
		return nil, err
	}
	s.onStop("journal sums", w.Stop)
	w.Start()
	return w, nil
}

func (s *service) openHistory(ctx context.Context, cfg *serviceConfig, m *measurements, l *pg.Ledger) (*history.Reader, error) {
	h, err := history.Open(ctx, l, history.Config{
		Traces:      m.traces.Provider(),
		DatabaseURL: string(cfg.DatabaseURL), ReplicaURL: string(cfg.ReportDatabaseURL), Metrics: m.registry,
		Login: &s.secrets.database, ReplicaLogin: &s.secrets.report,
	})
	if err != nil {
		return nil, err
	}
	s.onStop("report connections", h.Stop)
	return h, nil
}

func (s *service) startLedger(ctx context.Context, cfg *serviceConfig, agreed *clock.Clock, m *measurements, limiter *ratelimit.Limiter, onCommit func([]ledger.BalanceCopy)) (*pg.Ledger, error) {
	l, err := pg.Open(ctx, pg.Config{
		DatabaseURL: string(cfg.DatabaseURL), Login: &s.secrets.database, Lanes: cfg.LedgerLanes, Log: s.log, Metrics: m.registry, LaneMetrics: m.lanes,
		Tracer: m.traces.Tracer(), Traces: m.traces.Provider(),
		Instances: func() int { return limiter.Replicas().Count() },
		Clock:     agreed, OnCommit: onCommit, Readers: cfg.Readers, CachedBalances: cfg.TenantsInMemory, ThroughCoordinator: cfg.CoordinatorOnly,
	})
	if err != nil {
		return nil, err
	}
	s.onStop("ledger", l.Stop)
	if err := l.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the ledger: %w", err)
	}
	s.ledger.Store(l)
	return l, nil
}

// afterCommit returns a function that gets the changed balances of a commit. It publishes their copies. For one
// commit in HintOneIn, it also passes the changed balances to the rollups.
func afterCommit(cache *balances.Cache, sums *history.Rollups) func([]ledger.BalanceCopy) {
	return func(changed []ledger.BalanceCopy) {
		cache.Publish(changed)
		if rand.IntN(history.HintOneIn) == 0 {
			sums.Hint(changed)
		}
	}
}

// startVerifier starts the continuous verifier. Without Redis there are no shared copies to compare.
func (s *service) startVerifier(ctx context.Context, cfg *serviceConfig, m *measurements, cache *balances.Cache) (*verifier.Verifier, error) {
	c := verifier.Config{Target: s.target, DatabaseURL: string(cfg.DatabaseURL), Login: &s.secrets.database, Log: s.log, Metrics: m.registry, Every: cfg.VerifyEvery}
	if cfg.RedisURL != "" {
		c.Copies = cache.Stored
	}
	v, err := verifier.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	s.onStop("verifier", v.Stop)
	v.Start()
	return v, nil
}

func (s *service) onStop(what string, stop func(context.Context) error) {
	s.stops = append(s.stops, stopper{what, stop})
}

// stopWithin stops all parts. It allows this time even if ctx has ended.
func (s *service) stopWithin(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return s.stop(ctx)
}

// stop stops all parts in the reverse order of their start. If a part fails, it still stops the other parts.
func (s *service) stop(ctx context.Context) error {
	var errs []error
	for _, part := range slices.Backward(s.stops) {
		if err := part.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", part.what, err))
		}
	}
	s.stops = nil
	return errors.Join(errs...)
}
