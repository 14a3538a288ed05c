package ratelimit

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// stream is a steady load of requests on one bucket, and the sums of their results.
type stream struct {
	l     *Limiter
	req   Request
	every time.Duration

	began          time.Time
	redis, local   atomic.Int64 // number of decisions by Redis, and by this process
	redisAdmitted  atomic.Int64
	localAdmitted  atomic.Int64
	mu             sync.Mutex
	took           []time.Duration
	stop           context.CancelFunc
	ended          sync.WaitGroup
	t              testing.TB
	firstDegraded  atomic.Int64 // unix ns; 0 if none
	latestDegraded atomic.Int64
}

// streams are the loads of one test.
type streams []*stream

// redis returns the number of decisions by Redis.
func (all streams) redis() (n int64) {
	for _, s := range all {
		n += s.redis.Load()
	}
	return n
}

// local returns the number of decisions by the processes.
func (all streams) local() (n int64) {
	for _, s := range all {
		n += s.local.Load()
	}
	return n
}

// flow starts a load with the given number of callers. Each caller sends one request per interval. every is the length
// of the interval.
func flow(t testing.TB, l *Limiter, req Request, callers int, every time.Duration) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{l: l, req: req, every: every, began: time.Now(), stop: cancel, t: t}
	for range callers {
		s.ended.Go(func() { s.run(ctx) })
	}
	t.Cleanup(s.end)
	return s
}

