package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// patientCluster returns a client of a cluster, with the timeouts of patientClient.
func patientCluster(t testing.TB, c *testenv.RedisCluster) *redis.ClusterClient {
	t.Helper()
	return clusterWithin(t, c, testenv.Patience)
}

// clusterWithin returns a client of a cluster with the given timeout, like clientWithin.
func clusterWithin(t testing.TB, c *testenv.RedisCluster, timeout time.Duration) *redis.ClusterClient {
	t.Helper()
	prompt := testenv.Must(t).Get(redisstore.NewClient(c.URL))
	opts := *prompt.(*redis.ClusterClient).Options()
	_ = prompt.Close()
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = timeout, timeout, timeout, timeout
	return testenv.CloseAtEnd(t, redis.NewClusterClient(&opts))
}

// tenantOn returns the id of the n'th tenant whose buckets are on the given master. n starts at 0.
func tenantOn(c *testenv.RedisCluster, master, n int) string {
	for i := 0; ; i++ {
		tenant := fmt.Sprintf("m%d-%d", master, i)
		if c.Owner("{"+tenant+"}") == master {
			if n == 0 {
				return tenant
			}
			n--
		}
	}
}

// sharedOn returns a shared rule whose bucket is on the given master.
func sharedOn(t testing.TB, c *testenv.RedisCluster, master int, spec rule.Spec) *rule.Rule {
	t.Helper()
	spec.Shared = true
	for i := 0; ; i++ {
		spec.ID = fmt.Sprintf("shared%d-%d", master, i)
		if c.Owner("{"+spec.ID+"}") == master {
			return compile(t, spec)
		}
	}
}

// TestCluster_PartAway_IsDecidedByPolicy kills a master and does not restart it. The policies of the rules decide in
// its slots, and Redis decides in the other slots. Nevertheless a request is charged on all its rules or on none.
func TestCluster_PartAway_IsDecidedByPolicy(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	metrics := NewMetrics(nil)
	l := patientLimiter(t, patientCluster(t, c), settings{Metrics: metrics})
	require.NoError(t, l.store.Start(t.Context()))
	away, here := tenantOn(c, 0, 0), tenantOn(c, 1, 0)
	globalAway := sharedOn(t, c, 0, rule.Spec{Rate: "1/day", Burst: 5})
	globalClosed := sharedOn(t, c, 0, rule.Spec{Rate: "1/day", Burst: 6, OnBackendError: "closed"})
	globalHere := sharedOn(t, c, 2, rule.Spec{Rate: "1/day", Burst: 7})
	own := compile(t, rule.Spec{ID: "own", Rate: "1/day", Burst: 10})
	ownClosed := compile(t, rule.Spec{ID: "own-closed", Rate: "1/day", Burst: 10, OnBackendError: "closed"})
	request := func(tenant string, rules ...*rule.Rule) Request { return requestOn(tenant, 0, rules...) }
	left := func(tenant string, r *rule.Rule) int64 { return remaining(t, l, request(tenant, r)) }
	left(here, own)
	c.Replicas[0].Kill()
	c.Masters[0].Kill()

	// The bucket of a shared rule was on the killed master. The process decides about this bucket, and Redis about
	// the other buckets.
	for n := range int64(5) {
		d := mustConsume(t, l, request(here, own, globalAway, globalHere))
		require.True(t, d.Allowed && d.Degraded && d.Verdicts[0].Mode == ModeRedis && d.Verdicts[1].Mode == ModeLocal &&
			d.Verdicts[2].Mode == ModeRedis, d)
		if n == 4 { // this request is refunded, in this process and in Redis
			after, err := l.Refund(t.Context(), d.Charged(request(here, own, globalAway, globalHere)))
			assert.True(t, err == nil && after[0].Remaining == 6 && after[1].Remaining == 1 && after[2].Remaining == 3,
				"%+v, %v", after, err)
		}
	}
	a, b, d := left(here, own), left(here, globalHere), left(here, globalAway)
	assert.True(t, a == 6 && b == 3 && d == 1, "%d, %d and %d left, want 6, 3 and 1", a, b, d)
	// The rule whose bucket was on the killed master denies, so nothing is charged in Redis.
	mustConsume(t, l, request(here, globalAway))
	denied := mustConsume(t, l, request(here, own, globalAway, globalHere))
	assert.True(t, !denied.Allowed && denied.Verdicts[0].Allowed && !denied.Verdicts[1].Allowed, "%+v", denied)
	// If the bucket of a closed rule is away, the request fails, for any position of the rule in the request.
	_, err := l.Consume(t.Context(), request(here, own, globalClosed, globalHere))
	assert.ErrorIs(t, err, ErrUnavailable, "closed")
	_, err = l.Consume(t.Context(), request(away, ownClosed, globalHere))
	assert.ErrorIs(t, err, ErrUnavailable, "closed")
	a, b = left(here, own), left(here, globalHere)
	assert.True(t, a == 6 && b == 3, "%d and %d left after denials, want 6 and 3", a, b)
	assert.NotZero(t, testutil.ToFloat64(metrics.stagedRefunds.WithLabelValues("done")), "nothing was given back")
}

