package ratelimit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// TestAcquire_LostReplySameKey_SameLease: the script runs, and its reply is lost. A retry with the same key must get
// the same lease.
func TestAcquire_LostReplySameKey_SameLease(t *testing.T) {
	server, direct := parallelServer(t)
	o := server.Options()
	proxy := testenv.NewLossyProxy(t, o.Addr)
	client, err := redisstore.NewClient((&url.URL{Scheme: "redis", User: url.UserPassword(o.Username, o.Password), Host: proxy.Addr}).String())
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	l := patientLimiter(t, client, settings{})
	require.NoError(t, l.store.Start(t.Context()))
	req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 2, func(s *rule.Spec) { s.OnBackendError = "closed" }), Key: "job-1"}
	proxy.Lose.Store(true)
	before := evalCalls(t, direct)
	_, err = l.Acquire(t.Context(), req)
	require.ErrorIs(t, err, ErrUnavailable, "a lost reply")
	proxy.Lose.Store(false)
	sent := evalCalls(t, direct) - before
	assert.True(t, sent == 1, "the script was sent %d times", sent)
	again := mustAcquire(t, l, req)
	assert.True(t, again.Held && again.Replayed && again.InUse == 1, "asked again: %+v", again)
	// If the answer to a release is lost, the lease is still released once, and the release may be repeated.
	proxy.Lose.Store(true)
	assert.ErrorIs(t, l.Release(t.Context(), again.ID), ErrUnavailable, "a lost release")
	proxy.Lose.Store(false)
	mustRelease(t, l, again.ID)
	assert.Zero(t, mustCount(t, l, req).InUse)
}

func TestAcquire_RedisAway_PoliciesDecide(t *testing.T) {
	t.Parallel()
	limit := func(id, policy string, shadow bool) *rule.Rule {
		return concurrency(t, 4, func(s *rule.Spec) { s.ID, s.OnBackendError, s.Shadow = id, policy, shadow })
	}
	shared, open := limit("shared", "local_share", false), limit("open", "open", false)
	closed, closedShadow := limit("closed", "closed", false), limit("closed-shadow", "closed", true)
	var known, unknown LeaseID
	l := away(t, settings{Replicas: func() *replica.Set { return replica.Anonymous(2) }}, func(l *Limiter) {
		known = mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: shared}).ID
		unknown = LeaseID{Tenant: "acme", Rule: "shared", nonce: nonceOf("another replica's")}
	})
	ctx := t.Context()
	for _, r := range []*rule.Rule{open, closedShadow} {
		for range 9 {
			lease := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: r})
			require.True(t, lease.Held && lease.Unknown && lease.Degraded && lease.Mode == ModeLocal &&
				lease.TTL == time.Minute, "%s: %+v", r.ID, lease)
			renewed, err := l.Renew(ctx, lease.ID, r, time.Hour)
			assert.True(t, err == nil && renewed.TTL == time.Hour && renewed.Degraded, "%s: %+v, %v", r.ID, renewed, err)
		}
	}
	_, err := l.Acquire(ctx, LeaseRequest{Tenant: "acme", Rule: closed})
	assert.ErrorIs(t, err, ErrUnavailable, "closed")
	_, err = l.Renew(ctx, LeaseID{Tenant: "acme", Rule: "closed"}, closed, 0)
	assert.ErrorIs(t, err, ErrUnavailable, "closed")
	// This replica's share is 2 of 4 leases. Redis granted one lease before the outage.
	own := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: shared})
	assert.True(t, own.Held && own.Degraded && own.Limit == 2 && own.InUse == 2 && own.Remaining == 0, own)
	got := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: shared})
	assert.True(t, !got.Held && got.RetryAfter > 0, "beyond the share: %+v", got)
	for _, id := range []LeaseID{known, own.ID} {
		renewed, err := l.Renew(ctx, id, shared, 0)
		assert.True(t, err == nil && renewed.Degraded && renewed.ID == id, "%+v, %v", renewed, err)
	}
	// Only Redis knows whether a lease of another replica is still held, and the share has no room for this lease. So
	// the renewal fails with ErrUnavailable.
	_, err = l.Renew(ctx, unknown, shared, 0)
	assert.ErrorIs(t, err, ErrUnavailable, "renew another replica's")
	mustRelease(t, l, own.ID)
	renewed, err := l.Renew(ctx, unknown, shared, 0)
	assert.True(t, err == nil && renewed.InUse == 2, "take another replica's over: %+v, %v", renewed, err)
	// The release does not reach Redis: the lease ends by itself.
	assert.ErrorIs(t, l.Release(ctx, known), ErrUnavailable, "release what Redis holds")
}

