package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// slowRule returns a rule of a kind that allows n tokens per 31 days, so that no token comes back during a test.
func slowRule(t *testing.T, kind rule.Kind, n int64) *rule.Rule {
	t.Helper()
	rate := rule.Rate{Count: n, Period: 31 * 24 * time.Hour}
	return compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: rate.String()})
}

// TestRedis_Flushed_LevelsComeBack: Redis loses all data while the processes keep running. They restore the levels.
func TestRedis_Flushed_LevelsComeBack(t *testing.T) {
	_, client := parallelServer(t)
	here, there := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	for _, kind := range kinds() {
		r := slowRule(t, kind, 10)
		req := requestOf(Charge{Rule: r})
		for range 4 {
			mustConsume(t, here, req)
		}
		for range 3 {
			mustConsume(t, there, req)
		}
		client.FlushAll(t.Context())
		if v := mustPeek(t, there, req).Verdicts[0]; v.Remaining != 3 || v.Mode != ModeRedis {
			t.Errorf("%s: %d left after the loss, want 3: %+v", kind, v.Remaining, v)
		}
		assert.EqualValues(t, 3, exhaust(t, here, req), "%s: admitted after the loss", kind)
		full := func() bool { return !mustPeek(t, there, req).Allowed } // after redisstore.HeldFor at the latest
		testenv.Eventually(t, full, kind, "there is no room")
		client.FlushAll(t.Context())
		assert.Zero(t, exhaust(t, there, req)+exhaust(t, here, req), "%s: admitted after the second loss", kind)
	}
}

// TestLeases_Flushed_ComeBack: Redis loses all leases while their holders keep running. A process notices this with a
// call about a lease or about another limit, and restores its leases.
func TestLeases_Flushed_ComeBack(t *testing.T) {
	_, client := parallelServer(t)
	here, there := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	for name, change := range map[string]func(*rule.Spec){"of a tenant": func(*rule.Spec) {}, "shared": func(s *rule.Spec) { s.Shared = true }} {
		r := concurrency(t, 5, change)
		req := LeaseRequest{Tenant: "acme", Rule: r}
		var first Lease
		for range 3 {
			first = mustAcquire(t, here, req)
		}
		theirs := mustAcquire(t, there, req)
		for loss := range 3 {
			client.FlushAll(t.Context())
			if loss == 1 { // the process notices the second loss with a call on another limit
				mustPeek(t, here, requestOf(Charge{Rule: slowRule(t, rule.KindTokenBucket, 10)}))
			}
			for _, l := range []*Limiter{here, there} {
				mustCount(t, l, req)
			}
			got := mustCount(t, here, req)
			assert.True(t, got.InUse == 4 && got.Mode == ModeRedis,
				"%s: %d leases after loss %d, want 4: %+v", name, got.InUse, loss, got)
		}
		for _, held := range []struct {
			l  *Limiter
			id LeaseID
		}{{here, first.ID}, {there, theirs.ID}} {
			_, err := held.l.Renew(t.Context(), held.id, r, 0)
			assert.NoError(t, err, "%s: renew", name)
		}
		last := mustAcquire(t, there, req)
		denied := mustAcquire(t, here, req)
		assert.True(t, !denied.Held && denied.InUse == 5, "%s: a sixth lease: %+v", name, denied)
		// The process that granted the lease does not know that another process released it. The lease is gone until
		// the next loss. After a loss the granting process restores it, and it lasts until its ExpiresAt.
		mustRelease(t, here, last.ID)
		assert.EqualValues(t, 4, mustCount(t, there, req).InUse, "%s: leases after a release", name)
	}
}

// TestLeases_Flushed_FullBucket_ComesBackWhole: one call restores at most 500 leases, so a bucket of 1,201 leases
// needs several calls.
func TestLeases_Flushed_FullBucket_ComesBackWhole(t *testing.T) {
	t.Parallel()
	const many = 1201
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	l := patientLimiter(t, client, settings{})
	req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, many)}
	for range many {
		mustAcquire(t, l, req)
	}
	client.FlushAll(t.Context())
	got := mustAcquire(t, l, req)
	assert.True(t, !got.Held && got.InUse == many && !got.Degraded, "%+v", got)
}

