package ratelimit

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// TestOutage_KnownReplicas_StayWithinTheRule: Redis is killed before the first request, so the bucket is full.
// Together three replicas admit exactly the burst, whether or not the burst can be divided by three.
func TestOutage_KnownReplicas_StayWithinTheRule(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	var all []*Limiter
	for range 3 {
		beat := replica.NewHeartbeat(storeOn(t, patientClient(t, server.Options()), settings{}), replica.Config{Every: 200 * time.Millisecond})
		require.NoError(t, beat.Start(t.Context()))
		t.Cleanup(func() { _ = beat.Stop(context.Background()) })
		all = append(all, patientLimiter(t, patientClient(t, server.Options()), settings{Replicas: beat.Replicas}))
	}
	for _, l := range all {
		testenv.Eventually(t, func() bool { return l.Replicas().Count() == 3 }, "three replicas")
	}
	server.Kill()
	for burst := int64(1); burst <= 10; burst++ {
		r := compile(t, rule.Spec{ID: fmt.Sprint("burst-", burst), Rate: "1/day", Burst: burst})
		var admitted atomic.Int64
		testenv.Together(len(all), func(i int) {
			for range burst + 1 {
				d, err := all[i].Consume(context.Background(), requestOf(Charge{Rule: r}))
				assert.NoError(t, err)
				if d.Allowed {
					admitted.Add(1)
				}
			}
		})
		assert.Equal(t, burst, admitted.Load(), "admitted by three replicas")
	}
}

// admission is the number of tokens that were admitted at an instant (in µs).
type admission struct{ at, tokens int64 }

// TestLocalState_Replicas_StayWithinTheRule: replicas that decide a bucket without Redis together admit at most the
// bound of the whole rule. The test has random capacities, rates, kinds and numbers of replicas.
func TestLocalState_Replicas_StayWithinTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rule.Kind(rapid.IntRange(int(rule.KindTokenBucket), int(rule.KindSlidingLog)).Draw(t, "kind"))
		rate := rule.Rate{
			Count:  rapid.OneOf(rapid.Int64Range(1, 4), rapid.Int64Range(1, 40)).Draw(t, "count"),
			Period: rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, time.Minute}).Draw(t, "period"),
		}
		spec := rule.Spec{ID: "rule", Kind: kind.String(), Rate: rate.String()}
		if kind == rule.KindTokenBucket || kind == rule.KindLeakyBucket {
			spec.Burst = rapid.OneOf(rapid.Int64Range(1, 4), rapid.Int64Range(1, 40)).Draw(t, "burst")
		}
		r := compile(t, spec)
		n := rapid.IntRange(1, 9).Draw(t, "replicas")
		all := replicasOf(t, n, rapid.SampledFrom([]int{1, n + 1}).Draw(t, "floor"))
		alone := make([]*localState, n)
		for i := range alone {
			alone[i] = newLocalState(0, NewMetrics(nil))
		}
		now := worldStart
		var passed []admission
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, rate.Period.Microseconds()).Draw(t, "wait") / rapid.SampledFrom([]int64{1, 1 + rate.Count}).Draw(t, "part")
			for i := range all { // each replica gets requests until it admits no more
				for cost := r.Burst; cost > 0; {
					q := queryFor(t, "acme", Charge{Rule: r, Cost: cost})
					if !alone[i].decide(&q, now, all[i]).allowed {
						cost /= 2
						continue
					}
					passed = append(passed, admission{now, cost})
				}
			}
		}
		checkBound(t, r, passed)
	})
}

