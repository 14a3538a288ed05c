package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heapGoal is how large the heap may grow between two collections while little of it is alive. With stacks, code and
	// buffers the process then stays well below 150 MB. The runtime's own rule, twice what is alive, would collect a small
	// heap many times per second under load: a sixth of a request's CPU time.
	heapGoal = 80 << 20

	// The bounds of the percentage: at least the runtime's default, so that a large heap is collected as ever.
	percentMin, percentMax = 100, 400
)

// collector keeps the garbage collector's percentage such that heapGoal is used. Whoever sets GOGC or GOMEMLIMIT knows better.
type collector struct {
	mu      sync.Mutex
	stopped bool
	percent int
}

// tuneCollector begins after each collection; stop ends it.
func tuneCollector() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	c := &collector{percent: percentMin}
	c.await()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		debug.SetGCPercent(percentMin)
	}
}

// await runs adjust after the next collection: that is when an object nobody holds is found.
func (c *collector) await() {
	type canary struct{ _ [16]byte } // large enough not to share its block with anything
	runtime.AddCleanup(new(canary), func(c *collector) { c.adjust() }, c)
}

func (c *collector) adjust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := percentFor(live[0].Value.Uint64()); percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
	c.await()
}

// percentFor is the percentage at which live bytes grow to heapGoal, in steps of 25: setting it stops the world for a moment.
func percentFor(live uint64) int {
	if live == 0 {
		return percentMax
	}
	if live >= heapGoal {
		return percentMin
	}
	percent := int((heapGoal-live)*100/live) / 25 * 25
	return min(max(percent, percentMin), percentMax)
}
