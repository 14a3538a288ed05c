package httpapi

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends with its parent or at a time, as context.WithDeadline's does. That one starts a timer and
// signs up with its parent at once, which is a twentieth of a check's cost; this one does so when somebody first asks for Done, and
// a request that is answered from memory and Redis never does. The parent must have no earlier deadline.
type deadline struct {
	context.Context // the parent

	at time.Time

	mu     sync.Mutex
	timed  context.Context // with a timer; nil until somebody waits
	cancel context.CancelFunc
	ended  bool
}

// newDeadline is a context that ends at a time. Its end must be called.
func newDeadline(parent context.Context, at time.Time) *deadline {
	return &deadline{Context: parent, at: at}
}

// end cancels the context.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil {
		d.cancel()
	}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.start().Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil && !d.ended && d.Context.Err() == nil && time.Until(d.at) > 0 {
		return nil
	}
	return d.start().Err() // which does not change any more
}

// start makes the context with the timer. It needs mu.
func (d *deadline) start() context.Context {
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.ended {
			d.cancel()
		}
	}
	return d.timed
}

// Value implements context.Context. Package context asks a parent whose Done it has seen for the context behind it, so that
// children need no goroutine.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	timed := d.timed
	d.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return d.Context.Value(key)
}
