package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// errJobsFull is the error of a job that was not started because the maximum number of jobs is running.
var errJobsFull = errors.New("ledger: the maximum number of jobs is running")

// jobs owns the rolls that a process runs in the background. All methods are safe for concurrent use.
type jobs struct {
	most   int
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running int
	closed  bool
}

// newJobs returns an owner of jobs that runs at most `most` jobs at once.
func newJobs(most int, log *slog.Logger) *jobs {
	ctx, cancel := context.WithCancel(context.Background())
	return &jobs{most: most, log: log, ctx: ctx, cancel: cancel}
}

// start calls prepare, which returns a function, and runs this function in the background. It fails with errJobsFull,
// errStopping or the error of prepare. prepare may query the database: the job already has its slot, and the mutex is
// not locked. A job that panics ends no other job.
func (j *jobs) start(prepare func() (func(context.Context), error)) error {
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

// reserve takes one of the slots for jobs. stop waits for the jobs that have a slot.
func (j *jobs) reserve() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return errStopping
	case j.running == j.most:
		return errJobsFull
	}
	j.running++
	j.wg.Add(1)
	return nil
}

func (j *jobs) ended() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
}

// stop cancels the context of the jobs and waits for them until ctx ends.
func (j *jobs) stop(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.cancel()
	done := make(chan struct{})
	go func() {
		j.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop jobs: %w", ctx.Err())
	}
}
