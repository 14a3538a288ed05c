package denial

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a process's memory between two flushes. A flood of requests of one tenant needs only a few counts. The
// remaining room is for attacks with many tenants, and for the time while PostgreSQL is down.
const (
	shards = 16

	// tenantsMax is the largest number of tenants in a shard. keysMax is the largest number of counts in a shard.
	// Counts under Other have additional room of the same size. All shards together have 16,000 tenants and 64,000
	// counts, in about 15 MB.
	tenantsMax = 1000
	keysMax    = 4000

	// recentMax is the largest number of explanations in a shard: 16,000 in all shards. Each takes up to 770 bytes.
	recentMax = 1000

	// keysOfTenant is the largest number of a tenant's counts in one minute. A client can send any meter, but a plan
	// has only a few meters and rules.
	keysOfTenant = 20

	// keysOfTenantMax is the largest number of all counts of a tenant. Counts under Other have additional room of the
	// same size. The bound prevents one tenant from using the room of other tenants while PostgreSQL is down.
	keysOfTenantMax = 400
)

// key identifies a count of a tenant.
type key struct {
	minute      int64 // Unix time in minutes
	code        string
	meter, rule string
}

// explanation is a denial in the form in which memory keeps it until the next flush. Its texts are copied into one
// buffer. A string of a request may be a part of the request's headers, and would keep all headers in memory.
type explanation struct {
	at                  time.Time
	code                string
	required, available int64
	ends                [5]int // end positions of the five texts in buf
	buf                 []byte
}

func (e *explanation) set(d *Denial) {
	e.at, e.code, e.required, e.available, e.buf = d.At, d.Code, d.Required, d.Available, e.buf[:0]
	for i, text := range [...]string{d.Meter, d.Rule, d.Subject, d.Route, d.RequestID} {
		e.buf = append(e.buf, text...)
		e.ends[i] = len(e.buf)
	}
}

func (e *explanation) denial(tenant string) Denial {
	var texts [5]string
	from := 0
	for i, end := range e.ends {
		texts[i], from = string(e.buf[from:end]), end
	}
	return Denial{
		At: e.at, Tenant: tenant, Code: e.code, Meter: texts[0], Rule: texts[1], Subject: texts[2], Route: texts[3],
		Required: e.required, Available: e.available, RequestID: texts[4],
	}
}

// noted contains the denials of one tenant since the last flush.
type noted struct {
	counts map[key]int64
	minute int64 // the newest minute in counts
	named  int   // number of keys in counts with that minute
	recent []explanation
	next   int // index of the oldest explanation in recent, which is replaced next
}

// newest returns the explanations of the tenant, newest first.
func (n *noted) newest(tenant string) []Denial {
	out := make([]Denial, 0, len(n.recent))
	for i := range n.recent {
		at := (n.next - 1 - i + 2*len(n.recent)) % len(n.recent)
		out = append(out, n.recent[at].denial(tenant))
	}
	return out
}

// keep stores the explanation of d. If there is no room for another explanation, it replaces the oldest. grew reports
// whether the number of explanations has grown. kept reports whether d was stored.
func (n *noted) keep(d *Denial, room bool) (grew, kept bool) {
	switch {
	case len(n.recent) < Kept && room:
		n.recent = append(n.recent, explanation{})
		n.recent[len(n.recent)-1].set(d)
		return true, true
	case len(n.recent) == 0:
		return false, false
	default:
		n.recent[n.next].set(d)
		n.next = (n.next + 1) % len(n.recent)
		return false, true
	}
}

// shard is a part of the memory with a separate lock, so that processors do not wait for each other.
type shard struct {
	mu      sync.Mutex
	tenants map[string]*noted
	keys    int // number of counts of all tenants
	recent  int
}

// memory contains the denials since the last flush.
type memory struct {
	seed   maphash.Seed
	shards [shards]shard
}

func newMemory() *memory {
	m := &memory{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].tenants = map[string]*noted{}
	}
	return m
}

// missed is the number of denials for which there was no room.
type missed struct {
	counts, explanations, named int64 // named: counted under Other instead of their meter and rule
}