// TestCluster_SlotsMove_NothingLost runs tests on a cluster without failures. In some of them slots move between the
// nodes. No charge may be lost.
func TestCluster_SlotsMove_NothingLost(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	t.Run("moving slots", func(t *testing.T) { movingSlots(t, c) })
	t.Run("asking on", func(t *testing.T) { halfMovedSlot(t, c) })
	t.Run("scripts", func(t *testing.T) { scriptsEverywhere(t, c) })
	t.Run("flushed scripts", func(t *testing.T) { flushedScripts(t, c) })
	t.Run("all slots or none", func(t *testing.T) { allSlotsOrNone(t, c) })
	t.Run("concurrent slots", func(t *testing.T) { concurrentSlots(t, c) })
	t.Run("reads", func(t *testing.T) { readsComeWithTheOwnSlot(t, c) })
	t.Run("refunds", func(t *testing.T) { refundsReachEverySlot(t, c) })
	t.Run("debts and bans", func(t *testing.T) { debtsAndBansInEverySlot(t, c) })
	t.Run("leases", func(t *testing.T) { leasesOnMovingSlots(t, c) })
}

// underWay is locked for reading while a request is sent to a slot that moves forward and back. A move may redirect a
// request to the other node. The next move is in the other direction, and Redis cannot distinguish the two moves. If
// the request arrived there during the next move, both nodes would serve the bucket.
type underWay struct{ sync.RWMutex }

// wait waits for the requests that were sent before the last move ended.
func (u *underWay) wait() {
	u.Lock()
	defer u.Unlock()
}

// moveDuring calls move with 0 and 1 alternately, to move slots forward and back. It ends when the load has ended and
// all slots are back on their first node. It returns the number of calls.
func moveDuring(load *sync.WaitGroup, move func(at int)) (moves int) {
	var ended atomic.Bool
	go func() {
		load.Wait()
		ended.Store(true)
	}()
	for moves == 0 || !ended.Load() || moves%2 == 1 {
		move(moves % 2)
		moves++
	}
	return moves
}

// movingSlots moves tenants' slots forward and back under load. This causes redirections, requests to slots that are
// being moved, and outdated slot maps.
func movingSlots(t *testing.T, c *testenv.RedisCluster) {
	const capacity, clients, each = 200, 8, 40
	metrics := NewMetrics(nil)
	l := patientLimiter(t, patientCluster(t, c), settings{Metrics: metrics})
	// A request needs two buckets, and the second may not exist yet. While their slot moves, it can happen that no
	// node can serve both buckets in one call.
	r, wide := compile(t, rule.Spec{ID: "narrow", Rate: "1/day", Burst: capacity}), compile(t, rule.Spec{ID: "wide", Rate: "1/day", Burst: 10_000})
	tenants := []string{tenantOn(c, 0, 0), tenantOn(c, 0, 1)}
	var admitted [2]atomic.Int64
	var sent underWay
	load, ctx := new(sync.WaitGroup), t.Context()
	for n := range clients {
		load.Go(func() {
			for i := range each {
				for at, tenant := range tenants {
					charges := []Charge{{Rule: r}, {Rule: wide, Dimension: rule.Dimension(fmt.Sprint(n, i))}}
					sent.RLock()
					d, err := l.Consume(ctx, Request{Tenant: tenant, Charges: charges})
					sent.RUnlock()
					if !assert.True(t, err == nil && !d.Degraded, "%+v, %v", d, err) {
						return
					}
					if d.Allowed {
						admitted[at].Add(1)
					}
				}
			}
		})
	}
	moves := moveDuring(load, func(at int) {
		for _, tenant := range tenants {
			c.Move(c.Slot("{"+tenant+"}"), c.Masters[at], c.Masters[1-at])
			sent.wait()
		}
	})
	for at, tenant := range tenants {
		got := admitted[at].Load()
		assert.True(t, got == capacity, "%s: %d admitted, want %d", tenant, got, capacity)
	}
	assert.True(t, moves >= 2, "%d moves: the test proved nothing", moves)
	assert.Zero(t, redisCount(t, l, "quotasvc_limit_backend_failures_total", "slot_moving"),
		"requests gave up on a moving slot")
}

