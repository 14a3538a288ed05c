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

// shadowKeysOfTenant bounds the counts of a tenant between two flushes: only a few shadow limits apply to a tenant.
// As for denials, tenantsMax and keysMax bound the tenants and counts of a shard, in about 15 MB for all shards.
const shadowKeysOfTenant = 400

// Shadow is the decision of a limit in shadow mode about a request that was granted or refused. It is not a denial.
type Shadow struct {
	At     time.Time // the ledger's time; zero: now
	Tenant string
	Rule   string // the limit in shadow mode

	Refused   bool   // whether the request was refused
	RefusedBy string // the limit that refused the request; empty: another reason, or the request was granted
	Denies    bool   // whether this limit would have denied it
}

// shadowKey identifies a count of a tenant.
type shadowKey struct {
	minute          int64  // Unix time in minutes
	rule, refusedBy string // the refusing limit; empty: the request was granted; Other: the reason was not a limit
}

// said counts the requests that a limit would have denied and passed.
type said struct{ denies, passes int64 }

func (s said) plus(more said) said { return said{s.denies + more.denies, s.passes + more.passes} }
func (s said) total() int64        { return s.denies + s.passes }

// shadowed has the counts of one tenant.
type shadowed map[shadowKey]said

func (n shadowed) total() (all int64) {
	for _, by := range n {
		all += by.total()
	}
	return all
}

// sortedKeys returns the keys in the order in which their rows are written.
func (n shadowed) sortedKeys() []shadowKey {
	return slices.SortedFunc(maps.Keys(n), func(a, b shadowKey) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), cmp.Compare(a.minute, b.minute), strings.Compare(a.refusedBy, b.refusedBy))
	})
}

// shadows has the counts of shadow limits since the last flush. It has its own memory, so a flood of shadows takes no
// room from denials.
type shadows struct {
	seed   maphash.Seed
	shards [shards]shadowShard
}

type shadowShard struct {
	mu      sync.Mutex
	tenants map[string]shadowed
	keys    int // keys of all tenants
}

func newShadows() *shadows {
	m := &shadows{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].tenants = map[string]shadowed{}
	}
	return m
}

// note counts a decision. It returns the number of requests for which there was no room: 0 or 1.
func (m *shadows) note(s *Shadow) (lost int64) {
	by, refusedBy := said{denies: 1}, s.RefusedBy
	switch {
	case !s.Denies:
		by = said{passes: 1}
	case s.Refused && refusedBy == "":
		refusedBy = Other
	}
	return m.add(s.Tenant, shadowKey{s.At.Unix() / 60, s.Rule, refusedBy}, by)
}

func (m *shadows) add(tenant string, k shadowKey, by said) (lost int64) {
	s := &m.shards[maphash.String(m.seed, tenant)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tenants[tenant]
	before, known := n[k]
	if !known {
		if n == nil && len(s.tenants) >= tenantsMax || len(n) >= shadowKeysOfTenant || s.keys >= keysMax {
			return by.total()
		}
		if n == nil {
			n = shadowed{}
			s.tenants[strings.Clone(tenant)] = n
		}
		k.rule, k.refusedBy = strings.Clone(k.rule), strings.Clone(k.refusedBy)
		s.keys++
	}
	n[k] = before.plus(by)
	return 0
}

// take removes and returns all counts.
func (m *shadows) take() map[string]shadowed {
	all := map[string]shadowed{}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		if len(s.tenants) > 0 {
			maps.Copy(all, s.tenants)
			s.tenants, s.keys = map[string]shadowed{}, 0
		}
		s.mu.Unlock()
	}
	return all
}

// restore puts back counts that take returned and that could not be stored. It returns the number of requests for
// which there was no room.
func (m *shadows) restore(tenants map[string]shadowed) (lost int64) {
	for tenant, n := range tenants {
		for k, by := range n {
			lost += m.add(tenant, k, by)
		}
	}
	return lost
}