func (s *stream) run(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	var took []time.Duration
	for ctx.Err() == nil {
		<-tick.C
		began := time.Now()
		d, err := s.l.Consume(context.Background(), s.req)
		if !assert.NoError(s.t, err) {
			break
		}
		took = append(took, time.Since(began))
		switch {
		case d.Degraded:
			s.firstDegraded.CompareAndSwap(0, began.UnixNano())
			s.latestDegraded.Store(time.Now().UnixNano())
			s.local.Add(1)
			if d.Allowed {
				s.localAdmitted.Add(1)
			}
		default:
			s.redis.Add(1)
			if d.Allowed {
				s.redisAdmitted.Add(1)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took...)
}

// end ends the load.
func (s *stream) end() {
	s.stop()
	s.ended.Wait()
}

// percentile returns the p'th percentile (0 to 1) of the decision times of an ended load.
func (s *stream) percentile(p float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	return s.took[min(int(float64(len(s.took))*p), len(s.took)-1)]
}

// checkTimes fails the test if a decision took more than ten times its budget.
func (s *stream) checkTimes(what string, budget time.Duration) {
	s.t.Helper()
	slowest := s.percentile(1)
	s.t.Logf("%s: %d by redis, %d local; p50 %s, p99 %s, slowest %s", what, s.redis.Load(), s.local.Load(), s.percentile(0.5), s.percentile(0.99), slowest)
	assert.True(s.t, slowest <= 10*budget, "%s: a decision took %s", what, slowest)
}

// checkAdmissions fails the test if more requests were admitted than allowed. During the time `over`, Redis may admit
// the rule's burst and rate. While Redis is away, the process may admit the burst and rate once more. skipped is the
// time by which the limiter's clock was moved ahead.
func (s *stream) checkAdmissions(what string, over, skipped time.Duration) {
	s.t.Helper()
	r := s.req.Charges[0].Rule
	perSecond := float64(r.Rate.Count) / r.Rate.Period.Seconds()
	out := time.Duration(s.latestDegraded.Load()-s.firstDegraded.Load()) + skipped
	byRedis, byProcess := float64(r.Burst)+over.Seconds()*perSecond+1, float64(r.Burst)+out.Seconds()*perSecond+1
	s.t.Logf("%s: %d admitted by redis of at most %.0f, %d by the process of at most %.0f", what,
		s.redisAdmitted.Load(), byRedis, s.localAdmitted.Load(), byProcess)
	// A failover may lose the charges of the requests that were admitted just before it, at most a burst.
	got := float64(s.redisAdmitted.Load())
	assert.True(s.t, got <= byRedis+float64(r.Burst), "%s: redis admitted %.0f", what, got)
	got = float64(s.localAdmitted.Load())
	assert.True(s.t, got <= byProcess, "%s: the process admitted %.0f, at most %.0f", what, got, byProcess)
}

// checkCharges compares the charged tokens in Redis with the answers. Only admitted requests and requests with a lost
// reply may be charged, each at most once. forgotten is the largest number of charges that may be missing.
func (s *stream) checkCharges(what string, client redis.UniversalClient, lost, forgotten int64) {
	s.t.Helper()
	r := s.req.Charges[0].Rule
	var used int64
	testenv.Eventually(s.t, func() bool {
		d := mustPeek(s.t, patientLimiter(s.t, client, settings{}), s.req)
		used = r.Burst - d.Verdicts[0].Remaining
		return !d.Degraded && s.l.local.owing.Load() == 0
	}, "redis has what the process has charged")
	admitted := s.redisAdmitted.Load() + s.localAdmitted.Load()
	s.t.Logf("%s: %d admitted, %d of them by redis, %d charged; %d replies may be lost", what, admitted, s.redisAdmitted.Load(), used, lost)
	assert.True(s.t, used <= admitted+lost,
		"%s: %d charged for %d admitted and %d lost replies", what, used, admitted, lost)
	assert.True(s.t, used >= admitted-forgotten, "%s: only %d charged for %d admitted", what, used, admitted)
}

// TestFailover_Cluster_OnlyOwnTenantsNotice kills or freezes a master of a cluster under load. The tenants of the
// other masters must not notice it. Only the breaker can distinguish a frozen master from a slow answer.
func TestFailover_Cluster_OnlyOwnTenantsNotice(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(*testenv.RedisServer){
		"killed": (*testenv.RedisServer).Kill,
		"frozen": (*testenv.RedisServer).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testenv.RedisClusterPrivate(t)
			c.LetFail()
			const budget = time.Second // a busy machine may delay a call by less than this without an outage
			l := limiterOn(t, clusterWithin(t, c, budget), settings{Metrics: NewMetrics(nil), Budget: budget})
			require.NoError(t, l.store.Start(t.Context()))
			began := time.Now()
			ask := func(master, n int, spec rule.Spec) *stream {
				spec.ID = "rule"
				req := Request{Tenant: tenantOn(c, master, n), Charges: []Charge{{Rule: compile(t, spec)}}}
				return flow(t, l, req, 4, 20*time.Millisecond)
			}
			limited, counted := ask(0, 0, rule.Spec{Rate: "200/s", Burst: 100}), ask(0, 1, rule.Spec{Rate: "1/day", Burst: 100_000})
			others := []*stream{ask(1, 0, rule.Spec{Rate: "1/day", Burst: 100_000}), ask(2, 0, rule.Spec{Rate: "1/day", Burst: 100_000})}
			all := append([]*stream{limited, counted}, others...)
			for _, s := range all {
				testenv.Eventually(t, func() bool { return s.redis.Load() > 50 }, "redis decides")
			}
			takeAway(c.Masters[0])
			testenv.Eventually(t, func() bool { return isAway(l) }, "its breaker opens")
			c.AwaitPromotion(c.Replicas[0], c.Masters[1])
			back := limited.redis.Load()
			testenv.Eventually(t, func() bool { return limited.redis.Load() > back+50 && !isAway(l) }, "its replica decides")
			over := time.Since(began)
			for _, s := range all {
				s.end()
			}
			limited.checkTimes("the lost master's tenant", budget)
			limited.checkAdmissions("the lost master's tenant", over, 0)
			lost := int64(redisCount(t, l, "quotasvc_limit_backend_failures_total", "redis"))
			// Replication is asynchronous, so the failover may lose the last charges. Usually these are the charges
			// of a few milliseconds; on a slow machine they are more.
			counted.checkCharges("its other tenant", clusterWithin(t, c, budget), lost, 100)
			for i, s := range others {
				what := []string{"the second master's tenant", "the third master's tenant"}[i]
				s.checkTimes(what, budget)
				if n := s.local.Load(); n > s.redis.Load()/100 {
					t.Errorf("%s: %d of %d decisions were made without redis", what, n, n+s.redis.Load())
				}
				s.checkCharges(what, clusterWithin(t, c, budget), s.local.Load(), 0)
			}
			testenv.Eventually(t, func() bool { return shardCount(t, l) == 1+len(c.Masters) },
				"one shard per master and the first are known: the lost one is gone")
		})
	}
}

