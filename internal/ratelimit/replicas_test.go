package ratelimit

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// crowd is n replicas that know each other, each as it sees them, and reckon with at least floor.
func crowd(t *rapid.T, n, floor int) []*Replicas {
	ids := rapid.SliceOfNDistinct(rapid.Uint64(), n, n, rapid.ID).Draw(t, "ids")
	all := make([]*Replicas, n)
	for i, self := range ids {
		others := slices.Concat(ids[:i], ids[i+1:])
		slices.Reverse(others[:len(others)/2]) // in whatever order they were heard of
		all[i] = named(self, others, floor)
	}
	return all
}

func TestSharesOfReplicasThatKnowEachOtherAddUpToTheCapacity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, MaxReplicas+50)).Draw(t, "replicas")
		floor := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, MaxReplicas)).Draw(t, "floor")
		capacity := rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, bound.MaxAmount)).Draw(t, "capacity")
		key := rapid.String().Draw(t, "key")
		sum, holding := int64(0), int64(0)
		var p rule.Portion
		for _, r := range crowd(t, n, floor) {
			if r.Count() != max(n, floor) {
				t.Fatalf("%d replicas, want %d", r.Count(), max(n, floor))
			}
			p = r.portion(capacity, key)
			holders, least := r.Share(capacity)
			if p.Holders != holders || p.Tokens != 0 && p.Tokens != least && p.Tokens != least+1 {
				t.Fatalf("%+v, but the share is at least %d of %d holders", p, least, holders)
			}
			if p.Tokens > 0 {
				sum, holding = sum+p.Tokens, holding+1
			}
		}
		if sum > capacity || holding > p.Holders {
			t.Fatalf("%d replicas hold %d tokens of %d, with a rate divided by %d", holding, sum, capacity, p.Holders)
		}
		if n >= floor && (sum != capacity || holding != min(int64(n), capacity, MaxReplicas)) {
			t.Fatalf("%d of %d replicas hold %d tokens of %d", holding, n, sum, capacity)
		}
		// Replicas that were only reckoned with hold the others' tokens at most.
		if capacity < int64(floor) && sum < min(capacity, int64(n), MaxReplicas) {
			t.Fatalf("%d replicas of %d hold %d tokens of %d", n, floor, sum, capacity)
		}
	})
}

// TestReckoningWithMoreReplicasNeverGivesMore: as long as nobody misses one that lives, what each believes beyond that costs
// room and nothing else.
func TestReckoningWithMoreReplicasNeverGivesMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "replicas")
		capacity := rapid.Int64Range(1, 40).Draw(t, "capacity")
		key := rapid.String().Draw(t, "key")
		sum := int64(0)
		parts := new(big.Rat)
		for _, r := range crowd(t, n, 1) {
			ghosts := rapid.SliceOfN(rapid.Uint64Min(1<<63), 0, 8).Draw(t, "ghosts")
			p := named(r.self, slices.Concat(r.others, ghosts), rapid.IntRange(1, 20).Draw(t, "floor")).portion(capacity, key)
			if own := r.portion(capacity, key); p.Tokens > own.Tokens || p.Holders < own.Holders {
				t.Fatalf("%+v with ghosts, %+v without", p, own)
			}
			if sum += p.Tokens; p.Tokens > 0 {
				parts.Add(parts, big.NewRat(1, p.Holders))
			}
		}
		if sum > capacity || parts.Cmp(big.NewRat(1, 1)) > 0 {
			t.Fatalf("%d replicas hold %d of %d tokens and %s of the rate", n, sum, capacity, parts)
		}
	})
}

func TestUnnamedReplicasHoldATokenEach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n    int
		want rule.Portion
	}{
		{-1, rule.Portion{Tokens: 10, Holders: 1}}, {1, rule.Portion{Tokens: 10, Holders: 1}}, {3, rule.Portion{Tokens: 3, Holders: 3}}, {10, rule.Portion{Tokens: 1, Holders: 10}}, {50, rule.Portion{Tokens: 1, Holders: 50}}, {5000, rule.Portion{Tokens: 1, Holders: MaxReplicas}},
	} {
		if got := Unnamed(tc.n).portion(10, "key"); got != tc.want {
			t.Errorf("of 10 tokens one of %d has %+v, want %+v", tc.n, got, tc.want)
		}
	}
	if got := (*Replicas)(nil).portion(10, "key"); got != (rule.Portion{Tokens: 10, Holders: 1}) {
		t.Errorf("one alone has %+v", got)
	}
}

