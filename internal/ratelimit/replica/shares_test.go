package replica

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// crowd returns the sets of n replicas that know each other, one set for each replica. Each set divides rules by at
// least floor replicas.
func crowd(t *rapid.T, n, floor int) []*Set {
	ids := rapid.SliceOfNDistinct(rapid.Uint64(), n, n, rapid.ID).Draw(t, "ids")
	all := make([]*Set, n)
	for i, self := range ids {
		others := slices.Concat(ids[:i], ids[i+1:])
		slices.Reverse(others[:len(others)/2]) // the order in which a replica learns of the others must not matter
		all[i] = Known(self, others, floor)
	}
	return all
}

func TestSet_Known_PortionsSumToTheCapacity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, Max+50)).Draw(t, "replicas")
		floor := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, Max)).Draw(t, "floor")
		capacity := rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, bound.MaxAmount)).Draw(t, "capacity")
		key := rapid.String().Draw(t, "key")
		sum, holding := int64(0), int64(0)
		var p rule.Portion
		for _, r := range crowd(t, n, floor) {
			require.True(t, r.Count() == max(n, floor), "%d replicas, want %d", r.Count(), max(n, floor))
			p = r.Portion(capacity, key)
			holders, least := r.Share(capacity)
			require.True(t, p.Holders == holders && (p.Tokens == 0 || p.Tokens == least || p.Tokens == least+1),
				"%+v, but the share is at least %d of %d holders", p, least, holders)
			if p.Tokens > 0 {
				sum, holding = sum+p.Tokens, holding+1
			}
		}
		require.True(t, sum <= capacity && holding <= p.Holders,
			"%d replicas hold %d tokens of %d, with a rate divided by %d", holding, sum, capacity, p.Holders)
		require.False(t, n >= floor && (sum != capacity || holding != min(int64(n), capacity, Max)),
			"%d of %d replicas hold %d tokens of %d", holding, n, sum, capacity)
		// Replicas that are only counted because of the minimum get tokens only after all live replicas.
		require.False(t, capacity < int64(floor) && sum < min(capacity, int64(n), Max),
			"%d replicas of %d hold %d tokens of %d", n, floor, sum, capacity)
	})
}

// TestSet_HigherMinimum_NeverGivesMore: every replica knows all live replicas. Then a higher minimum can only reduce
// the capacity of the live replicas. The same is true of replicas that no longer exist.
func TestSet_HigherMinimum_NeverGivesMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "replicas")
		capacity := rapid.Int64Range(1, 40).Draw(t, "capacity")
		key := rapid.String().Draw(t, "key")
		sum := int64(0)
		parts := new(big.Rat)
		for _, r := range crowd(t, n, 1) {
			ghosts := rapid.SliceOfN(rapid.Uint64Min(1<<63), 0, 8).Draw(t, "ghosts")
			p := Known(r.self, slices.Concat(r.others, ghosts), rapid.IntRange(1, 20).Draw(t, "floor")).Portion(capacity, key)
			own := r.Portion(capacity, key)
			require.True(t, p.Tokens <= own.Tokens && p.Holders >= own.Holders, "%+v with ghosts, %+v without", p, own)
			if sum += p.Tokens; p.Tokens > 0 {
				parts.Add(parts, big.NewRat(1, p.Holders))
			}
		}
		require.True(t, sum <= capacity && parts.Cmp(big.NewRat(1, 1)) <= 0,
			"%d replicas hold %d of %d tokens and %s of the rate", n, sum, capacity, parts)
	})
}

func TestSet_Anonymous_HoldATokenEach(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n    int
		want rule.Portion
	}{
		{-1, rule.Portion{Tokens: 10, Holders: 1}}, {1, rule.Portion{Tokens: 10, Holders: 1}}, {3, rule.Portion{Tokens: 3, Holders: 3}}, {10, rule.Portion{Tokens: 1, Holders: 10}}, {50, rule.Portion{Tokens: 1, Holders: 50}}, {5000, rule.Portion{Tokens: 1, Holders: Max}},
	} {
		got := Anonymous(tc.n).Portion(10, "key")
		assert.True(t, got == tc.want, "of 10 tokens one of %d has %+v, want %+v", tc.n, got, tc.want)
	}
	got := (*Set)(nil).Portion(10, "key")
	assert.True(t, got == (rule.Portion{Tokens: 10, Holders: 1}), "one alone has %+v", got)
}

// TestSet_Buckets_AreSpreadOverReplicas: buckets with one token are spread evenly over the replicas. When a replica
// is lost, only the buckets that it held move to other replicas.
func TestSet_Buckets_AreSpreadOverReplicas(t *testing.T) {
	t.Parallel()
	const buckets = 10_000
	ids := []uint64{1, 2, 3, 1 << 40, 1<<63 + 5}
	holder := func(among []uint64, key string) uint64 {
		for i, id := range among {
			if Known(id, slices.Concat(among[:i], among[i+1:]), 1).Portion(1, key).Tokens == 1 {
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
		now := holder(ids[1:], key)
		require.False(t, was != ids[0] && now != was, "%s moves from %x to %x though %x is gone", key, was, now, ids[0])
	}
	for _, id := range ids { // about 2000 each; the standard deviation is 40
		assert.True(t, held[id] >= 1800 && held[id] <= 2200, "replica %x holds %d of %d buckets", id, held[id], buckets)
	}
}
