package waitlist

import (
	"slices"
	"sync"
)

// Config bounds a list. All values must be at least 1.
type Config struct {
	Most   int // maximum number of waiting places
	MostOf int // maximum number of waiting places of one tenant
	Batch  int // maximum number of places in a batch
	Share  int // maximum number of places of one tenant in a batch, as long as other tenants wait
}

// List holds values that wait.
type List[V any] struct {
	cfg Config

	mu      sync.Mutex
	waiting []*Place[V]    // in the order of Add
	of      map[string]int // number of waiting places by tenant
}

// Place is the position of a value in a list.
type Place[V any] struct {
	Value V

	list   *List[V]
	tenant string
	group  int
	left   bool // the place is in a batch or was removed; guarded by the list's mu
}

// New returns an empty list.
func New[V any](cfg Config) *List[V] { return &List[V]{cfg: cfg, of: map[string]int{}} }

// Add adds a value of a tenant and returns its place, or nil if there is no room. All values of a batch have the same
// group. crowded is true if there is no room, or if enough values for a whole batch wait.
func (l *List[V]) Add(v V, tenant string, group int) (p *Place[V], crowded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= l.cfg.Most || l.of[tenant] >= l.cfg.MostOf {
		return nil, true
	}
	p = &Place[V]{Value: v, list: l, tenant: tenant, group: group}
	l.waiting = append(l.waiting, p)
	l.of[tenant]++
	return p, len(l.waiting) >= l.cfg.Batch
}

// Len returns the number of waiting places.
func (l *List[V]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Take removes a batch from the list and returns it. The batch is empty if no value waits.
func (l *List[V]) Take() []*Place[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	batch := make([]*Place[V], 0, min(len(l.waiting), l.cfg.Batch))
	if len(l.waiting) > l.cfg.Batch {
		batch = l.pick(batch, l.cfg.Share)
	}
	batch = l.pick(batch, l.cfg.Batch)
	l.waiting = slices.DeleteFunc(l.waiting, func(p *Place[V]) bool { return p.left })
	return batch
}

// pick appends places of the oldest group to batch, the oldest first, until the batch is full. It appends at most
// `share` places of each tenant.
func (l *List[V]) pick(batch []*Place[V], share int) []*Place[V] {
	group, taken := l.waiting[0].group, map[string]int{}
	for _, p := range l.waiting {
		if len(batch) == l.cfg.Batch {
			break
		}
		if p.left || p.group != group || taken[p.tenant] == share {
			continue
		}
		taken[p.tenant]++
		batch = append(batch, p)
		l.leave(p)
	}
	return batch
}

// leave updates the counts when a place stops waiting.
func (l *List[V]) leave(p *Place[V]) {
	p.left = true
	if l.of[p.tenant]--; l.of[p.tenant] == 0 {
		delete(l.of, p.tenant)
	}
}

// Waits reports whether the place is not in a batch yet.
func (p *Place[V]) Waits() bool {
	p.list.mu.Lock()
	defer p.list.mu.Unlock()
	return !p.left
}

// Remove removes the place from the list. It returns false if the place does not wait any more.
func (p *Place[V]) Remove() bool {
	l := p.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return false
	}
	l.leave(p)
	at := slices.Index(l.waiting, p)
	l.waiting = slices.Delete(l.waiting, at, at+1)
	return true
}