// TestFailover_Sentinel lets the sentinels replace the master under load. They do it because the master is away, or
// because an operator requests it.
func TestFailover_Sentinel(t *testing.T) {
	t.Parallel()
	for name, act := range testenv.SentinelFailovers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testenv.RedisSentinelsPrivate(t)
			metrics, clock := NewMetrics(nil), &movableClock{}
			l := limiterOn(t, productionClient(t, s.URL), settings{Metrics: metrics, Now: clock.now})
			began := time.Now()
			ask := func(tenant string, spec rule.Spec) *stream {
				spec.ID = "rule"
				return flow(t, l, Request{Tenant: tenant, Charges: []Charge{{Rule: compile(t, spec)}}}, 4, 20*time.Millisecond)
			}
			limited, counted := ask("limited", rule.Spec{Rate: "200/s", Burst: 100}), ask("counted", rule.Spec{Rate: "1/day", Burst: 100_000})
			testenv.Eventually(t, func() bool { return counted.redis.Load() > 50 }, "redis decides")
			act(s)
			s.AwaitMaster(s.Replica)
			back := counted.redis.Load()
			testenv.Eventually(t, func() bool {
				clock.advance(100 * time.Millisecond) // towards the next probe
				return counted.redis.Load() > back+100 && !isAway(l)
			}, "the new master decides")
			over := time.Since(began) + time.Duration(clock.ahead.Load())
			limited.end()
			counted.end()
			limited.checkTimes("limited", redisstore.DefaultBudget)
			limited.checkAdmissions("limited", over, time.Duration(clock.ahead.Load()))
			lost := int64(redisCount(t, l, "quotasvc_limit_backend_failures_total", "redis"))
			forgotten := int64(100)
			if name == "wanted" {
				// The sentinels first promote the replica, and demote the old master a second or two later. The
				// charges that the old master accepts in between are lost.
				forgotten = counted.redis.Load()
				n := counted.local.Load()
				assert.True(t, n <= forgotten, "%d of %d decisions were made without redis", n, n+forgotten)
			}
			counted.checkCharges("counted", patientClient(t, s.Replica.Options()), lost, forgotten)
		})
	}
}

// TestFailover_DemotedMaster_ConnectionsDropped moves an address from a master to its replica, as a managed Redis
// does. Existing connections still lead to the old master, which is a replica now. The limiter must close them.
func TestFailover_DemotedMaster_ConnectionsDropped(t *testing.T) {
	t.Parallel()
	old, fresh := testenv.RedisPrivate(t), testenv.RedisPrivate(t)
	password := old.Options().Password
	require.NoError(t, patientClient(t, fresh.Options()).ConfigSet(t.Context(), "requirepass", password).Err())
	proxy := testenv.NewLossyProxy(t, old.Addr)
	clock := &movableClock{}
	l := limiterOn(t, productionClient(t, (&url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: proxy.Addr}).String()),
		settings{Now: clock.now})
	s := flow(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: compile(t, rule.Spec{Rate: "1/day", Burst: 100_000})}}}, 8, 10*time.Millisecond)
	testenv.Eventually(t, func() bool { return s.redis.Load() > 100 }, "redis decides")
	proxy.Server.Store(&fresh.Addr)
	require.NoError(t, patientClient(t, old.Options()).ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	before := s.redis.Load()
	testenv.Eventually(t, func() bool {
		clock.advance(100 * time.Millisecond)
		return s.redis.Load() > before+100 && !isAway(l)
	}, "the new master decides")
	s.end()
	s.checkTimes("demoted", redisstore.DefaultBudget)
}
