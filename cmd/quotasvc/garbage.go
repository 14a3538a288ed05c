package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heapGoal is the size of a small heap at the start of a collection. With stacks, code and buffers the process
	// then stays below 150 MB. The runtime's default, twice the live heap, collects a small heap many times per
	// second under load: with 10,000 tenants it takes 26 µs of CPU per request, and this setting takes 5 µs
	// (docs/benchmarks.md, which also compares fixed settings).
	heapGoal = 80 << 20

	// The bounds of the percentage of a small heap. With percentMin the process stays below 150 MB with 200,000
	// tenants in use. Then the collector needs about 2 µs more for a request than with the runtime's default
	// (docs/decisions/memory.md).
	percentMin, percentMax = 75, 1000

	// percentDefault is the runtime's default. It is used for a large heap.
	percentDefault = 100
)

// collector adapts the garbage collector's percentage to heapGoal after each collection.
type collector struct {
	mu      sync.Mutex
	stopped bool
	percent int
}

// tuneCollector starts a collector and returns a function that stops it and restores the default. It does nothing if
// GOGC or GOMEMLIMIT is set.
func tuneCollector() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	c := &collector{percent: percentDefault}
	c.await()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		debug.SetGCPercent(percentDefault)
	}
}

// await runs adjust after the next collection, which runs the cleanup of an unreachable object.
func (c *collector) await() {
	type canary struct{ _ [16]byte } // the allocator combines smaller objects in one block
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

// percentFor returns the percentage at which the heap grows from live bytes to heapGoal. It is a multiple of 25,
// because each change stops the world for a moment.
func percentFor(live uint64) int {
	if live == 0 {
		return percentMax
	}
	if live >= heapGoal {
		return percentDefault
	}
	percent := int((heapGoal-live)*100/live) / 25 * 25
	return min(max(percent, percentMin), percentMax)
}
