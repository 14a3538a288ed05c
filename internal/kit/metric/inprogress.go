package metric

import (
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
// lasts for Overdue. So a request is counted as overdue when it is one to two times as old as Overdue.
type InProgress struct {
	all    atomic.Int64
	newest atomic.Pointer[Generation]

	mu     sync.Mutex  // is held while a generation begins
	before *Generation // the generation before newest
}

// Generation is the requests that began in the same span of time.
type Generation struct {
	of    *InProgress
	began time.Time
	open  atomic.Int64 // requests that have not ended
}

// NewInProgress creates the gauges NAME_in_flight_requests and NAME_overdue_requests. `requests` names the requests in
// the help of the gauges.
func NewInProgress(reg prometheus.Registerer, name, requests string) *InProgress {
	p := &InProgress{}
	p.newest.Store(&Generation{of: p})
	p.before = p.newest.Load()
	GaugeFunc(reg, name+"_in_flight_requests", requests+" in progress.",
		func() float64 { return float64(p.all.Load()) })
	GaugeFunc(reg, name+"_overdue_requests", requests+" in progress for over a minute, longer than any may take.",
		func() float64 { return float64(p.overdue(time.Now())) })
	return p
}

// Begin counts a request that begins now. The caller must call End of the result when the request ends.
func (p *InProgress) Begin(now time.Time) *Generation {
	g := p.newest.Load()
	if now.Sub(g.began) >= Overdue {
		g = p.next(now)
	}
	p.all.Add(1)
	g.open.Add(1)
	return g
}

// End counts the end of a request.
func (g *Generation) End() {
	g.open.Add(-1)
	g.of.all.Add(-1)
}

// next begins a generation unless the newest one has not ended.
func (p *InProgress) next(now time.Time) *Generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.newest.Load()
	age := now.Sub(g.began)
	if age < Overdue {
		return g
	}
	began := &Generation{of: p, began: now}
	if p.before = g; age >= 2*Overdue { // no request began in the last span: all requests of g are overdue
		p.before = &Generation{of: p}
	}
	p.newest.Store(began)
	return began
}

// overdue returns the number of requests that began before the newest two generations.
func (p *InProgress) overdue(now time.Time) int64 {
	p.next(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.all.Load()-p.newest.Load().open.Load()-p.before.open.Load(), 0)
}
