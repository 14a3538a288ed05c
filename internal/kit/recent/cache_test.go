package recent

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The cache calls dropped once for each value that leaves it. So the sum of the values in the cache is the sum of all
// values that entered it, minus the sum of the dropped values.
func TestCache_EveryValueThatLeaves_IsDropped(t *testing.T) {
	t.Parallel()
	entered, dropped := 0, 0
	c := NewCache[string](3, func(n int) { dropped += n })
	put := func(key string, n int) {
		c.Put(key, n)
		entered += n
	}
	for i := range 10 {
		put(fmt.Sprint(i%5), i)
	}
	put("4", 100) // another value of an existing key
	c.Remove("3")
	c.Remove("of nobody")
	assert.True(t, c.Len() == 2 && dropped == entered-107, "%d entries, %d of %d dropped", c.Len(), dropped, entered)
	for i := range 3 {
		assert.Equal(t, i < 2, c.RemoveOldest(), "removal %d of two entries", i)
	}
	assert.True(t, c.Len() == 0 && dropped == entered, "%d entries, %d of %d dropped", c.Len(), dropped, entered)
}

func TestCache_ManyGoroutines_KeepsItsBound(t *testing.T) {
	t.Parallel()
	left := 0
	c := NewCache[int](64, func(int) { left++ })
	const each = 1000
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range each {
				c.Put(g*each+i, i)
				c.Get(g * each)
				c.Peek(i)
			}
		})
	}
	all.Wait()
	assert.True(t, c.Len() == 64 && left == 4*each-64, "%d entries, %d left", c.Len(), left)
}