// halfMovedSlot stops in the middle of a move. The old node serves existing buckets, and the new node serves new
// buckets. Neither node serves a request with both kinds of buckets.
func halfMovedSlot(t *testing.T, c *testenv.RedisCluster) {
	l := patientLimiter(t, patientCluster(t, c), settings{Budget: testenv.Patience})
	tenant := tenantOn(c, 0, 2)
	slot, from, to := c.Slot("{"+tenant+"}"), c.Masters[0], c.Masters[1]
	old, fresh := compile(t, rule.Spec{ID: "old", Rate: "1/day", Burst: 10}), compile(t, rule.Spec{ID: "fresh", Rate: "1/day", Burst: 10})
	consume := func(rules ...*rule.Rule) Decision { return mustConsume(t, l, requestOn(tenant, 0, rules...)) }
	consume(old)
	c.BeginMove(slot, from, to)
	d := consume(old)
	assert.True(t, !d.Degraded && d.Verdicts[0].Remaining == 8, "an existing bucket: %+v", d)
	d = consume(fresh)
	assert.True(t, !d.Degraded && d.Verdicts[0].Remaining == 9, "a new bucket: %+v", d)
	moved := make(chan Decision, 1)
	tryAgain := func() (all string) {
		for _, n := range []*testenv.RedisServer{from, to} {
			all += c.Client(n).InfoMap(t.Context(), "errorstats").Item("Errorstats", "errorstat_TRYAGAIN") + " "
		}
		return all
	}
	last, refused := tryAgain(), 0
	go func() { moved <- consume(old, fresh) }()
	testenv.Eventually(t, func() bool {
		if now := tryAgain(); now != last {
			last, refused = now, refused+1
		}
		return refused == 3
	}, "it is sent again and again")
	select {
	case d := <-moved:
		t.Errorf("two buckets on two nodes were decided: %+v", d)
	default: // the request waits
	}
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, to)
	d = <-moved
	assert.True(t, !d.Degraded && d.Verdicts[0].Remaining == 7 && d.Verdicts[1].Remaining == 8, "moved: %+v", d)
	c.Move(slot, to, from)
	// If the move of a slot is never completed, only the tenants of this slot are decided without Redis.
	prompt := limiterOn(t, productionClient(t, c.URL), settings{})
	testenv.Eventually(t, func() bool {
		return !mustPeek(t, prompt, Request{Tenant: tenant, Charges: []Charge{{Rule: old}}}).Degraded
	}, "redis decides")
	c.BeginMove(slot, from, to)
	other := compile(t, rule.Spec{ID: "other", Rate: "1/day", Burst: 10})
	for range 2 * 20 {
		began := time.Now()
		d, err := prompt.Consume(t.Context(), Request{Tenant: tenant, Charges: []Charge{{Rule: old}, {Rule: other}}})
		took := time.Since(began)
		require.True(t, err == nil && d.Degraded && took <= decisionMost, "%+v, %v after %s", d, err, took)
	}
	d = mustPeek(t, prompt, Request{Tenant: tenantOn(c, 0, 3), Charges: []Charge{{Rule: old}}})
	assert.True(t, !d.Degraded && !isAway(prompt), "a neighbour of the slot: %+v", d)
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, to)
	c.Move(slot, to, from)
	// What was decided without Redis is charged when the slot has moved.
	testenv.Eventually(t, func() bool {
		d := mustPeek(t, l, Request{Tenant: tenant, Charges: []Charge{{Rule: old}, {Rule: other}}, Fresh: true})
		return !d.Degraded && d.Verdicts[0].Remaining == 0 && d.Verdicts[1].Remaining == 10-7
	}, "redis has the charges")
}