// TestAcquire_Outage_ReplicasStayWithinTheRule: four replicas know from Redis's last replies how many leases are
// free. During the outage they grant only these leases, and not the whole capacity again.
func TestAcquire_Outage_ReplicasStayWithinTheRule(t *testing.T) {
	t.Parallel()
	const replicas, capacity = 4, 40
	server := testenv.RedisPrivate(t)
	req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, capacity)}
	var all []*Limiter
	for range replicas {
		all = append(all, patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: func() *replica.Set { return replica.Anonymous(replicas) }}))
	}
	var held [replicas]int
	for i := range 20 { // the first replica has the most leases
		r := min(i%7, replicas-1)
		if mustAcquire(t, all[r], req).Held {
			held[r]++
		}
	}
	for _, l := range all { // every replica knows the last level
		mustCount(t, l, req)
	}
	server.Kill()
	before, during, allowed := 0, 0, 0
	for r, l := range all {
		given := 0
		for range capacity {
			if mustAcquire(t, l, req).Held {
				given++
			}
		}
		before, during = before+held[r], during+given
		allowed += max(0, capacity/replicas-max(held[r], 20/replicas))
	}
	assert.True(t, before == 20 && during == allowed && before+during <= capacity && during >= 10,
		"%d held before and %d given during the outage, want %d; the capacity is %d", before, during, allowed, capacity)
}

// leaseOutage has two leases that were granted before an outage of Redis and renewed during it, and two leases that
// were granted during it. Their rule allows four leases.
type leaseOutage struct {
	t         *testing.T
	l         *Limiter
	req       LeaseRequest
	old, born []LeaseID
}

func newLeaseOutage(t *testing.T, begin func(*testenv.RedisServer, *Limiter, LeaseRequest), end func(*testenv.RedisServer)) *leaseOutage {
	server := testenv.RedisPrivate(t)
	clock := &movableClock{}
	client := clientWithin(t, server.Options(), time.Second) // the server may be paused
	o := &leaseOutage{t: t, l: patientLimiter(t, client, settings{Now: clock.now})}
	o.req = LeaseRequest{Tenant: "acme", Rule: concurrency(t, 4), TTL: time.Hour}
	for range 2 {
		o.old = append(o.old, mustAcquire(t, o.l, o.req).ID)
	}
	begin(server, o.l, o.req)
	for range 10 { // opens the breaker; otherwise a paused server would run the calls below when it resumes
		require.True(t, mustCount(t, o.l, o.req).Degraded)
	}
	for range 2 {
		lease := mustAcquire(t, o.l, o.req)
		require.True(t, lease.Held && lease.Degraded, lease)
		o.born = append(o.born, lease.ID)
	}
	for _, id := range o.old {
		testenv.Must(t).Get(o.l.Renew(t.Context(), id, o.req.Rule, time.Hour))
	}
	end(server)
	testenv.Eventually(t, func() bool {
		clock.advance(redisstore.RetryAfter)
		n, err := o.l.Count(t.Context(), o.req)
		return err == nil && n.Mode == ModeRedis
	}, "redis decides")
	return o
}

// After an outage all leases are back, including those that were granted in it, and no new lease takes their room,
// whether Redis still has its data, has lost them in the outage, or had lost them before.
func TestAcquire_AfterOutage_NewLeasesTakeNobodysPlace(t *testing.T) {
	t.Parallel()
	pause := func(s *testenv.RedisServer, _ *Limiter, _ LeaseRequest) { s.Pause() }
	for name, outage := range map[string]struct {
		begin func(*testenv.RedisServer, *Limiter, LeaseRequest)
		end   func(*testenv.RedisServer)
	}{
		"the data stay": {pause, (*testenv.RedisServer).Resume},
		"the data are lost": {
			func(s *testenv.RedisServer, _ *Limiter, _ LeaseRequest) { s.Kill() }, (*testenv.RedisServer).Start,
		},
		"the data were lost before": {func(s *testenv.RedisServer, l *Limiter, req LeaseRequest) {
			require.NoError(t, patientClient(t, s.Options()).FlushAll(t.Context()).Err())
			require.EqualValues(t, 2, mustCount(t, l, req).InUse)
			s.Pause()
		}, (*testenv.RedisServer).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newLeaseOutage(t, outage.begin, outage.end)
			assert.False(t, mustAcquire(t, o.l, o.req).Held, "a new lease takes the room of another")
			for _, id := range append(o.old, o.born...) {
				renewed, err := o.l.Renew(t.Context(), id, o.req.Rule, time.Hour)
				assert.True(t, err == nil && renewed.ID == id && renewed.Mode == ModeRedis && renewed.InUse == 4, "%+v, %v", renewed, err)
			}
			mustRelease(t, o.l, o.born[0])
			assert.True(t, mustAcquire(t, o.l, o.req).Held, "a lease is free")
		})
	}
}

