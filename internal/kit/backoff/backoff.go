package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a pause that doubles. It is for one goroutine.
type Backoff struct{ first, last, next time.Duration }

// New returns a pause that doubles from first to last.
func New(first, last time.Duration) *Backoff { return &Backoff{first, last, first} }

// Reset begins with the first pause again.
func (b *Backoff) Reset() { b.next = b.first }

// Wait waits for a random duration between half of the next pause and all of it. It returns false if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) bool {
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next = min(2*b.next, b.last)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
