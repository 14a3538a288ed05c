package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff has a pause that doubles after each wait. It is for one goroutine.
type Backoff struct{ first, last, next time.Duration }

// New returns a Backoff whose pause doubles from first to last.
func New(first, last time.Duration) *Backoff { return &Backoff{first, last, first} }

// Reset sets the pause to the first pause again.
func (b *Backoff) Reset() { b.next = b.first }

// Wait waits for a random duration between half of the next pause and the whole pause. It returns false if ctx ends
// first.
func (b *Backoff) Wait(ctx context.Context) bool {
	pause := b.next/2 + rand.N(b.next/2)
	b.next = min(2*b.next, b.last)
	return Sleep(ctx, pause)
}

// Every calls the function `do` after each interval, with the instant at which the interval ended, until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func(at time.Time)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-tick.C:
			do(at)
		}
	}
}

// Sleep waits for d and returns true. It returns false if ctx ends first or has ended already.
func Sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