// TestRedis_Flushed_NothingIsResurrected: when Redis loses its data, charges that were refunded or reset before are
// not restored.
func TestRedis_Flushed_NothingIsResurrected(t *testing.T) {
	_, client := parallelServer(t)
	here, there := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	for _, kind := range kinds() {
		r := slowRule(t, kind, 10)
		req := requestOf(Charge{Rule: r, Cost: 6})
		d := mustConsume(t, here, req)
		mustRefund(t, here, d, req)
		client.FlushAll(t.Context())
		assert.EqualValues(t, 10, remaining(t, here, req), "%s: left of 10 after a refund and a loss", kind)
		mustConsume(t, here, req)
		mustPeek(t, there, req)
		name, _ := mustReset(t, here, r, "")
		there.ForgetBucket(name)
		client.FlushAll(t.Context())
		for _, l := range []*Limiter{here, there} {
			assert.EqualValues(t, 10, remaining(t, l, req), "%s: left of 10 after a reset and a loss", kind)
		}
		// Another process has lowered a level by a refund. As long as Redis keeps its data, the level stays low,
		// although this process has seen a higher level.
		d = mustConsume(t, here, req)
		look := requestOf(Charge{Rule: r})
		mustPeek(t, there, look)
		mustRefund(t, here, d, req)
		back := func() bool { return remaining(t, there, look) == 10 } // after redisstore.HeldFor at the latest
		testenv.Eventually(t, back, kind, "all is left after a refund elsewhere")
	}
}

// TestOutages_RedisComesBackEmpty_AdmitTheLimitOnce: three processes have two outages, and after each outage Redis is
// empty. The requests that were admitted before and during an outage are then charged in Redis again, so the limit is
// admitted only once.
func TestOutages_RedisComesBackEmpty_AdmitTheLimitOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	var all []*Limiter
	for i := range 3 {
		others := []uint64{1, 2, 3}
		others = append(others[:i:i], others[i+1:]...)
		replicas := replica.Known(uint64(i+1), others, 0)
		all = append(all, patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: func() *replica.Set { return replicas }}))
	}
	var rules []*rule.Rule
	for _, kind := range kinds() {
		rules = append(rules, slowRule(t, kind, 100))
	}
	admitted := make([]int64, len(rules))
	ask := func(times int) {
		for i, r := range rules {
			for range times {
				for _, l := range all {
					d := testenv.Must(t).Get(l.Consume(t.Context(), requestOf(Charge{Rule: r})))
					if d.Allowed {
						admitted[i]++
					}
				}
			}
		}
	}
	look := func() {
		for _, l := range all {
			for _, r := range rules {
				mustPeek(t, l, requestOf(Charge{Rule: r}))
			}
		}
	}
	ask(7)
	for range 2 {
		look() // a process divides the tokens left in the level that it has seen
		server.Kill()
		ask(50)
		server.Start()
		for _, l := range all {
			testenv.Eventually(t, func() bool {
				d, err := l.Peek(t.Context(), requestOf(Charge{Rule: rules[0]}))
				return err == nil && !d.Degraded
			}, "redis")
		}
		look() // each process restores a bucket with its first call on it
		ask(50)
	}
	for i, r := range rules {
		assert.True(t, admitted[i] >= 95 && admitted[i] <= 100, "%s: %d admitted of 100", r.Kind, admitted[i])
	}
}

// TestOutages_RedisComesBackEmpty_DeniedRequestsTellIt: of two processes one has used a limit up, or has all leases,
// and Redis loses its data. While the process keeps to its share, it denies requests itself. Redis knows the level by
// then, so a process that starts meanwhile and knows nothing admits nothing.
func TestOutages_RedisComesBackEmpty_DeniedRequestsTellIt(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	clock := &movableClock{}
	l := instances(t, 2, server.URL, clock)[0]
	other := requestFor("other", compile(t, rule.Spec{ID: "other", Rate: "1000000/s"}), "", 1)
	until := func(away bool) {
		testenv.Eventually(t, func() bool {
			if !away {
				clock.advance(redisstore.RetryAfter)
			}
			return mustConsume(t, l, other).Degraded == away && isAway(l) == away
		}, "away")
	}
	until(false)
	var used []Request
	for _, kind := range kinds() {
		used = append(used, requestOf(Charge{Rule: slowRule(t, kind, 10)}))
		require.EqualValues(t, 10, exhaust(t, l, used[len(used)-1]), kind)
	}
	leases := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 3), TTL: time.Hour}
	for range 3 {
		require.True(t, mustAcquire(t, l, leases).Held)
	}
	server.Kill()
	until(true)
	server.Start()
	until(false)
	require.True(t, l.returning(""))
	fresh := patientLimiter(t, patientClient(t, server.Options()), settings{})
	for _, req := range used {
		assert.False(t, mustConsume(t, l, req).Allowed)
		assert.Zero(t, exhaust(t, fresh, req), "%s: admitted", req.Charges[0].Rule.Kind)
	}
	assert.False(t, mustAcquire(t, l, leases).Held)
	assert.False(t, mustAcquire(t, fresh, leases).Held, "a lease is given")
}
