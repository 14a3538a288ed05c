package lane

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// state is the state of a ticket. Each change is one compare-and-swap, so the lane and the caller agree on the state:
//
//	queued -> taken -> answered
//	queued -> abandoned
type state = uint32

const (
	queued    state = iota // waiting: the caller may abandon the ticket, and the lane may take it
	taken                  // in a batch: the caller waits for the answer
	answered               // answer or err is set, done is signalled
	abandoned              // the caller gave up: the lane drops the ticket
)

// ticket is the position of an item in the queue and the channel for its answer.
//
// Tickets are recycled. The caller owns an answered ticket, and the lane owns an abandoned ticket. The owner returns
// the ticket to the pool.
type ticket[Q, A any] struct {
	state  atomic.Uint32
	done   chan struct{} // capacity 1, so that answering never blocks
	item   Q
	weight int
	asker  trace.Span  // span of the request; nil without tracing
	since  time.Time   // when the item was queued; set only with metrics
	timer  *time.Timer // timer of DoBy and DoWithin, kept for reuse; nil before their first call
	answer A
	err    error
	shared bool // Stop answered the ticket while the lane's goroutine still refers to it, so it is never recycled
}

// give answers t, unless Stop has answered it already.
func (t *ticket[Q, A]) give(answer A, err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.answer, t.err = answer, err
		t.done <- struct{}{}
	}
}

// disown answers a ticket of the current batch with err, for Stop. The ticket is not recycled.
func (t *ticket[Q, A]) disown(err error) {
	if t.state.CompareAndSwap(taken, answered) {
		t.err, t.shared = err, true
		t.done <- struct{}{}
	}
}
