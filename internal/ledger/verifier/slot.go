package verifier

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// slot holds the one verification that runs in the background of this instance.
type slot struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running *Verification // as it was at its start; nil: none
	closed  bool
}

func newSlot() *slot {
	ctx, cancel := context.WithCancel(context.Background())
	return &slot{ctx: ctx, cancel: cancel}
}

// take reserves the slot for v. If a verification of the same tenant runs, take returns that verification. take does no
// I/O, so other calls do not wait for long.
func (s *slot) take(v *Verification) (running *Verification, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, unavailable("start a verification", errors.New("the verifier is stopping"))
	case s.running == nil:
		s.running = v
		s.wg.Add(1)
		return nil, nil
	case s.running.Tenant != v.Tenant:
		return nil, errcode.Errorf(errcode.QueueFull, "", "verification %s is running on this instance, with other settings; wait for it to end", s.running.ID)
	case s.running.StartedAt.IsZero(): // the row of the running verification is being written
		return nil, errcode.Errorf(errcode.QueueFull, "", "the same verification is being started on this instance; ask again for its id")
	}
	copied := *s.running
	return &copied, nil
}

// begun records that the row of v, which holds the slot, was written.
func (s *slot) begun(v Verification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = &v
}

// leave lets the next verification begin. The verification with this id has its result, but may still be saving it.
func (s *slot) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil && s.running.ID == id {
		s.running = nil
	}
}

// free releases the slot.
func (s *slot) free(id string) {
	s.leave(id)
	s.wg.Done()
}

// run runs, in the background, the verification that holds the slot. A panic ends only this verification, and is passed
// to failed.
func (s *slot) run(id string, do func(context.Context), failed func(error)) {
	go func() {
		defer s.free(id)
		defer func() {
			if p := recover(); p != nil {
				failed(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		do(s.ctx)
	}()
}

// stop ends the verification after its present chunk, and waits until it has ended.
func (s *slot) stop(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("verifier: stop: %w", ctx.Err())
	}
}
