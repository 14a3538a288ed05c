package ratelimit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// place is a private Redis: its server, a client, and a proxy in front of it through which the instances reach it.
type place struct {
	t      *testing.T
	server *testenv.RedisServer
	client *redis.Client
	proxy  *testenv.LossyProxy
	url    string // of the proxy
}

func newPlace(t *testing.T) *place {
	t.Helper()
	server := testenv.RedisPrivate(t)
	proxy := testenv.NewLossyProxy(t, server.Addr)
	address := url.URL{Scheme: "redis", User: url.UserPassword("", server.Options().Password), Host: proxy.Addr}
	return &place{t, server, patientClient(t, server.Options()), proxy, address.String()}
}

func (p *place) do(args ...any) {
	require.NoError(p.t, p.client.Do(context.Background(), args...).Err())
}

// outages are ways in which Redis is away from all instances.
func outages() map[string]struct{ harm, heal func(p *place) } {
	return map[string]struct{ harm, heal func(p *place) }{
		"paused": {func(p *place) { p.server.Pause() }, func(p *place) { p.server.Resume() }},
		"read-only": {
			func(p *place) { p.do("replicaof", "127.0.0.1", "1") },
			func(p *place) { p.do("replicaof", "no", "one") },
		},
		"full": {
			func(p *place) { p.do("config", "set", "maxmemory", "1") },
			func(p *place) { p.do("config", "set", "maxmemory", "0") },
		},
		"replies lost":  {func(p *place) { p.proxy.Lose.Store(true) }, func(p *place) { p.proxy.Lose.Store(false) }},
		"killed, empty": {func(p *place) { p.server.Kill() }, func(p *place) { p.server.Start() }},
	}
}

// instances returns n limiters that know each other, on the Redis at url.
func instances(t *testing.T, n int, url string, clock *movableClock) []*Limiter {
	t.Helper()
	var all []*Limiter
	for i := range n {
		var others []uint64
		for j := range n {
			if j != i {
				others = append(others, uint64(j+1))
			}
		}
		set := replica.Known(uint64(i+1), others, 0)
		settings := settings{Replicas: func() *replica.Set { return set }, Now: clock.now}
		all = append(all, limiterOn(t, productionClient(t, url), settings))
	}
	return all
}

// TestOutages_RedisKeepsItsData_AdmitTheLimitOnce: of 40 tokens 10 are used, then Redis is away, the instances admit
// what they can, and Redis returns. In the whole time at most 40 tokens are admitted, of each kind, by one instance and
// by several, however Redis is away, also if the next request after it reaches the instance that returned first.
func TestOutages_RedisKeepsItsData_AdmitTheLimitOnce(t *testing.T) {
	t.Parallel()
	for name, o := range outages() {
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				t.Parallel()
				at, clock := newPlace(t), &movableClock{}
				all := instances(t, n, at.url, clock)
				other := requestFor("other", compile(t, rule.Spec{ID: "other", Rate: "1000000/s"}), "", 1)
				rules := []*rule.Rule{compile(t, rule.Spec{ID: "month", Kind: "fixed_window", Rate: "40/month"})}
				for _, kind := range kinds() {
					rules = append(rules, slowRule(t, kind, 40))
				}
				var admitted [6]int64
				take := func(l *Limiter, most int64) {
					for i, r := range rules {
						for n := int64(0); n < most && mustConsume(t, l, requestOf(Charge{Rule: r})).Allowed; n++ {
							admitted[i]++
						}
					}
				}
				until := func(l *Limiter, away bool) {
					testenv.Eventually(t, func() bool {
						if !away {
							clock.advance(redisstore.RetryAfter)
						}
						d := mustConsume(t, l, other)
						return isAway(l) == away && d.Degraded == away
					}, "away")
				}
				// knows reports whether Redis has told l the level of r. A busy machine may answer too late. If that
				// opens the breaker, the level counts only after l has gone through the return of Redis.
				knows := func(l *Limiter, r *rule.Rule) bool {
					look := Request{Tenant: "acme", Fresh: true, Charges: []Charge{{Rule: r}}}
					returned := !isAway(l) && !l.returning("")
					if !returned {
						clock.advance(returnFor)
					}
					return mustPeek(t, l, look).Mode != ModeLocal && returned
				}
				for _, l := range all {
					until(l, false)
				}
				take(all[0], 10)
				for range 2 { // two outages
					for _, l := range all {
						testenv.Eventually(t, func() bool { return l.local.owing.Load() == 0 }, "nothing is owed")
					}
					for _, l := range all {
						for _, r := range rules {
							testenv.Eventually(t, func() bool { return knows(l, r) }, "it knows the level")
						}
					}
					o.harm(at)
					for _, l := range all {
						until(l, true)
						take(l, 100)
					}
					o.heal(at)
					for _, l := range all { // each one returns alone, and is asked before the others return
						until(l, false)
						take(l, 100)
					}
				}
				for i, r := range rules {
					assert.True(t, admitted[i] > 30 && admitted[i] <= 40, "%s: %d admitted of 40", r.ID, admitted[i])
				}
			})
		}
	}
}