// A process has granted a lease while Redis was away, and has ended before it could bring the lease to Redis. A renewal
// at another process does it if there is room.
func TestRenew_LeaseOfAnEndedProcess_NeedsRoom(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{})
	req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 2), TTL: time.Hour}
	orphan := LeaseID{Tenant: "acme", Rule: req.Rule.ID, away: true, nonce: nonceOf("orphan")}
	first, second := mustAcquire(t, l, req), mustAcquire(t, l, req)
	_, err := l.Renew(t.Context(), orphan, req.Rule, time.Hour)
	require.ErrorIs(t, err, ErrNoLease, "renewed without room")
	mustRelease(t, l, first.ID)
	renewed, err := l.Renew(t.Context(), orphan, req.Rule, time.Hour)
	assert.True(t, err == nil && renewed.InUse == 2, "%+v, %v", renewed, err)
	mustRelease(t, l, orphan)
	mustRelease(t, l, second.ID)
	assert.Zero(t, mustCount(t, l, req).InUse)
}

// Of 12 leases 4 are held, then Redis is away, the instances grant what they can, and Redis returns. At no time more
// than 12 are held, however Redis is away, by one instance and by two, also if one of them gets no more requests.
func TestOutages_Leases_StayWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, outage := range outages() {
		for n := 1; n <= 2; n++ {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				t.Parallel()
				p, clock := newPlace(t), &movableClock{}
				all := instances(t, n, p.url, clock)
				req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 12), TTL: time.Hour}
				other := LeaseRequest{Tenant: "other", Rule: concurrency(t, rule.MaxLeases)}
				var held []LeaseID
				acquire := func(l *Limiter) bool {
					lease, err := l.Acquire(t.Context(), req)
					require.NoError(t, err)
					if lease.Held {
						held = append(held, lease.ID)
					}
					require.LessOrEqual(t, len(held), 12, "leases are held: %+v", lease)
					return lease.Held
				}
				testenv.Eventually(t, func() bool { return mustCount(t, all[0], req).Mode == ModeRedis }, "Redis decides")
				for range 4 {
					require.True(t, acquire(all[0]))
				}
				for _, l := range all {
					require.EqualValues(t, 4, mustCount(t, l, req).InUse)
				}
				outage.harm(p)
				for _, l := range all {
					testenv.Eventually(t, func() bool {
						mustAcquire(t, l, other) // a full Redis counts leases, and grants none
						return isAway(l)
					}, "Redis is away")
				}
				for _, l := range all {
					for acquire(l) {
					}
				}
				outage.heal(p)
				l := all[n-1] // the others get no more requests
				testenv.Eventually(t, func() bool {
					clock.advance(redisstore.RetryAfter)
					return mustCount(t, l, req).Mode == ModeRedis
				}, "Redis is back")
				for acquire(l) { // Redis lacks the leases of the others
				}
				testenv.Eventually(t, func() bool {
					clock.advance(redisstore.RetryAfter)
					return !slices.ContainsFunc(all, (*Limiter).owing)
				}, "Redis has all leases")
				clock.advance(returnFor)
				for acquire(l) {
				}
				assert.Len(t, held, 12)
				assert.EqualValues(t, 12, mustCount(t, l, req).InUse)
				for _, id := range held[1:] {
					renewed, err := l.Renew(t.Context(), id, req.Rule, time.Hour)
					require.True(t, err == nil && renewed.ID == id, "%+v, %v", renewed, err)
				}
				mustRelease(t, l, held[0])
				assert.EqualValues(t, 11, mustCount(t, l, req).InUse)
			})
		}
	}
}

