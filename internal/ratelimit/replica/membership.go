package replica

import (
	"errors"
	"slices"
)

// confirmBeats is the number of consecutive heartbeats without a replica after which the replica is removed. After a
// failover or a restart without data, Redis knows no replicas at first, and all replicas register again within two
// heartbeats. If the processes divide by too many replicas for some seconds, they admit a little less during an outage.
// If each of them divided by one, together they would admit the rule many times.
const confirmBeats = 4

// membership is the set of live replicas that one process knows. A new replica counts at once. A replica that leaves
// is removed at once. A replica whose heartbeats stop is removed after confirmBeats heartbeats of this process. If
// this process's own heartbeat fails, the set does not change.
type membership struct {
	self   uint64
	others map[uint64]int // consecutive heartbeats in which the replica did not appear
}

// heartbeats has the ids in a reply of the script: the live replicas, and the replicas that have left.
type heartbeats struct{ live, left []uint64 }

// beat applies the reply to a heartbeat, and reports whether the set of other replicas has changed.
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

// missed records a heartbeat that Redis did not answer. It restarts the count of consecutive heartbeats without a
// replica.
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

// readBeats decodes the script's reply. The first number is the time; each other number is a replica's id, negative
// if it has left.
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