// TestOutages_NobodyAsks_ChargesReachRedis: what an instance has charged itself reaches Redis when it is back, also if
// nobody asks this instance again. Then other instances know it.
func TestOutages_NobodyAsks_ChargesReachRedis(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	clock := &movableClock{}
	all := instances(t, 1, server.URL, clock)
	r := slowRule(t, rule.KindTokenBucket, 10)
	req := requestOf(Charge{Rule: r})
	mustConsume(t, all[0], req)
	server.Pause()
	testenv.Eventually(t, func() bool { _ = mustPeek(t, all[0], req); return isAway(all[0]) }, "away")
	for range 5 {
		mustPass(t, all[0], req)
	}
	server.Resume()
	fresh := patientLimiter(t, patientClient(t, server.Options()), settings{})
	testenv.Eventually(t, func() bool {
		clock.advance(time.Second)
		return remaining(t, fresh, Request{Tenant: "acme", Fresh: true, Charges: req.Charges}) == 4
	}, "the charges are in Redis")
}

// TestOutages_ManyFailedTries_OneRequestCarriesAll: in a long outage thousands of tries to reach Redis fail, some of
// them after Redis has run their calls, and this process charges itself between them. The first request that reaches
// Redis carries all charges in a few calls, and each charge counts once.
func TestOutages_ManyFailedTries_OneRequestCarriesAll(t *testing.T) {
	const tries = 2000
	client := parallelClient(t)
	hook := &cutHook{}
	client.AddHook(hook)
	var clock testClock
	clock.us.Store(worldStart)
	l := patientLimiter(t, client, settings{
		redisNow: clock.now, Now: func() time.Time { return time.UnixMicro(clock.now()) }, forgetful: true,
	})
	l.carrying.Store(true) // the requests carry the charges, and no goroutine
	req := requestOf(Charge{Rule: slowRule(t, rule.KindFixedWindow, 10*tries)})
	mustPass(t, l, req)
	hook.cut.Store(true)
	for i := range tries {
		hook.late.Store(i%2 == 1) // the first call is a request, which would be charged twice
		clock.advance(redisstore.RetryAfter)
		mustPass(t, l, req)
	}
	hook.cut.Store(false)
	clock.advance(redisstore.RetryAfter)
	before := hook.sent.Load()
	v := mustPass(t, l, req)
	assert.True(t, v.Mode == ModeRedis && v.Remaining == 10*tries-(tries+2), "%+v", v)
	calls := hook.sent.Load() - before
	assert.True(t, calls <= 3, "%d calls, want a repeated raise, one with the other charges, and the request", calls)
}

// TestOutages_OneCutOff_AdmitsItsShareMore: one of two instances does not reach Redis, and the other goes on. Together
// they admit at most the limit and the share of the one that was cut off. When it is back, nothing more is admitted.
func TestOutages_OneCutOff_AdmitsItsShareMore(t *testing.T) {
	t.Parallel()
	at, clock := newPlace(t), &movableClock{}
	all := []*Limiter{instances(t, 2, at.server.URL, clock)[0], instances(t, 2, at.url, clock)[1]}
	other := requestFor("other", compile(t, rule.Spec{ID: "other", Rate: "1000000/s"}), "", 1)
	until := func(away bool) {
		testenv.Eventually(t, func() bool {
			if !away {
				clock.advance(redisstore.RetryAfter)
			}
			return mustConsume(t, all[1], other).Degraded == away && isAway(all[1]) == away
		}, "away")
	}
	var rules []*rule.Rule
	for _, kind := range kinds() {
		rules = append(rules, slowRule(t, kind, 40))
		testenv.Eventually(t, func() bool {
			return mustPeek(t, all[1], requestOf(Charge{Rule: rules[len(rules)-1]})).Mode != ModeLocal
		}, "redis")
	}
	at.proxy.Lose.Store(true)
	until(true)
	for _, r := range rules {
		n := exhaust(t, all[1], requestOf(Charge{Rule: r})) + exhaust(t, all[0], requestOf(Charge{Rule: r}))
		assert.True(t, n > 40 && n <= 60, "%s: %d admitted of 40", r.Kind, n)
	}
	at.proxy.Lose.Store(false)
	until(false)
	clock.advance(returnFor)
	for _, r := range rules {
		n := exhaust(t, all[1], requestOf(Charge{Rule: r})) + exhaust(t, all[0], requestOf(Charge{Rule: r}))
		assert.Zero(t, n, "%s: admitted afterwards", r.Kind)
		v := mustPeek(t, all[0], Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Fresh: true}).Verdicts[0]
		assert.Zero(t, v.Owed, "%s: owed", r.Kind)
	}
}

