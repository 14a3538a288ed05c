package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// under returns req with an id.
func under(id string, req Request) Request {
	req.Once = id
	return req
}

func TestOnce_ARepetitionIsNotCharged(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
			r := compile(t, rule.Spec{ID: kind, Kind: kind, Rate: "3/day"})
			two := requestOf(Charge{Rule: r, Cost: 2})
			one := requestOf(Charge{Rule: r, Dimension: rule.Dimension("another bucket of the rule")})
			v := mustPass(t, l, under("a", two))
			require.True(t, v.Charged == 2 && v.Remaining == 1, "%s: %+v", kind, v)
			for range 3 {
				v = mustPass(t, l, under("a", two))
				assert.True(t, v.Charged == 0 && v.Remaining == 1 && v.RetryAfter == 0, "%s, again: %+v", kind, v)
			}
			v = mustPass(t, l, under("a", one))
			assert.True(t, v.Charged == 0 && v.Remaining == 3, "%s, again in another bucket: %+v", kind, v)
			elsewhere := two
			elsewhere.Tenant = "another"
			v = mustPass(t, l, under("a", elsewhere))
			assert.EqualValues(t, 2, v.Charged, "%s, the same id of another tenant", kind)

			// A refused request is not remembered.
			assert.EqualValues(t, 1, mustConsumeNot(t, l, under("b", two)).Remaining, kind)
			mustConsumeNot(t, l, under("b", two))
			mustPass(t, l, under("a", two))
			clock.advance(OnceFor - time.Microsecond)
			mustPass(t, l, under("a", two))
			clock.advance(time.Microsecond)
			mustConsumeNot(t, l, under("a", two))
			clock.advance(48 * time.Hour)
			v = mustPass(t, l, under("b", two))
			assert.EqualValues(t, 2, v.Charged, "%s, after a refusal", kind)
		}
	})
}

func TestOnce_AnotherRuleIsChargedOnce(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		first := compile(t, rule.Spec{ID: "first", Rate: "1/day"})
		second := compile(t, rule.Spec{ID: "second", Rate: "1/day"})
		mustPass(t, l, under("a", requestOn("acme", 0, first)))
		clock.advance(OnceFor / 2)
		d := mustConsume(t, l, under("a", requestOn("acme", 0, first, second)))
		require.True(t, d.Allowed && d.Verdicts[0].Charged == 0 && d.Verdicts[1].Charged == 1, "%+v", d)
		require.Len(t, d.Charged(requestOn("acme", 0, first, second)).Charges, 1, "only one rule can be refunded")
		clock.advance(OnceFor / 2) // the first rule is forgotten, the second is not
		v := mustPass(t, l, under("a", requestOn("acme", 0, second)))
		assert.Zero(t, v.Charged, "%+v", v)
		d = mustConsume(t, l, under("a", requestOn("acme", 0, first, second)))
		assert.True(t, !d.Allowed && !d.Verdicts[0].Allowed && d.Verdicts[1].Allowed, "%+v", d)
	})
}

func TestOnce_ARefundedChargeIsForgotten(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, _ *testClock) {
		kept, back := compile(t, rule.Spec{ID: "kept", Rate: "5/day"}), compile(t, rule.Spec{ID: "back", Rate: "5/day"})
		req := under("a", requestOn("acme", 0, kept, back))
		charged := mustConsume(t, l, req).Charged(req)
		testenv.Must(t).Get(l.Refund(t.Context(), charged.Only(func(r *rule.Rule) bool { return r == back })))
		d := mustConsume(t, l, req)
		assert.True(t, d.Verdicts[0].Charged == 0 && d.Verdicts[1].Charged == 1, "%+v", d)
		assert.True(t, d.Verdicts[0].Remaining == 4 && d.Verdicts[1].Remaining == 4, "%+v", d)
	})
}

func TestOnce_ShadowRuleThatWasNotCharged_IsNotRemembered(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, _ *testClock) {
		shadow := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Shadow: true})
		req := requestOn("acme", 0, shadow)
		mustPass(t, l, req)
		for range 2 {
			v := mustPass(t, l, under("a", req))
			assert.True(t, !v.Allowed && v.Charged == 0, "%+v", v)
		}
	})
}

// TestOnce_ManyAtOnce_OneIsCharged sends the same id through two limiters at the same time, with others' requests in
// the same calls.
func TestOnce_ManyAtOnce_OneIsCharged(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		all := []*Limiter{patientLimiter(t, client, settings{})}
		if client != nil {
			all = append(all, patientLimiter(t, client, settings{}))
		}
		r := compile(t, rule.Spec{ID: "rule", Rate: "40/day"})
		var each sync.WaitGroup
		for i := range 60 {
			each.Go(func() {
				for _, id := range []string{"same", fmt.Sprint("pair ", i/2)} {
					d, err := all[i%len(all)].Consume(context.Background(), under(id, requestOn("acme", 0, r)))
					assert.True(t, err == nil && d.Allowed, "%+v, %v", d, err)
				}
			})
		}
		each.Wait()
		assert.EqualValues(t, 40-1-30, remaining(t, all[0], requestOn("acme", 0, r)))
	})
}

