package envoyrls

import (
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/recent"
)

const (
	// lookSlot and lookSlots bound the time for which a look is remembered. Looks are counted by slots of time, so a
	// look is remembered for an hour, and up to ten minutes longer. Few streams take longer.
	lookSlot  = 10 * time.Minute
	lookSlots = 7

	// looksMax is the maximum number of descriptors whose looks are remembered, of about 70 bytes each: 9 MB. A proxy
	// with 2,000 requests per second that take a minute each needs fewer, even if all their descriptors differ.
	looksMax = 1 << 17
)

// looks remembers which descriptors were looked at and not reported since. If Envoy charges a limit at the end of a
// stream, it looks at the descriptor before the request, and sends the descriptor with the number of hits at the end.
// This report must count although too few tokens are left, because Envoy ignores its answer.
type looks struct {
	began     time.Time // start of slot 0
	seed      maphash.Seed
	forgotten prometheus.Counter

	mu     sync.Mutex
	unused *recent.Map[uint64, lookCounts] // by the hash of the descriptor
}

// lookCounts has the looks at a descriptor that no report has used.
type lookCounts struct {
	slot   int64 // the newest slot
	counts [lookSlots]uint32
}

func newLooks(now time.Time, forgotten prometheus.Counter) *looks {
	unused := recent.New[uint64, lookCounts](looksMax)
	return &looks{began: now, seed: maphash.MakeSeed(), forgotten: forgotten, unused: unused}
}

// pair remembers the looks among the charges of a request, and sets AfterTheFact of the reports. A report uses the
// oldest look at its descriptor, but no look of the same request. The entry after_the_fact decides about its charge
// alone: "true" makes it a report even without a look, and with "false" it is neither a look nor a report.
func (l *looks) pair(charges []charge, now time.Time) {
	slot := int64(now.Sub(l.began) / lookSlot)
	for i := range charges {
		if c := &charges[i]; !c.DryRun && c.afterTheFact != "false" {
			c.AfterTheFact = l.use(l.hash(c), slot) || c.afterTheFact == "true"
		}
	}
	for i := range charges {
		if c := &charges[i]; c.DryRun && c.afterTheFact != "false" {
			l.add(l.hash(c), slot)
		}
	}
}

// hash returns the same number for descriptors with the same values. The seed is random, so clients cannot
// choose descriptors with the same hash.
func (l *looks) hash(c *charge) uint64 {
	return maphash.Comparable(l.seed, struct {
		tenant, subject, route, method, rules string
		ip                                    netip.Addr
	}{c.Tenant, c.Subject, c.Route, c.Method, strings.Join(c.Rules, " "), c.IP})
}

// add remembers a look.
func (l *looks) add(descriptor uint64, slot int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, known := l.unused.Peek(descriptor)
	if !known && l.unused.Len() == looksMax {
		l.forgotten.Inc() // the descriptor that was looked at or reported the longest time ago
	}
	seen.advance(slot)
	seen.counts[slot%lookSlots]++
	l.unused.Put(descriptor, seen)
}

// use removes the oldest look and reports whether there was one.
func (l *looks) use(descriptor uint64, slot int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, known := l.unused.Peek(descriptor)
	if !known {
		return false
	}
	seen.advance(slot)
	used := seen.useOldest()
	if seen.counts == [lookSlots]uint32{} {
		l.unused.Remove(descriptor)
	} else {
		l.unused.Put(descriptor, seen)
	}
	return used
}

// advance removes the looks of slots that are over.
func (s *lookCounts) advance(slot int64) {
	for s.slot = max(s.slot, slot-lookSlots); s.slot < slot; {
		s.slot++
		s.counts[s.slot%lookSlots] = 0
	}
}

// useOldest removes the oldest look and reports whether there was one.
func (s *lookCounts) useOldest() bool {
	for at := s.slot + 1; at <= s.slot+lookSlots; at++ {
		if n := &s.counts[at%lookSlots]; *n > 0 {
			*n--
			return true
		}
	}
	return false
}