// TestBucketsAreSpreadOverTheReplicas: who holds one bucket's only token says nothing of another's, and losing one replica
// moves its buckets only.
func TestBucketsAreSpreadOverTheReplicas(t *testing.T) {
	t.Parallel()
	const buckets = 10_000
	ids := []uint64{1, 2, 3, 1 << 40, 1<<63 + 5}
	holder := func(among []uint64, key string) uint64 {
		for i, id := range among {
			if named(id, slices.Concat(among[:i], among[i+1:]), 1).portion(1, key).Tokens == 1 {
				return id
			}
		}
		t.Fatalf("nobody holds %s", key)
		return 0
	}
	held := map[uint64]int{}
	for i := range buckets {
		key := fmt.Sprintf("rl:{tenant-%d}t:rule", i)
		was := holder(ids, key)
		held[was]++
		if now := holder(ids[1:], key); was != ids[0] && now != was {
			t.Fatalf("%s moves from %x to %x though %x is gone", key, was, now, ids[0])
		}
	}
	for _, id := range ids { // 2000 each; the standard deviation is 40
		if held[id] < 1800 || held[id] > 2200 {
			t.Errorf("replica %x holds %d of %d buckets", id, held[id], buckets)
		}
	}
}

// admission is tokens that passed at a time.
type admission struct{ at, tokens int64 }

// TestReplicasAloneAdmitTogetherWhatTheRuleAllows: whatever the capacity, the rate and the kind, and however many replicas
// decide a bucket by themselves, together they stay within the bound of the whole rule.
func TestReplicasAloneAdmitTogetherWhatTheRuleAllows(t *testing.T) {
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
		r, err := rule.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 9).Draw(t, "replicas")
		all := crowd(t, n, rapid.SampledFrom([]int{1, n + 1}).Draw(t, "floor"))
		alone := make([]*levels, n)
		for i := range alone {
			alone[i] = newLevels(0, NewMetrics(nil))
		}
		now := worldStart
		var passed []admission
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, rate.Period.Microseconds()).Draw(t, "wait") / rapid.SampledFrom([]int64{1, 1 + rate.Count}).Draw(t, "part")
			for i := range all { // each is asked for as much as it gives
				for cost := r.Burst; cost > 0; {
					req := Request{Tenant: "acme", Charges: []Charge{{Rule: &r, Cost: cost}}}
					q, err := req.check(rule.Consume)
					if err != nil {
						t.Fatal(err)
					}
					if !alone[i].decide(&q, now, all[i]).allowed {
						cost /= 2
						continue
					}
					passed = append(passed, admission{now, cost})
				}
			}
		}
		checkBound(t, &r, passed)
	})
}

// checkBound holds every interval between two admissions against the rule.
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
			if sum += p.tokens; sum > most {
				t.Fatalf("%d tokens pass in %d us, at most %d may: %v", sum, took, most, passed)
			}
		}
	}
}

func TestAReplicaWithoutAShareDeniesForNow(t *testing.T) {
	t.Parallel()
	ids := []uint64{11, 22, 33}
	r, leases := compile(t, rule.Spec{Rate: "1/day", Burst: 2}), concurrency(t, 2)
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
	allowed, held := 0, 0
	for i, id := range ids {
		replicas := named(id, slices.Concat(ids[:i], ids[i+1:]), 1)
		l := away(t, Config{Replicas: func() *Replicas { return replicas }}, func(*Limiter) {})
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
		if v := mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 3}}}).Verdicts[0]; !v.Never {
			t.Errorf("3 of 2 tokens, replica %d: %+v", id, v)
		}
	}
	if allowed != 2 || held != 2 {
		t.Errorf("three replicas admit %d tokens and %d leases of 2", allowed, held)
	}
}

func TestSharesTogetherAreTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRuleOf(t, "rule", rule.KindTokenBucket)
		n := rapid.IntRange(1, 300).Draw(t, "replicas")
		whole, b := r.Limit().Params(rule.Moment{}), Unnamed(n).LimitOf(r, "key").Params(rule.Moment{})
		tokens, num, units := b[0], b[1], b[2]
		n = min(n, MaxReplicas)
		if tokens > bound.MaxAmount/units || num < 1 || units < 1 || num > bound.MaxAmount {
			t.Fatalf("a share of %d is not exact: %+v", n, b)
		}
		common := new(big.Int).GCD(nil, nil, big.NewInt(num*int64(n)), big.NewInt(units)).Int64()
		// num/s tokens per us, times n, is the rule's rate: cross-multiplied in lowest terms.
		if num*int64(n)/common != whole[1] || units/common != whole[2] {
			t.Fatalf("%d x %d/%d is not %d/%d", n, num, units, whole[1], whole[2])
		}
		if total := tokens * int64(n); total > r.Burst && r.Burst >= int64(n) || tokens < 1 {
			t.Fatalf("%d x %d tokens for a burst of %d", n, tokens, r.Burst)
		}
	})
}