// TestAcquire_UnreadableValue_PolicyDecides: if a stored value is not a bucket of leases, the rule's policy decides.
// The value is never overwritten.
func TestAcquire_UnreadableValue_PolicyDecides(t *testing.T) {
	t.Parallel()
	client, metrics := patientClient(t, testenv.Redis(t)), NewMetrics(nil)
	l := patientLimiter(t, client, settings{Metrics: metrics})
	ctx := t.Context()
	for i, spoil := range []func(key string) error{
		func(key string) error { return client.Set(ctx, key, "5", 0).Err() },
		func(key string) error { return client.HSet(ctx, key, "a", "b").Err() },
		func(key string) error { return client.ZAdd(ctx, key, redis.Z{Score: 1, Member: "somebody"}).Err() },
	} {
		r := concurrency(t, 4, func(s *rule.Spec) { s.ID = fmt.Sprint("rule-", i) })
		req := LeaseRequest{Tenant: "acme", Rule: r}
		key := LeaseID{Tenant: "acme", Rule: r.ID}.key()
		require.NoError(t, spoil(key))
		before := client.Dump(ctx, key).Val()
		for n := range 6 {
			lease := mustAcquire(t, l, req)
			assert.True(t, lease.Held == (n < 4) && lease.Degraded, "%d: lease %d: %+v", i, n, lease)
		}
		req.Rule = concurrency(t, 4, func(s *rule.Spec) { s.ID, s.OnBackendError = r.ID, "closed" })
		_, err := l.Acquire(ctx, req)
		assert.ErrorIs(t, err, ErrUnavailable, "%d: closed", i)
		after := client.Dump(ctx, key).Val()
		assert.True(t, after == before, "%d: %q became %q", i, before, after)
	}
	got := testutil.ToFloat64(metrics.corrupt)
	assert.True(t, got == 21 && !isAway(l), "%v counted, degraded %v: Redis itself is well", got, isAway(l))
}

// TestAcquire_Outage_StaysWithinTheBudget: if Redis hangs, a caller waits at most for the budget. After some failed
// calls the breaker opens.
func TestAcquire_Outage_StaysWithinTheBudget(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	l := limiterOn(t, patientClient(t, server.Options()), settings{}) // the client would wait for minutes
	rule := concurrency(t, 1000)
	mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: rule})
	server.Pause()
	defer server.Resume()
	var slowest atomic.Int64
	testenv.Together(4, func(_ int) {
		for range 25 {
			started := time.Now()
			lease, err := l.Acquire(context.Background(), LeaseRequest{Tenant: "acme", Rule: rule})
			assert.True(t, err == nil && lease.Held && lease.Degraded, "%+v, %v", lease, err)
			for took, old := int64(time.Since(started)), slowest.Load(); took > old && !slowest.CompareAndSwap(old, took); old = slowest.Load() {
			}
		}
	})
	// The first calls take the budget. The others take no time, because the breaker is open.
	failed := redisCount(t, l, "quotasvc_limit_backend_failures_total", "redis")
	took := time.Duration(slowest.Load())
	assert.True(t, took <= decisionMost && failed <= 20 && isAway(l),
		"at most %s, %v of 100 calls failed in redis, degraded %v", took, failed, isAway(l))
}

func TestAcquire_Local_IsBounded(t *testing.T) {
	t.Parallel()
	clock := &movableClock{}
	l := patientLimiter(t, nil, settings{MaxLocalLevels: 10, Now: clock.now})
	rule := concurrency(t, 1)
	req := func(i int) LeaseRequest { return LeaseRequest{Tenant: fmt.Sprint("t", i), Rule: rule} }
	for i := range 10 {
		mustAcquire(t, l, req(i))
	}
	_, err := l.Acquire(t.Context(), req(10))
	assert.ErrorIs(t, err, ErrUnavailable, "the eleventh of ten")
	clock.advance(rule.LeaseTTL() + time.Second)
	for i := range 10 {
		mustAcquire(t, l, req(10+i))
	}
}

// TestAcquire_LongOutage_OthersLeasesCount: during an outage, leases of other replicas count until they end, even if
// they last longer than the rule's LeaseTTL.
func TestAcquire_LongOutage_OthersLeasesCount(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	var clock testClock
	clock.us.Store(worldStart)
	two := func() *replica.Set { return replica.Anonymous(2) }
	here := patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: two, Now: func() time.Time { return time.UnixMicro(clock.now()) }})
	there := patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: two})
	req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 4), TTL: time.Hour}
	for range 4 {
		mustAcquire(t, there, req)
	}
	require.EqualValues(t, 4, mustCount(t, here, req).InUse)
	server.Kill()
	for _, passed := range []time.Duration{0, 5 * time.Minute, 54 * time.Minute} {
		clock.advance(passed)
		assert.False(t, mustAcquire(t, here, req).Held, "%s later one of four held leases is given", passed)
	}
	clock.advance(2 * time.Minute)
	assert.True(t, mustAcquire(t, here, req).Held, "after an hour")
}
