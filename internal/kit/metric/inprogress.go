package metric

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Overdue is the age from which a request counts as overdue. It is longer than any request may take, with a client
// that sends and reads as slowly as it may.
const Overdue = time.Minute

// InProgress counts requests in progress, and those of them that do not end. Create it with NewInProgress.
//
// It does not know the age of each request. Requests belong to the generation in which they began, and a generation
// lasts for Overdue. All its requests are overdue once its last one must be. So a request is counted as overdue when it
// is one to two times as old as Overdue.
type InProgress struct {
	newest atomic.Pointer[Generation]

	mu  sync.Mutex
	all []*Generation // those that are overdue, only if they had requests when the newest one began
}

// Generation is the requests that began in the same span of time.
type Generation struct {
	began time.Time
	open  atomic.Int64 // requests that have not ended
}

// NewInProgress creates the gauges NAME_in_flight_requests and NAME_overdue_requests. `requests` names the requests in
// the help of the gauges.
func NewInProgress(reg prometheus.Registerer, name, requests string) *InProgress {
	p := &InProgress{}
	p.newest.Store(&Generation{}) // has ended long ago, so no request belongs to it
	GaugeFunc(reg, name+"_in_flight_requests", requests+" in progress.",
		func() float64 { all, _ := p.count(time.Now()); return float64(all) })
	GaugeFunc(reg, name+"_overdue_requests", requests+" in progress for over a minute, longer than any may take.",
		func() float64 { _, overdue := p.count(time.Now()); return float64(overdue) })
	return p
}

// Begin counts a request that begins now. The caller must call End of the result when the request ends.
func (p *InProgress) Begin(now time.Time) *Generation {
	g := p.newest.Load()
	if now.Sub(g.began) >= Overdue {
		g = p.next(now)
	}
	g.open.Add(1)
	return g
}

// End counts the end of a request.
func (g *Generation) End() { g.open.Add(-1) }

// overdue reports whether all requests of g are overdue.
func (g *Generation) overdue(now time.Time) bool { return now.Sub(g.began) >= 2*Overdue }

// next returns the newest generation, after it has begun one if the newest one has ended.
func (p *InProgress) next(now time.Time) *Generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.newest.Load(); now.Sub(g.began) < Overdue {
		return g
	}
	g := &Generation{began: now}
	p.newest.Store(g)
	p.all = slices.DeleteFunc(p.all, func(g *Generation) bool { return g.overdue(now) && g.open.Load() == 0 })
	p.all = append(p.all, g)
	return g
}

// count returns the number of requests in progress, and how many of them are overdue.
func (p *InProgress) count(now time.Time) (all, overdue int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.all {
		open := g.open.Load()
		if all += open; g.overdue(now) {
			overdue += open
		}
	}
	return all, overdue
}
