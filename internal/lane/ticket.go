package lane

import (
	"sync/atomic"
	"time"
)

// state of a ticket. Each change is one compare-and-swap, so that the lane and the caller agree on who gave up first:
//
//	queued -> taken -> answered
//	queued -> abandoned
type state = uint32

const (
	queued    state = iota // waiting: the caller may abandon it, the lane may take it
	taken                  // in a batch: the caller waits for the answer
	answered               // answer or err are set, done is signalled
	abandoned              // the caller has gone: the lane drops it
)

// ticket is an item's place in the queue and the way its answer comes back.
//
// Tickets are recycled. A ticket belongs to exactly one side at a time: to the caller once it is answered, to the lane once
// it is abandoned; that side returns it to the pool.
type ticket[Q, A any] struct {
	state  atomic.Uint32
	done   chan struct{} // capacity 1, so that answering never blocks
	item   Q
	weight int
	since  time.Time   // when it was queued; set only if there are metrics
	timer  *time.Timer // of DoBy, kept for the next one; nil before the first
	answer A
	err    error
	shared bool // answered by Stop while the lane's goroutine still refers to it: never recycled
}

// give answers t, unless it was answered before.
func (t *ticket[Q, A]) give(answer A, err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.answer, t.err = answer, err
		t.done <- struct{}{}
	}
}

// disown answers a ticket that is in process, for Stop.
func (t *ticket[Q, A]) disown(err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.err, t.shared = err, true
		t.done <- struct{}{}
	}
}
