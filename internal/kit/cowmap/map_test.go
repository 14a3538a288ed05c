package cowmap

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// After a fork, the earlier version does not change when the later version changes.
func TestMap_Versions_AreMapsThatDoNotChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var versions []Map[int]
		var want []map[string]int
		now, like := Map[int]{}, map[string]int{}
		for i := range rapid.IntRange(0, 1500).Draw(t, "begins with") {
			now.Set(fmt.Sprint(i), i)
			like[fmt.Sprint(i)] = i
		}
		for step := range 20 {
			if rapid.Bool().Draw(t, fmt.Sprint("fork ", step)) {
				versions, want = append(versions, now), append(want, maps.Clone(like))
				now = now.Fork()
			}
			key := fmt.Sprint(rapid.IntRange(0, 2000).Draw(t, fmt.Sprint("key ", step)))
			if rapid.Bool().Draw(t, fmt.Sprint("delete ", step)) {
				now.Delete(key)
				delete(like, key)
			} else {
				now.Set(key, -step)
				like[key] = -step
			}
		}
		versions, want = append(versions, now), append(want, like)
		for i := range versions {
			got := maps.Collect(versions[i].All())
			require.True(t, maps.Equal(got, want[i]) && versions[i].Len() == len(want[i]),
				"version %d: %v, want %v", i, got, want[i])
			for key, value := range want[i] {
				if got, ok := versions[i].Lookup(key); !ok || got != value || versions[i].Get(key) != value {
					t.Fatalf("version %d: %s is %d, %v", i, key, got, ok)
				}
			}
		}
	})
}

// A fork with one change copies one part, not the whole map.
func TestMap_Fork_CostsLittle(t *testing.T) {
	cost := func(n int) float64 {
		var m Map[int]
		for i := range n {
			m.Set(fmt.Sprint(i), i)
		}
		result := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				other := m.Fork()
				other.Set("7", 8)
			}
		})
		return float64(result.AllocedBytesPerOp())
	}
	small, large := cost(1_000), cost(64_000)
	require.Less(t, large, 8*small, "bytes of a change of 1,000 entries and of 64,000")
}
