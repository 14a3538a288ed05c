package pg

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// jobsMax bounds the rolls that one process runs at once. More of them would slow live requests down.
const jobsMax = 4

// jobs owns the rolls that run in the background of this process.
type jobs struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running int
	closed  bool
}

func newJobs(log *slog.Logger) *jobs {
	ctx, cancel := context.WithCancel(context.Background())
	return &jobs{log: log, ctx: ctx, cancel: cancel}
}

// start runs what prepare returns in the background, unless there are jobsMax jobs already or the ledger is stopping. prepare may ask the
// database: the job has its place meanwhile, and nobody waits for the mutex.
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

// reserve takes one of the places for jobs. stop waits for who has one.
func (j *jobs) reserve() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return unavailable("start a job", errStopping)
	case j.running == jobsMax:
		return ledger.Errorf(ledger.CodeQueueFull, "", "%d rolls are running on this instance; wait for one to end", jobsMax)
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

// stop ends the jobs after their present chunk, and waits for them.
func (j *jobs) stop(ctx context.Context) error {
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
		return fmt.Errorf("ledger: stop jobs: %w", ctx.Err())
	}
}
