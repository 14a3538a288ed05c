package cowmap

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"
)

const (
	// fullPart bounds the average number of entries of a part. Above it the Map gets more parts. Copying a part of
	// this size takes some microseconds.
	fullPart = 128

	// growth is the factor by which the number of parts grows. It is a power of two.
	growth = 4
)

// seed is the seed of all maps: a key has the same hash in all of them.
var seed = maphash.MakeSeed()

// Map is a map, or one version of a map. The zero value is empty.
type Map[V any] struct {
	parts []map[string]V
	mine  []bool // by part: true if only this Map has the part; nil: all true
	size  int
}

// Fork returns a Map that begins as a copy of m and may be changed. m must not be changed from then on.
func (m *Map[V]) Fork() Map[V] {
	return Map[V]{parts: slices.Clone(m.parts), mine: make([]bool, len(m.parts)), size: m.size}
}

// Len returns the number of entries.
func (m *Map[V]) Len() int { return m.size }

// Get returns the value of key, or the zero value if key is not in the map.
func (m *Map[V]) Get(key string) V {
	if m.size == 0 {
		var none V
		return none
	}
	return m.parts[m.place(key)][key]
}

// Lookup returns the value of key and reports whether key is in the map.
func (m *Map[V]) Lookup(key string) (V, bool) {
	if m.size == 0 {
		var none V
		return none, false
	}
	value, ok := m.parts[m.place(key)][key]
	return value, ok
}

// All returns all entries, in no order. The map must not be changed during the iteration.
func (m *Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, part := range m.parts {
			for key, value := range part {
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// Set sets the value of key.
func (m *Map[V]) Set(key string, value V) {
	if m.size >= fullPart*len(m.parts) {
		m.grow()
	}
	part := m.change(m.place(key))
	before := len(part)
	part[key] = value
	m.size += len(part) - before
}

// Delete removes key.
func (m *Map[V]) Delete(key string) {
	if _, ok := m.Lookup(key); !ok {
		return
	}
	delete(m.change(m.place(key)), key)
	m.size--
}

// place returns the index of key's part. There must be at least one part.
func (m *Map[V]) place(key string) int {
	if len(m.parts) == 1 {
		return 0
	}
	return int(maphash.String(seed, key) & uint64(len(m.parts)-1)) //nolint:gosec // less than the number of parts
}

// change returns a part that may be changed. If another version shares the part, change first replaces it by a copy.
func (m *Map[V]) change(place int) map[string]V {
	if m.mine != nil && !m.mine[place] {
		m.parts[place], m.mine[place] = maps.Clone(m.parts[place]), true
	}
	return m.parts[place]
}

// grow distributes the entries over more parts.
func (m *Map[V]) grow() {
	more := Map[V]{parts: make([]map[string]V, max(1, growth*len(m.parts)))}
	for i := range more.parts {
		more.parts[i] = map[string]V{}
	}
	for key, value := range m.All() {
		more.parts[more.place(key)][key] = value
	}
	m.parts, m.mine = more.parts, nil
}
