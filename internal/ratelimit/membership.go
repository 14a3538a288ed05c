package ratelimit

import (
	"fmt"
	"slices"
)

// confirmBeats is how many beats in a row have to go without a replica before it counts as gone: a Redis that was restarted
// empty, failed over or was away knows nobody at first, and everybody comes back within a beat or two. Dividing by too many
// for some seconds more costs a little room during an outage; dividing by one would admit the rule many times over.
const confirmBeats = 4

// membership is which replicas live, as far as one of them knows. A new one counts at once, one that says goodbye is gone at
// once, and one that is silent is gone when confirmBeats have gone without it. While nothing is heard nothing changes.
type membership struct {
	self   uint64
	others map[uint64]int // how many beats in a row have gone without it
}

// signs are what a beat has heard.
type signs struct{ live, left []uint64 }

// heard notes a beat, and reports whether the others are not the same as before.
func (m *membership) heard(s signs) (changed bool) {
	for id := range m.others {
		switch {
		case slices.Contains(s.left, id):
			delete(m.others, id)
			changed = true
		case slices.Contains(s.live, id):
			m.others[id] = 0
		case m.others[id]+1 == confirmBeats:
			delete(m.others, id)
			changed = true
		default:
			m.others[id]++
		}
	}
	for _, id := range s.live {
		if _, known := m.others[id]; !known && id != m.self && !slices.Contains(s.left, id) {
			m.others[id] = 0
			changed = true
		}
	}
	return changed
}

// failed notes a beat that has heard nothing: those that went without a replica were not in a row.
func (m *membership) failed() {
	for id := range m.others {
		m.others[id] = 0
	}
}

// list is the others.
func (m *membership) list() []uint64 {
	all := make([]uint64, 0, len(m.others))
	for id := range m.others {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// readSigns reads the script's reply.
func readSigns(ints []int64) (s signs, err error) {
	if len(ints) < 1 {
		return s, fmt.Errorf("%w: a reply without the time", errScript)
	}
	for _, sign := range ints[1:] {
		if sign < 0 {
			s.left = append(s.left, uint64(-sign))
		} else {
			s.live = append(s.live, uint64(sign))
		}
	}
	return s, nil
}