// TestStop_PartOfTheClusterAway_CarriesToTheRest: a process that stops while one master is away carries what it owes to
// the other masters.
func TestStop_PartOfTheClusterAway_CarriesToTheRest(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	l := patientLimiter(t, patientCluster(t, c), settings{})
	l.carrying.Store(true) // Stop carries the charges, and no goroutine
	require.NoError(t, l.store.Start(t.Context()))
	r := slowRule(t, rule.KindTokenBucket, 10)
	here, gone := requestFor(tenantOn(c, 1, 0), r, "", 1), requestFor(tenantOn(c, 0, 0), r, "", 1)
	mustPass(t, l, here)
	c.Replicas[0].Kill()
	c.Masters[0].Kill()
	testenv.Eventually(t, func() bool { _ = mustConsume(t, l, gone); return isAway(l) }, "a master is away")
	q := testenv.Must(t).Get(here.check(rule.Consume))
	d := testenv.Must(t).Get(l.degraded(&q)) // as if this master had been away just now
	require.True(t, d.Allowed, d)
	require.NoError(t, l.Stop(t.Context()))
	fresh := patientLimiter(t, patientCluster(t, c), settings{})
	assert.EqualValues(t, 8, remaining(t, fresh, here), "left of 10 after 2 charges")
}

// TestCarry_RedisAway_CopiesNothing: while no shard answers, the goroutine that sends what is owed copies none of it.
func TestCarry_RedisAway_CopiesNothing(t *testing.T) {
	now := time.Now() // it stands still, so no probe is due
	l := away(t, settings{Now: func() time.Time { return now }}, func(l *Limiter) { l.carrying.Store(true) })
	r := slowRule(t, rule.KindTokenBucket, 10)
	for i := range 5000 {
		mustPass(t, l, requestFor(fmt.Sprint("t", i), r, "", 1))
	}
	require.EqualValues(t, 5000, l.local.owing.Load())
	allocated := testing.AllocsPerRun(1, func() { l.carry(t.Context()) })
	assert.Less(t, allocated, 500.0, "allocations for 5000 owed buckets")
}

// unservedHook makes all commands about one hash tag fail, as for a slot that no node serves. The other commands of the
// pipeline are sent.
type unservedHook struct {
	tag  string
	away atomic.Bool
}

// unserved is the reply of a node about a slot that no node serves.
type unserved struct{}

func (unserved) Error() string { return "CLUSTERDOWN Hash slot not served" }
func (unserved) RedisError()   {}

func (h *unservedHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h *unservedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h *unservedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		served := slices.DeleteFunc(slices.Clone(cmds), func(cmd redis.Cmder) bool {
			fails := h.away.Load() && slices.ContainsFunc(cmd.Args(), func(arg any) bool {
				key, isKey := arg.(*string)
				return isKey && redisstore.HashTag(*key) == h.tag
			})
			if fails {
				cmd.SetErr(unserved{})
			}
			return fails
		})
		if len(served) == 0 {
			return unserved{}
		}
		return next(ctx, served)
	}
}

// TestCluster_OneSlotUnserved_OthersDecideInRedis: a process owes charges to a slot that no node serves. Requests that
// are sent together with requests on this slot are decided in Redis.
func TestCluster_OneSlotUnserved_OthersDecideInRedis(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	client := patientCluster(t, c)
	l := patientLimiter(t, client, settings{Lanes: 1})
	require.NoError(t, l.store.Start(t.Context()))
	hook := &unservedHook{tag: tenantOn(c, 0, 0)}
	client.AddHook(hook)
	r := slowRule(t, rule.KindTokenBucket, 1000)
	gone, here := requestFor(hook.tag, r, "", 1), requestFor(tenantOn(c, 0, 1), r, "", 1)
	mustPass(t, l, gone)
	mustPass(t, l, here)
	hook.away.Store(true)
	testenv.Together(64, func(i int) {
		for range 5 {
			req, want := here, ModeRedis
			if i%2 == 1 {
				req, want = gone, ModeLocal
			}
			d, err := l.Consume(t.Context(), req)
			assert.True(t, err == nil && d.Allowed && d.Mode == want, "%s: %+v, %v", req.Tenant, d, err)
		}
	})
	hook.away.Store(false)
	assert.EqualValues(t, 1000-161, remaining(t, l, gone), "the charges of the process are in Redis")
}