func scriptsEverywhere(t *testing.T, c *testenv.RedisCluster) {
	metrics := NewMetrics(nil)
	l := patientLimiter(t, patientCluster(t, c), settings{Metrics: metrics})
	require.NoError(t, l.store.Start(t.Context()))
	for _, nodes := range [][]*testenv.RedisServer{c.Masters, c.Replicas} {
		for _, n := range nodes {
			testenv.Eventually(t, func() bool {
				has, err := c.Client(n).ScriptExists(t.Context(), redis.NewScript(lua.Limits).Hash()).Result()
				return err == nil && has[0]
			}, "the node has the script")
		}
	}
	for i := range c.Masters {
		mustConsume(t, l, Request{Tenant: tenantOn(c, i, 4), Charges: []Charge{{Rule: compile(t, rule.Spec{Rate: "1/day"})}}})
	}
	n := redisCount(t, l, "quotasvc_redis_noscript_total", "limits")
	assert.Zero(t, n, "the script was missing %v times", n)
	assert.Equal(t, 1+len(c.Masters), shardCount(t, l), "shards, want one per master and the first")
}

func flushedScripts(t *testing.T, c *testenv.RedisCluster) {
	const capacity, clients, each = 100, 6, 25
	metrics := NewMetrics(nil)
	l := patientLimiter(t, patientCluster(t, c), settings{Metrics: metrics})
	r := compile(t, rule.Spec{ID: "flushed", Rate: "1/day", Burst: capacity})
	ctx, cancel := context.WithCancel(context.Background())
	var flushers, load sync.WaitGroup
	for _, m := range c.Masters {
		flushers.Go(func() {
			for ctx.Err() == nil {
				c.Client(m).ScriptFlush(ctx)
			}
		})
	}
	var admitted [3]atomic.Int64
	for range clients {
		load.Go(func() {
			for range each {
				for m := range admitted {
					d, err := l.Consume(ctx, Request{Tenant: tenantOn(c, m, 5), Charges: []Charge{{Rule: r}}})
					if !assert.True(t, err == nil && !d.Degraded, "%+v, %v", d, err) {
						return
					}
					if d.Allowed {
						admitted[m].Add(1)
					}
				}
			}
		})
	}
	load.Wait()
	cancel()
	flushers.Wait()
	for m := range admitted {
		got := admitted[m].Load()
		assert.True(t, got == capacity, "master %d: %d admitted, want %d", m, got, capacity)
	}
	assert.NotZero(t, redisCount(t, l, "quotasvc_redis_noscript_total", "limits"),
		"the script was never missing: the test proved nothing")
}