func (m *memory) of(tenant string) *shard { return &m.shards[maphash.String(m.seed, tenant)%shards] }

// note counts a denial and keeps its explanation. It returns the losses if there was no room.
func (m *memory) note(d *Denial) (lost missed) {
	s := m.of(d.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tenant(d.Tenant)
	if n == nil {
		return missed{counts: 1, explanations: 1}
	}
	lost = s.count(n, key{d.At.Unix() / 60, d.Code, d.Meter, d.Rule}, 1)
	grew, kept := n.keep(d, s.recent < recentMax)
	if grew {
		s.recent++
	}
	if !kept {
		lost.explanations = 1
	}
	return lost
}

// tenant returns the denials of a tenant in memory. It returns nil if there is no room for another tenant.
func (s *shard) tenant(tenant string) *noted {
	n := s.tenants[tenant]
	if n == nil && len(s.tenants) < tenantsMax {
		n = &noted{counts: map[key]int64{}}
		s.tenants[strings.Clone(tenant)] = n
	}
	return n
}

// count adds a number to the count of k. If there is no room for k, it adds to the count under Other with the same
// minute and code.
func (s *shard) count(n *noted, k key, by int64) (lost missed) {
	if _, known := n.counts[k]; known {
		n.counts[k] += by
		return lost
	}
	if k.minute > n.minute {
		n.minute, n.named = k.minute, 0
	}
	if n.named >= keysOfTenant || len(n.counts) >= keysOfTenantMax || s.keys >= keysMax {
		lost.named = by
		k.meter, k.rule = Other, Other
		if _, known := n.counts[k]; known {
			n.counts[k] += by
			return lost
		}
		if len(n.counts) >= 2*keysOfTenantMax || s.keys >= 2*keysMax {
			return missed{counts: by}
		}
	} else {
		k.meter, k.rule = strings.Clone(k.meter), strings.Clone(k.rule)
		n.named++
	}
	n.counts[k] = by
	s.keys++
	return lost
}

// take removes and returns all denials since the last flush.
func (m *memory) take() map[string]*noted {
	all := map[string]*noted{}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		taken := s.tenants
		if len(taken) > 0 {
			s.tenants, s.keys, s.recent = map[string]*noted{}, 0, 0
			maps.Copy(all, taken)
		}
		s.mu.Unlock()
	}
	return all
}

// restore adds denials to the memory again after a flush could not store them. take had removed these denials. Denials
// that were noted meanwhile are newer.
func (m *memory) restore(tenants map[string]*noted) (lost missed) {
	add := func(more missed) {
		lost.counts += more.counts
		lost.explanations += more.explanations
		lost.named += more.named
	}
	for tenant, before := range tenants {
		add(m.of(tenant).restore(tenant, before))
	}
	return lost
}

func (s *shard) restore(tenant string, before *noted) (lost missed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tenant(tenant)
	if n == nil {
		for _, by := range before.counts {
			lost.counts += by
		}
		lost.explanations = int64(len(before.recent))
		return lost
	}
	for k, by := range before.counts {
		more := s.count(n, k, by)
		lost.counts += more.counts
		lost.named += more.named
	}
	both := append(n.newest(tenant), before.newest(tenant)...)
	kept := min(len(both), Kept, max(recentMax-s.recent, 0)+len(n.recent))
	s.recent += kept - len(n.recent)
	lost.explanations = int64(min(len(both), Kept) - kept)
	n.recent, n.next = make([]explanation, kept), 0
	for i := range kept {
		n.recent[kept-1-i].set(&both[i])
	}
	return lost
}

// sortedKeys returns the keys of the counts in the order in which all instances write their rows. A common order
// prevents deadlocks.
func (n *noted) sortedKeys() []key {
	return slices.SortedFunc(maps.Keys(n.counts), func(a, b key) int {
		return cmp.Or(int(a.minute-b.minute), strings.Compare(a.code, b.code), strings.Compare(a.meter, b.meter), strings.Compare(a.rule, b.rule))
	})
}