// TestOnce_DenialFromMemory_DoesNotRefuseARepetition: another process has charged the id.
func TestOnce_DenialFromMemory_DoesNotRefuseARepetition(t *testing.T) {
	client := parallelClient(t)
	l, other := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	req := requestOn("acme", 0, compile(t, rule.Spec{ID: "rule", Rate: "1/day"}))
	mustPass(t, other, under("a", req))
	mustConsumeNot(t, l, req)
	require.Equal(t, ModeMemo, mustConsume(t, l, req).Mode, "the denial is remembered")
	mustPass(t, l, under("a", req))
	mustConsumeNot(t, l, under("b", req))
}

// TestOnce_RedisAway_TheProcessRemembers: what was charged in Redis is not known then, and the other way round.
func TestOnce_RedisAway_TheProcessRemembers(t *testing.T) {
	server, client := parallelServer(t)
	l := limiterOn(t, client, settings{})
	req := requestOn("acme", 0, compile(t, rule.Spec{ID: "rule", Rate: "5/day"}))
	mustPass(t, l, under("a", req))
	server.Stop()
	for i := range 3 {
		d := mustConsume(t, l, under("b", req))
		v := d.Verdicts[0]
		require.True(t, d.Allowed && d.Degraded && v.Remaining == 3 && (v.Charged == 1) == (i == 0), "%d: %+v", i, d)
	}
	charged := mustConsume(t, l, under("c", req))
	mustRefund(t, l, charged, under("c", req))
	v := mustPass(t, l, under("c", req))
	assert.EqualValues(t, 1, v.Charged, "after its refund: %+v", v)
}

func TestOnce_InAProcess_IDsAreBounded(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, nil, settings{})
	req := requestOn("acme", 0, compile(t, rule.Spec{ID: "rule", Rate: "1000000/s"}))
	for i := range (localStripes + 1) * maxLocalIDs {
		mustPass(t, l, under(fmt.Sprint(i), req))
	}
	for i := range l.local.stripes {
		assert.LessOrEqual(t, len(l.local.stripes[i].once), maxLocalIDs)
	}
}

// TestOnce_Cluster_EachSlotRemembers: a request on a tenant's rule and a shared one, in slots of two masters. If one of
// them denies, the other one forgets.
func TestOnce_Cluster_EachSlotRemembers(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	client := patientCluster(t, c)
	l, other := patientLimiter(t, client, settings{}), patientLimiter(t, client, settings{})
	tenant := tenantOn(c, 0, 7)
	shared := sharedOn(t, c, 1, rule.Spec{Rate: "3/day"})
	own := compile(t, rule.Spec{ID: "own", Rate: "1/day"})
	both := requestOn(tenant, 0, own, shared)
	mustPass(t, l, under("a", both))
	for _, l := range []*Limiter{l, other} {
		d := mustConsume(t, l, under("a", both))
		assert.True(t, d.Allowed && d.Verdicts[0].Charged == 0 && d.Verdicts[1].Charged == 0, "%+v", d)
		mustConsumeNot(t, l, under("b", both))
	}
	v := mustPass(t, l, under("b", requestOn(tenant, 0, shared)))
	assert.EqualValues(t, 1, v.Charged, "the shared rule has forgotten what was taken back: %+v", v)

	// The shared rule denies, so the tenant's slot is only looked at.
	mustPass(t, l, under("c", requestOn(tenant, 0, shared)))
	d := mustConsume(t, l, under("d", requestOn(tenantOn(c, 0, 8), 0, own, shared)))
	assert.True(t, !d.Allowed && d.Verdicts[0].Allowed && !d.Verdicts[0].Unknown && !d.Verdicts[1].Allowed, "%+v", d)
}

// TestOnce_KeyExpires: an id takes one key, which Redis drops by itself.
func TestOnce_KeyExpires(t *testing.T) {
	client := parallelClient(t)
	l := patientLimiter(t, client, settings{})
	mustPass(t, l, under("a", requestOn("acme", 0, compile(t, rule.Spec{ID: "rule", Rate: "5/day"}))))
	key := newOnceKey("acme", "a").key()
	left := client.PTTL(t.Context(), key).Val()
	assert.True(t, left > OnceFor-testenv.Patience && left <= OnceFor+2*time.Second, "%s lives %s", key, left)
	memory := client.MemoryUsage(t.Context(), key).Val()
	assert.True(t, memory <= 160, "%s takes %d bytes", key, memory)
	t.Log(memory)
}