// allSlotsOrNone sends random requests with rules in several slots, one at a time. It compares the buckets with the
// sums of the admitted requests. No charge may be lost, and no request may be charged on only some of its rules.
func allSlotsOrNone(t *testing.T, c *testenv.RedisCluster) {
	client := patientCluster(t, c)
	metrics := NewMetrics(nil)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		l := patientLimiter(t, client, settings{Metrics: metrics})
		type counted struct {
			charge Charge
			left   int64
		}
		var all []*counted
		for i := range rapid.IntRange(2, 6).Draw(rt, "rules") {
			burst := rapid.Int64Range(1, 12).Draw(rt, "burst")
			limit := compile(t, rule.Spec{
				ID: fmt.Sprintf("p%d", i), Rate: "1/day", Burst: burst,
				Shared: rapid.Bool().Draw(rt, "shared"), Shadow: rapid.IntRange(0, 4).Draw(rt, "shadow") == 0,
			})
			all = append(all, &counted{Charge{Rule: limit, Dimension: rule.Dimension(fmt.Sprint(run))}, burst})
		}
		for range rapid.IntRange(1, 15).Draw(rt, "requests") {
			req := Request{Tenant: "acme"}
			var asked []*counted
			want := true
			for _, r := range all {
				cost := rapid.Int64Range(0, 4).Draw(rt, "cost")
				if cost == 0 {
					continue
				}
				ch := r.charge
				ch.Cost = cost
				req.Charges, asked = append(req.Charges, ch), append(asked, r)
				if cost > r.left && !r.charge.Rule.Shadow {
					want = false
				}
			}
			peek := rapid.Bool().Draw(rt, "peek")
			do := l.Consume
			if peek {
				do = l.Peek
			}
			d, err := do(t.Context(), req)
			require.True(rt, err == nil && !d.Degraded && d.Allowed == want, "%+v, %v; want allowed %v", d, err, want)
			for i, r := range asked {
				cost := req.Charges[i].Cost
				pass := cost <= r.left
				if want && pass && !peek {
					r.left -= cost
				}
				if v := d.Verdicts[i]; v.Remaining != r.left || v.Allowed != pass || v.Unknown {
					rt.Fatalf("charge %d, allowed %v, peek %v: %+v; want %d left and allowed %v", i, want, peek, v, r.left, pass)
				}
			}
		}
		for _, r := range all {
			l.denials.forgetAll()
			v := mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{r.charge}}).Verdicts[0]
			require.True(rt, v.Remaining == r.left, "%s has %d left, want %d", r.charge.Rule.ID, v.Remaining, r.left)
		}
	})
	assert.Zero(t, testutil.ToFloat64(metrics.stagedRefunds.WithLabelValues("lost")), "refunds were lost")
	assert.NotZero(t, testutil.ToFloat64(metrics.stagedRefunds.WithLabelValues("done")),
		"nothing was ever refunded: the test proved nothing")
}

// concurrentSlots lets many callers compete for tokens of shared rules and of tenants' own rules. At the end every
// bucket has the charges of exactly the admitted requests, and never more than its capacity.
func concurrentSlots(t *testing.T, c *testenv.RedisCluster) {
	const clients, each, globalBurst, ownBurst = 12, 40, 200, 90
	client := patientCluster(t, c)
	limiters := []*Limiter{patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})}
	global := compile(t, rule.Spec{ID: "global", Rate: "1/day", Burst: globalBurst, Shared: true})
	ip := compile(t, rule.Spec{ID: "ip", Rate: "1/day", Burst: 150, Shared: true})
	own := compile(t, rule.Spec{ID: "own", Rate: "1/day", Burst: ownBurst})
	request := func(tenant, address int) Request {
		return Request{Tenant: fmt.Sprint("shop", tenant), Charges: []Charge{
			{Rule: own}, {Rule: global}, {Rule: ip, Dimension: rule.Dimension(fmt.Sprint(address))},
		}}
	}
	var tenants, addresses [3]atomic.Int64
	testenv.Together(clients, func(n int) {
		for i := range each {
			tenant, address := (n+i)%3, i%3
			d, err := limiters[n%2].Consume(t.Context(), request(tenant, address))
			if !assert.True(t, err == nil && !d.Degraded, "%+v, %v", d, err) {
				return
			}
			if d.Allowed {
				tenants[tenant].Add(1)
				addresses[address].Add(1)
			}
		}
	})
	total := int64(0)
	for i := range tenants {
		total += tenants[i].Load()
		d := mustPeek(t, patientLimiter(t, client, settings{}), request(i, i))
		assert.Equal(t, ownBurst-tenants[i].Load(), d.Verdicts[0].Remaining, "tenant %d: left", i)
		assert.Equal(t, 150-addresses[i].Load(), d.Verdicts[2].Remaining, "address %d: left", i)
		if i == len(tenants)-1 {
			assert.Equal(t, globalBurst-total, d.Verdicts[1].Remaining, "global: left")
		}
	}
	assert.True(t, total <= globalBurst && total >= globalBurst/2, "%d admitted of %d", total, globalBurst)
}

