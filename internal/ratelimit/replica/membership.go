package replica

import (
	"errors"
	"slices"
)

// confirmBeats is the number of consecutive heartbeats without a replica after which it counts as gone. A Redis that
// was restarted empty or failed over has no replicas at first, and all of them return within two heartbeats. If a
// process divides by too many replicas for some seconds, an outage has a little less capacity. If it divided by one,
// the replicas together would admit the rule many times.
const confirmBeats = 4

// membership is the set of live replicas, as one of them sees it. A new replica counts at once. A replica that leaves
// is removed at once. A replica whose heartbeats stop is removed after confirmBeats. If the process's own heartbeat
// fails, the set does not change.
type membership struct {
	self   uint64
	others map[uint64]int // consecutive heartbeats in which the replica did not appear
}

// heartbeats are the replicas in a reply of the script: the live ones and those that left.
type heartbeats struct{ live, left []uint64 }

// beat applies a heartbeat, and reports whether the set of others has changed.
func (m *membership) beat(s heartbeats) (changed bool) {
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

// missed records a heartbeat that Redis did not answer. Absences before and after it are not consecutive.
func (m *membership) missed() {
	for id := range m.others {
		m.others[id] = 0
	}
}

// list returns the other replicas, sorted.
func (m *membership) list() []uint64 {
	all := make([]uint64, 0, len(m.others))
	for id := range m.others {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// readBeats reads the script's reply.
func readBeats(ints []int64) (s heartbeats, err error) {
	if len(ints) < 1 {
		return s, errors.New("heartbeat: a reply without the time")
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