// checkBound fails the test if more tokens than the rule allows were admitted in any interval between two admissions.
func checkBound(t *rapid.T, r *rule.Rule, passed []admission) {
	period := r.Rate.Period.Microseconds()
	for i := range passed {
		sum, most := int64(0), r.Burst
		for _, p := range passed[i:] {
			took := p.at - passed[i].at
			switch {
			case r.Kind == rule.KindSlidingLog && took >= period:
				continue
			case r.Kind == rule.KindFixedWindow && p.at/period != passed[i].at/period:
				continue
			case r.Kind == rule.KindSlidingLog || r.Kind == rule.KindFixedWindow:
			default:
				back := new(big.Int).Mul(big.NewInt(r.Rate.Count), big.NewInt(took))
				most = r.Burst + back.Div(back, big.NewInt(period)).Int64()
			}
			sum += p.tokens
			require.True(t, sum <= most, "%d tokens pass in %d us, at most %d may: %v", sum, took, most, passed)
		}
	}
}

func TestConsume_NoPortion_DeniesForNow(t *testing.T) {
	t.Parallel()
	ids := []uint64{11, 22, 33}
	r, leases := compile(t, rule.Spec{Rate: "1/day", Burst: 2}), concurrency(t, 2)
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	allowed, held := 0, 0
	for i, id := range ids {
		replicas := replica.Known(id, slices.Concat(ids[:i], ids[i+1:]), 1)
		l := away(t, settings{Replicas: func() *replica.Set { return replicas }}, func(*Limiter) {})
		for range 2 {
			v := mustConsume(t, l, req).Verdicts[0]
			switch {
			case v.Allowed && v.Limit == 1:
				allowed++
			case v.Allowed || v.Never || v.RetryAfter < time.Second || v.Remaining != 0 || v.Limit > 1:
				t.Errorf("replica %d: %+v", id, v)
			}
			lease := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: leases})
			switch {
			case lease.Held && lease.Limit == 1:
				held++
			case lease.Held || lease.RetryAfter < time.Second || lease.RetryAfter > leaseRetryMax || lease.Remaining != 0 || lease.Limit > 1:
				t.Errorf("replica %d: %+v", id, lease)
			}
		}
		v := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 3}}}).Verdicts[0]
		assert.True(t, v.Never, "3 of 2 tokens, replica %d: %+v", id, v)
	}
	assert.True(t, allowed == 2 && held == 2, "three replicas admit %d tokens and %d leases of 2", allowed, held)
}

// replicasOf returns the sets of n replicas that know each other, one set for each replica. Each set divides rules by
// at least floor replicas.
func replicasOf(t *rapid.T, n, floor int) []*replica.Set {
	ids := rapid.SliceOfNDistinct(rapid.Uint64(), n, n, rapid.ID).Draw(t, "ids")
	all := make([]*replica.Set, n)
	for i, self := range ids {
		others := slices.Concat(ids[:i], ids[i+1:])
		slices.Reverse(others[:len(others)/2]) // the order in which a replica learns of the others must not matter
		all[i] = replica.Known(self, others, floor)
	}
	return all
}

func TestLimit_Shares_SumToTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRuleOf(t, "rule", rule.KindTokenBucket)
		n := rapid.IntRange(1, 300).Draw(t, "replicas")
		whole, b := r.Limit().Params(rule.Moment{}), replica.Anonymous(n).LimitOf(r, "key").Params(rule.Moment{})
		tokens, num, units := b[0], b[1], b[2]
		n = min(n, replica.Max)
		require.True(t, tokens <= bound.MaxAmount/units && num >= 1 && units >= 1 && num <= bound.MaxAmount,
			"a share of %d is not exact: %+v", n, b)
		common := new(big.Int).GCD(nil, nil, big.NewInt(num*int64(n)), big.NewInt(units)).Int64()
		// n * num/units tokens per us must be the rule's rate. Both fractions are compared in lowest terms.
		require.True(t, num*int64(n)/common == whole[1] && units/common == whole[2],
			"%d x %d/%d is not %d/%d", n, num, units, whole[1], whole[2])
		require.True(t, (tokens*int64(n) <= r.Burst || r.Burst < int64(n)) && tokens >= 1,
			"%d x %d tokens for a burst of %d", n, tokens, r.Burst)
	})
}