// readsComeWithTheOwnSlot: the values that a request reads (Request.With) are in the tenant's own slot. They are read
// with the decision if a rule of the request is in this slot.
func readsComeWithTheOwnSlot(t *testing.T, c *testenv.RedisCluster) {
	client := patientCluster(t, c)
	l := patientLimiter(t, client, settings{})
	own, global := compile(t, rule.Spec{ID: "own", Rate: "1/day", Burst: 9}), compile(t, rule.Spec{ID: "read-global", Rate: "1/day", Burst: 9, Shared: true})
	for m := range c.Masters {
		tenant := tenantOn(c, m, 6)
		key := "{" + tenant + "}:value"
		require.NoError(t, client.Set(t.Context(), key, tenant, 0).Err())
		for _, charges := range [][]Charge{{{Rule: own}}, {{Rule: global}, {Rule: own}}} {
			with := readsOf(t, tenant, key)
			d := mustPeek(t, l, Request{Tenant: tenant, Charges: charges, With: with})
			assert.True(t, !d.Degraded && len(with.Values) == 1 && with.Values[0] == tenant, "%+v, %q", d, with.Values)
		}
		with := readsOf(t, tenant, key, key+"2")
		d := mustPeek(t, l, Request{Tenant: tenant, Charges: []Charge{{Rule: global}}, With: with})
		assert.True(t, !d.Degraded && with.Values == nil, "%+v, %q", d, with.Values)
		assert.NoError(t, l.store.Read(t.Context(), with))
		assert.Equal(t, []string{tenant, ""}, with.Values)
	}
}

// debtsAndBansInEverySlot: the ban of a bucket is stored in the slot of the bucket. A charge after the fact is
// charged in all slots of its rules.
func debtsAndBansInEverySlot(t *testing.T, c *testenv.RedisCluster) {
	l := patientLimiter(t, patientCluster(t, c), settings{})
	ban := rule.BanSpec{After: 2, Within: "1h", For: "1h"}
	global := compile(t, rule.Spec{ID: "owing-global", Rate: "1/day", Burst: 5, Debt: 3, Shared: true, Ban: ban})
	own := compile(t, rule.Spec{ID: "owing-own", Rate: "1/day", Burst: 5, Debt: 4})
	req := Request{Tenant: "owing", Charges: []Charge{{Rule: own, Cost: 8}, {Rule: global, Cost: 8}}}
	one := Request{Tenant: "owing", Charges: []Charge{{Rule: own, Cost: 1}, {Rule: global, Cost: 1}}}
	d := mustLate(t, l, req)
	v := d.Verdicts
	assert.True(t, v[0].Charged == 8 && v[1].Charged == 8 && v[0].Owed == 3 && v[1].Owed == 3, d)
	late := mustLate(t, l, req)
	assert.True(t, late.Verdicts[0].Charged == 1 && late.Verdicts[1].Charged == 0, "beyond the debts: %+v", late)
	for i := range 2 {
		d := mustConsume(t, l, one)
		assert.True(t, !d.Allowed && (d.Verdicts[1].Banned > 0) == (i == 1), "denial %d: %+v", i+1, d)
	}
	mustRefund(t, l, d, req)
	d = mustConsume(t, l, one)
	v = d.Verdicts
	assert.True(t, !d.Allowed && v[1].Banned != 0 && v[0].Remaining == 4 && v[1].Remaining == 5,
		"after a refund of 8 and 8: %+v, want 4 and 5 left, and the ban", d)
	mustReset(t, l, global, "")
	mustPass(t, l, one)
}

func refundsReachEverySlot(t *testing.T, c *testenv.RedisCluster) {
	l := patientLimiter(t, patientCluster(t, c), settings{})
	global := compile(t, rule.Spec{ID: "refunded-global", Rate: "1/day", Burst: 5, Shared: true})
	own := compile(t, rule.Spec{ID: "refunded-own", Rate: "1/day", Burst: 5})
	req := Request{Tenant: "refunded", Charges: []Charge{{Rule: own, Cost: 5}, {Rule: global, Cost: 5}}}
	for range 3 {
		d := mustConsume(t, l, req)
		require.True(t, d.Allowed, d)
		mustConsumeNot(t, l, req)
		mustRefund(t, l, d, req)
	}
	assert.NoError(t, l.Stop(t.Context()))
	_, err := l.Consume(t.Context(), req)
	assert.ErrorIs(t, err, ErrStopped, "after Stop")
}
