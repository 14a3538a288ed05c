package recent

import "hash/maphash"

// pageSize is the number of entries that are allocated together. For allocations of more than 32 KiB, Go wastes
// almost no memory.
const pageSize = 1024

// Map holds the values of the most recently used keys.
type Map[K comparable, V any] struct {
	seed  maphash.Seed
	most  int
	len   int
	heads []uint32 // by hash: the number of the first entry in the chain of keys with this hash
	pages []*[pageSize]entry[K, V]
	taken uint32 // number of entries of pages that have been used at least once
	free  uint32 // number of the first removed entry; removed entries form a chain

	dropped func(V) // called with each value that leaves the map; may be nil

	newest, oldest uint32
}

// entry is an entry of the Map. Entries refer to each other by their numbers, which begin at 1; 0 means no entry.
type entry[K comparable, V any] struct {
	key   K
	value V
	next  uint32 // number of the next entry in the same chain

	newer, older uint32
}

// New returns a Map for up to `most` entries, at least one.
func New[K comparable, V any](most int) *Map[K, V] {
	most = max(1, most)
	heads := 1
	for heads < most {
		heads *= 2
	}
	return &Map[K, V]{seed: maphash.MakeSeed(), most: most, heads: make([]uint32, heads)}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.len }

// Get returns the value of key and marks it as used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	at := m.find(*m.head(key), key)
	if at == 0 {
		return value, false
	}
	if at != m.newest {
		m.unlink(at)
		m.link(at)
	}
	return m.entry(at).value, true
}

// Peek returns the value of key without marking it as used.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	at := m.find(*m.head(key), key)
	if at == 0 {
		return value, false
	}
	return m.entry(at).value, true
}

// Put sets the value of key and marks it as used.
func (m *Map[K, V]) Put(key K, value V) {
	head := m.head(key)
	at := m.find(*head, key)
	if at != 0 {
		m.leave(at)
		m.unlink(at)
	} else {
		if m.len == m.most {
			m.drop(m.oldest)
		}
		at = m.place()
		e := m.entry(at)
		e.key, e.next = key, *head
		*head = at
		m.len++
	}
	m.entry(at).value = value
	m.link(at)
}

// Remove removes key.
func (m *Map[K, V]) Remove(key K) {
	if at := m.find(*m.head(key), key); at != 0 {
		m.drop(at)
	}
}

// RemoveOldest removes the least recently used key. It reports whether there was a key.
func (m *Map[K, V]) RemoveOldest() bool {
	if m.len == 0 {
		return false
	}
	m.drop(m.oldest)
	return true
}

func (m *Map[K, V]) head(key K) *uint32 {
	return &m.heads[maphash.Comparable(m.seed, key)&uint64(len(m.heads)-1)]
}

func (m *Map[K, V]) entry(at uint32) *entry[K, V] {
	return &m.pages[(at-1)/pageSize][(at-1)%pageSize]
}

// find returns the number of the entry of key in the chain that begins at the entry with the number `at`. It returns
// 0 if there is none.
func (m *Map[K, V]) find(at uint32, key K) uint32 {
	for at != 0 {
		e := m.entry(at)
		if e.key == key {
			break
		}
		at = e.next
	}
	return at
}

// place returns the number of an entry that is not in use.
func (m *Map[K, V]) place() uint32 {
	if at := m.free; at != 0 {
		m.free = m.entry(at).next
		return at
	}
	if m.taken%pageSize == 0 {
		m.pages = append(m.pages, new([pageSize]entry[K, V]))
	}
	m.taken++
	return m.taken
}

// drop removes an entry.
func (m *Map[K, V]) drop(at uint32) {
	m.leave(at)
	m.unlink(at)
	e := m.entry(at)
	before := m.head(e.key)
	for *before != at {
		before = &m.entry(*before).next
	}
	*before = e.next
	*e = entry[K, V]{next: m.free}
	m.free = at
	m.len--
}

// leave calls dropped with the value of an entry that is removed or replaced.
func (m *Map[K, V]) leave(at uint32) {
	if m.dropped != nil {
		m.dropped(m.entry(at).value)
	}
}

// link makes an entry the most recently used entry.
func (m *Map[K, V]) link(at uint32) {
	e := m.entry(at)
	e.newer, e.older = 0, m.newest
	if m.newest != 0 {
		m.entry(m.newest).newer = at
	} else {
		m.oldest = at
	}
	m.newest = at
}

// unlink removes an entry from the order of use.
func (m *Map[K, V]) unlink(at uint32) {
	e := m.entry(at)
	if e.newer != 0 {
		m.entry(e.newer).older = e.older
	} else {
		m.newest = e.older
	}
	if e.older != 0 {
		m.entry(e.older).newer = e.newer
	} else {
		m.oldest = e.newer
	}
}
