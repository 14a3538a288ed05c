package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Why a job was not started.
var (
	ErrFull     = errors.New("jobs: as many as there may be are running")
	ErrStopping = errors.New("jobs: the process is stopping")
)

// Jobs owns the jobs of a process. All methods are safe for concurrent use.
type Jobs struct {
	most   int
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running int
	closed  bool
}

// New returns an owner of at most most jobs at once.
func New(most int, log *slog.Logger) *Jobs {
	ctx, cancel := context.WithCancel(context.Background())
	return &Jobs{most: most, log: log, ctx: ctx, cancel: cancel}
}

// Start runs what prepare returns in the background. It fails with ErrFull, ErrStopping, or as prepare does. prepare may ask the
// database: the job has its place meanwhile, and nobody waits for the mutex. A job that panics ends alone.
func (j *Jobs) Start(prepare func() (func(context.Context), error)) error {
	if err := j.reserve(); err != nil {
		return err
	}
	run, err := prepare()
	if err != nil {
		j.ended()
		j.wg.Done()
		return err
	}
	go func() {
		defer j.wg.Done()
		defer j.ended()
		defer func() {
			if p := recover(); p != nil {
				j.log.Error("a job has panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		run(j.ctx)
	}()
	return nil
}

// reserve takes one of the places for jobs. Stop waits for who has one.
func (j *Jobs) reserve() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return ErrStopping
	case j.running == j.most:
		return ErrFull
	}
	j.running++
	j.wg.Add(1)
	return nil
}

func (j *Jobs) ended() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
}

// Stop cancels the context of the jobs and waits for them until ctx ends.
func (j *Jobs) Stop(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.cancel()
	done := make(chan struct{})
	go func() { j.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop jobs: %w", ctx.Err())
	}
}
