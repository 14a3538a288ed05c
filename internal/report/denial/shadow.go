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

// shadowKeysOfTenant is the largest number of a tenant's shadow counts between two flushes: only a few limits in
// shadow mode apply to a tenant. The numbers of tenants and of counts in a shard are bounded by tenantsMax and
// keysMax, as for denials. All shards take about 15 MB.
const shadowKeysOfTenant = 400

// Shadow is the decision of a limit in shadow mode about a request that was granted or refused. It is not a denial.
type Shadow struct {
	At     time.Time // time of the ledger's clock; zero: now
	Tenant string
	Rule   string // the limit in shadow mode

	Refused   bool   // whether the request was refused
	RefusedBy string // the limit that refused the request; empty: another reason, or the request was granted
	Denies    bool   // whether this limit would have denied the request
}

// shadowKey identifies a count of a tenant.
type shadowKey struct {
	minute          int64  // Unix time in minutes
	rule, refusedBy string // refusedBy: a limit; empty: the request was granted; Other: refused by no limit
}

// said is the number of requests that a limit would have denied, and the number that it would have let pass.
type said struct{ denies, passes int64 }

func (s said) plus(more said) said { return said{s.denies + more.denies, s.passes + more.passes} }
func (s said) total() int64        { return s.denies + s.passes }

// shadowed contains the shadow counts of one tenant.
type shadowed map[shadowKey]said

func (n shadowed) total() (all int64) {
	for _, by := range n {
		all += by.total()
	}
	return all
}

// sortedKeys returns the keys in the order in which all instances write their rows, to prevent deadlocks.
func (n shadowed) sortedKeys() []shadowKey {
	return slices.SortedFunc(maps.Keys(n), func(a, b shadowKey) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), cmp.Compare(a.minute, b.minute), strings.Compare(a.refusedBy, b.refusedBy))
	})
}

// shadows contains the counts of limits in shadow mode since the last flush. Its memory is separate, so a flood of
// shadows takes no room from denials.
type shadows struct {
	seed   maphash.Seed
	shards [shards]shadowShard
}

type shadowShard struct {
	mu      sync.Mutex
	tenants map[string]shadowed
	keys    int // number of counts of all tenants
}

func newShadows() *shadows {
	m := &shadows{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].tenants = map[string]shadowed{}
	}
	return m
}

// note counts a decision. It returns the number of requests for which there was no room, which is 0 or 1.
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

// take removes and returns all counts since the last flush.
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

// restore adds counts to the memory again after the database did not store them. take had removed these counts. It
// returns the number of requests for which there was no room.
func (m *shadows) restore(tenants map[string]shadowed) (lost int64) {
	for tenant, n := range tenants {
		for k, by := range n {
			lost += m.add(tenant, k, by)
		}
	}
	return lost
}
