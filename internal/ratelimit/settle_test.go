package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// settledTo settles the charges of a decision: each should have taken cost tokens.
func settledTo(t tester, l *Limiter, d Decision, req Request, cost int64) []Verdict {
	t.Helper()
	taken := d.Charged(req)
	costs := make([]int64, len(taken.Charges))
	for i := range costs {
		costs[i] = cost
	}
	after, err := l.Settle(context.Background(), taken, costs)
	require.NoError(t, err)
	return after
}

// Two tenants do the same at the same times. One is charged an estimate, which is settled later, and the other is
// charged the right cost in the first place. After the settlement their buckets are equal, whatever was charged before
// and however much time has passed. A token of these rates comes back in whole microseconds. Nothing else is charged in
// between, because then a bucket may differ by what cannot come back to a full one.
func TestSettle_EqualsAChargeOfTheRightCost(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		run := 0
		rapid.Check(t, func(t *rapid.T) {
			run++
			var rules []*rule.Rule
			for _, kind := range kinds() {
				rate := rapid.SampledFrom([]string{"5/s", "60/min", "40/min", "100/h"}).Draw(t, "rate")
				spec := rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: rate, Debt: 900}
				rules = append(rules, compile(t, spec))
			}
			span := rapid.OneOf(rapid.Int64Range(0, 3_000_000), rapid.Int64Range(0, 200_000_000), rapid.Just[int64](0))
			pass := func(what string) { clock.advance(time.Duration(span.Draw(t, what)) * time.Microsecond) }
			cost := rapid.Int64Range(0, 50)
			before, estimate, right := cost.Draw(t, "before"), 1+cost.Draw(t, "estimate"), cost.Draw(t, "right")
			estimated, exact := fmt.Sprint("estimated-", run), fmt.Sprint("exact-", run)
			late := func(tenant string, cost int64) (Request, Decision) {
				req := requestOn(tenant, cost, rules...)
				if cost == 0 {
					return req, Decision{}
				}
				return req, mustLate(t, l, req)
			}
			late(estimated, before)
			late(exact, before)
			pass("before")
			req, d := late(estimated, estimate)
			late(exact, right)
			pass("work")
			after := settledTo(t, l, d, req, right)
			want := mustPeek(t, l, requestOn(exact, 1, rules...)).Verdicts
			for i, got := range mustPeek(t, l, requestOn(estimated, 1, rules...)).Verdicts {
				shown := func(v Verdict) string {
					return fmt.Sprintf("%s %s: %d left, %d owed, the next in %s, full in %s", v.Rule.Kind, v.Rule.Rate,
						v.Remaining, v.Owed, v.Next, v.Reset)
				}
				require.Equal(t, shown(want[i]), shown(got), "after a settlement of %d to %d", estimate, right)
				require.Equal(t, shown(got), shown(after[i]), "the answer of the settlement")
			}
		})
	})
}

// A settlement goes down to the debt and no further, and up to what was not charged since.
func TestSettle_Bounds(t *testing.T) {
	onTestTime(t, func(t *testing.T, l *Limiter, clock *testClock) {
		r := compile(t, rule.Spec{ID: "r", Rate: "1/min", Burst: 10, Debt: 5})
		req := requestOf(Charge{Rule: r, Cost: 4})
		v := settledTo(t, l, mustConsume(t, l, req), req, 1000)[0]
		assert.True(t, v.Remaining == 0 && v.Owed == 5, "%+v", v)
		clock.advance(time.Hour)
		d := mustConsume(t, l, req)
		clock.advance(2 * time.Minute)
		mustPass(t, l, requestOf(Charge{Rule: r, Cost: 7}))
		v = settledTo(t, l, d, req, 0)[0]
		assert.Equal(t, int64(3), v.Remaining, "the burst less what was charged since")
		clock.advance(time.Hour)
		d = mustConsume(t, l, req)
		v = settledTo(t, l, d, req, 4)[0]
		assert.Equal(t, int64(6), v.Remaining, "the estimate was right")
	})
}

// What is settled while Redis is away is in Redis afterwards, once.
func TestSettle_RedisAway_ReachesItLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	clock := &movableClock{}
	l := instances(t, 1, p.url, clock)[0]
	var rules []*rule.Rule
	for _, kind := range kinds() {
		rules = append(rules, compile(t, rule.Spec{ID: kind.String(), Kind: kind.String(), Rate: "100/day"}))
	}
	more, less := requestOn("more", 10, rules...), requestOn("less", 10, rules...)
	var first Decision
	testenv.Eventually(t, func() bool {
		first = mustConsume(t, l, more)
		return !first.Degraded
	}, "a charge in Redis")
	p.server.Pause()
	testenv.Eventually(t, func() bool {
		_, err := l.Peek(t.Context(), requestOn("nobody", 1, rules...))
		return err == nil && isAway(l)
	}, "Redis is away")
	second := mustConsume(t, l, less)
	require.True(t, second.Degraded, "a charge of this process")
	settledTo(t, l, first, more, 30)
	settledTo(t, l, second, less, 3)
	p.server.Resume()
	clock.advance(time.Minute)
	for tenant, want := range map[string]int64{"more": 70, "less": 97} {
		peek := requestOn(tenant, 1, rules...)
		peek.Fresh = true
		var got Decision
		testenv.Eventually(t, func() bool {
			got = mustPeek(t, l, peek)
			return !got.Degraded
		}, "Redis is back")
		for _, v := range got.Verdicts {
			assert.Equal(t, want, v.Remaining, "%s: %s", tenant, v.Rule.Kind)
		}
	}
}

// Many settlements of different charges at once: each counts.
func TestSettle_AtOnce_EachCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := compile(t, rule.Spec{ID: "r", Kind: "fixed_window", Rate: "10000/day"})
		var all sync.WaitGroup
		var left atomic.Int64
		left.Store(10_000)
		for n := range 40 {
			all.Go(func() {
				req := requestOf(Charge{Rule: r, Cost: 20})
				settledTo(t, l, mustConsume(t, l, req), req, int64(n))
				left.Add(-int64(n))
			})
		}
		all.Wait()
		assert.Equal(t, left.Load(), remaining(t, l, requestOf(Charge{Rule: r, Cost: 1})))
	})
}

// On a cluster the buckets of one charge may be in several slots.
func TestSettle_SeveralSlots_EachLimitHasTheCost(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	l := patientLimiter(t, patientCluster(t, c), settings{})
	rules := []*rule.Rule{compile(t, rule.Spec{ID: "own", Rate: "1/day", Burst: 50, Debt: 10})}
	for master := range 3 {
		rules = append(rules, sharedOn(t, c, master, rule.Spec{Rate: "1/day", Burst: 50, Debt: 10}))
	}
	left := int64(50)
	for _, cost := range []int64{20, 3, 10, 0, 25} {
		req := requestOn(tenantOn(c, 1, 0), 10, rules...)
		after := settledTo(t, l, mustLate(t, l, req), req, cost)
		left -= cost
		for i, v := range mustPeek(t, l, req).Verdicts {
			assert.Equal(t, left, v.Remaining-v.Owed, "%s after %d", v.Rule.ID, cost)
			assert.Equal(t, left, after[i].Remaining-after[i].Owed, "the answer of the settlement: %s", v.Rule.ID)
		}
	}
}
