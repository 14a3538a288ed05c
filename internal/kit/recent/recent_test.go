package recent

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestMap_AnyProgram_LikeAList compares a Map with a slice whose elements are in the order of use.
func TestMap_AnyProgram_LikeAList(t *testing.T) {
	t.Parallel()
	type pair struct{ key, value int }
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		m, list := New[int, int](most), []pair(nil)
		keys := rapid.IntRange(0, 8)
		find := func(key int) int { return slices.IndexFunc(list, func(p pair) bool { return p.key == key }) }
		same := func(key int, got int, ok bool) {
			at := find(key)
			require.True(t, ok == (at >= 0) && (!ok || got == list[at].value),
				"%d: %d, %v; want %v", key, got, ok, list)
		}
		use := func(p pair) { // the last element is the newest
			if at := find(p.key); at >= 0 {
				list = slices.Delete(list, at, at+1)
			}
			list = append(list, p)
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				got, ok := m.Get(key)
				same(key, got, ok)
				if ok {
					use(pair{key, got})
				}
			},
			"peek": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				got, ok := m.Peek(key)
				same(key, got, ok)
			},
			"put": func(t *rapid.T) {
				p := pair{keys.Draw(t, "key"), rapid.Int().Draw(t, "value")}
				m.Put(p.key, p.value)
				if use(p); len(list) > most {
					list = list[1:]
				}
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				m.Remove(key)
				list = slices.DeleteFunc(list, func(p pair) bool { return p.key == key })
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(list), m.Len(), "%d entries; want %v", m.Len(), list)
				for at, i := m.oldest, 0; at != 0; at, i = m.entry(at).newer, i+1 {
					require.True(t, m.entry(at).key == list[i].key, "entry %d is %d; want %v", i, m.entry(at).key, list)
				}
			},
		})
	})
}

// Not parallel: this test measures the heap.
func TestMap_Entry_TakesItsKeyAndValueAnd21Bytes(t *testing.T) {
	const n = 100_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("tenant-", i)
	}
	before := heap()
	m := New[string, [4]int64](n)
	for i, key := range keys {
		m.Put(key, [4]int64{int64(i)})
	}
	each := float64(heap()-before) / n
	runtime.KeepAlive(keys)
	require.True(t, m.Len() == n, "%d entries", m.Len())
	const own, table = 16 + 32 + 16, 131072 * 4.0 / n
	t.Logf("%.1f bytes", each)
	assert.True(t, each <= own+table+1, "%.1f bytes an entry; key and value are 48", each)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkGet(b *testing.B) {
	const n = 100_000
	keys, m := make([]string, n), New[string, [5]int64](n)
	for i := range keys {
		keys[i] = fmt.Sprint("tenant-", i)
		m.Put(keys[i], [5]int64{})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := m.Get(keys[i*7919%n]); !ok {
			b.Fatal("not there")
		}
	}
}
