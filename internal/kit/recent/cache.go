package recent

import (
	"sync"
	"sync/atomic"
)

// Cache is a Map that any number of goroutines may use at the same time.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	entries *Map[K, V]
	len     atomic.Int64
}

// NewCache returns a Cache for up to `most` entries, at least one. It calls the function `dropped` with each value that
// leaves the Cache. A value leaves if its key gets another value, if a new entry needs room, or if its key is removed.
// The function `dropped` may be nil. It must not call the Cache.
func NewCache[K comparable, V any](most int, dropped func(V)) *Cache[K, V] {
	c := &Cache[K, V]{entries: New[K, V](most)}
	c.entries.dropped = dropped
	return c
}

// Len returns the number of entries. It does not block.
func (c *Cache[K, V]) Len() int { return int(c.len.Load()) }

// Get returns the value of key and marks it as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Get(key)
}

// Peek returns the value of key without marking it as used.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Peek(key)
}

// Put sets the value of key and marks it as used.
func (c *Cache[K, V]) Put(key K, value V) {
	c.change(func() { c.entries.Put(key, value) })
}

// Remove removes key.
func (c *Cache[K, V]) Remove(key K) {
	c.change(func() { c.entries.Remove(key) })
}

// RemoveOldest removes the least recently used key. It reports whether there was a key.
func (c *Cache[K, V]) RemoveOldest() (ok bool) {
	c.change(func() { ok = c.entries.RemoveOldest() })
	return ok
}

func (c *Cache[K, V]) change(act func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	act()
	c.len.Store(int64(c.entries.Len()))
}
