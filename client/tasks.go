package client

import (
	"context"
	"sync"
)

// tasks counts tasks that run in the background. In contrast to a sync.WaitGroup, a task may start while another
// goroutine waits.
type tasks struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when no task runs; nil: no goroutine waits for that
}

// start counts a new task. The caller must call the returned function when the task ends.
func (t *tasks) start() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running++
	return t.end
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait waits until no task runs or ctx ends.
func (t *tasks) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.running == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
