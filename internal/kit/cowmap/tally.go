package cowmap

import "slices"

// Tally has a count for each key, and knows the largest count. It has versions, like a Map. The zero value is empty.
type Tally struct {
	by Map[int]
	of []int // by count: the number of keys that have this count
}

// Fork returns a Tally that begins as a copy of t and may be changed. t must not be changed from then on.
func (t *Tally) Fork() Tally { return Tally{by: t.by.Fork(), of: slices.Clone(t.of)} }

// Len returns the number of keys with a count above zero.
func (t *Tally) Len() int { return t.by.Len() }

// Get returns the count of key.
func (t *Tally) Get(key string) int { return t.by.Get(key) }

// All returns all counts by their keys.
func (t *Tally) All() map[string]int {
	all := make(map[string]int, t.Len())
	for key, n := range t.by.All() {
		all[key] = n
	}
	return all
}

// Add adds a number to the count of key. If the sum is negative, the count becomes zero.
func (t *Tally) Add(key string, by int) {
	n := t.by.Get(key)
	if n > 0 {
		t.of[n]--
	}
	if n += by; n > 0 {
		t.of = append(t.of, make([]int, max(0, n+1-len(t.of)))...)
		t.of[n]++
		t.by.Set(key, n)
	} else {
		t.by.Delete(key)
	}
	for len(t.of) > 0 && t.of[len(t.of)-1] == 0 {
		t.of = t.of[:len(t.of)-1]
	}
}

// Most returns the largest count.
func (t *Tally) Most() int { return max(0, len(t.of)-1) }
