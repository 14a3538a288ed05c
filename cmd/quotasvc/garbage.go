package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heapGoal is the size of a small heap at which a collection starts. With stacks, code and buffers, the process
	// then stays below 150 MB. By default the runtime starts a collection at twice the live heap. A small heap is then
	// collected many times per second under load. With 10,000 tenants, the collections take 26 µs of CPU time per
	// request by default, and 5 µs with heapGoal. docs/decisions/memory.md compares this with fixed settings.
	heapGoal = 80 << 20

	// percentMin and percentMax bound the collector's percentage for a small heap. With percentMin, the process stays
	// below 150 MB with 200,000 tenants in use. The collector then needs about 2 µs more per request than with the
	// runtime's default (docs/decisions/memory.md).
	percentMin, percentMax = 75, 1000

	// percentDefault is the runtime's default percentage. A heap with heapGoal or more live bytes uses it.
	percentDefault = 100
)

// collector sets the garbage collector's percentage after each collection, so that the next collection starts at
// heapGoal.
type collector struct {
	mu      sync.Mutex
	stopped bool
	percent int
}

// tuneCollector starts a collector. It returns a function that stops the collector and restores the runtime's
// default. If GOGC or GOMEMLIMIT is set, it changes nothing.
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

// await makes the runtime call adjust after the next collection: the collection finds an unreachable object and runs
// the object's cleanup.
func (c *collector) await() {
	type canary struct{ _ [16]byte } // the allocator would combine smaller objects in one block
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

// percentFor returns the percentage with which the next collection starts at heapGoal if `live` bytes are in use. For a
// small heap it is a multiple of 25, so that it rarely changes: each change stops all goroutines for a moment.
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
