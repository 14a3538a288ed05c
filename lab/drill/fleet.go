package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quotasvc/quotasvc/lab/program"
)

const (
	adminKey = "drill-0123456789abcdef0123456789abcdef"

	// startTimeout is the time limit for the start of an instance: PostgreSQL may be down when it starts.
	startTimeout = 5 * time.Minute

	// startPause is the time between two attempts to start an instance. A supervisor waits in the same way.
	startPause = 100 * time.Millisecond

	stopTimeout = 2 * time.Minute
)

// fleet contains the instances of the service and the supervisor that restarts them. One goroutine injects faults;
// any goroutine may read the atomic fields of a slot.
type fleet struct {
	exe   string
	env   []string
	log   io.Writer
	slots []*slot
}

// slot holds one instance at a time. When that instance has ended, the slot holds its successor.
type slot struct {
	mu      sync.Mutex
	process *program.Process

	api      atomic.Pointer[string] // host:port of the newest instance, even if the instance is dead
	faults   atomic.Int64           // grows at the beginning and the end of each fault of this instance
	expected atomic.Bool            // a fault is ending the instance
	crashes  *atomic.Int64          // how often a process ended although no fault had ended it
}

// startFleet starts n instances.
func startFleet(ctx context.Context, cfg *Config, databaseURL, redisURL string) (*fleet, error) {
	f := &fleet{exe: cfg.Exe, log: cfg.Log, env: []string{
		"QUOTASVC_DATABASE_URL=" + databaseURL, "QUOTASVC_REDIS_URL=" + redisURL, "QUOTASVC_ADMIN_KEY=" + adminKey,
		"QUOTASVC_LISTEN=127.0.0.1:0", "QUOTASVC_OPS_LISTEN=127.0.0.1:0", "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_LOG_FORMAT=text",
		fmt.Sprintf("QUOTASVC_REPLICAS=%d", cfg.Instances),
		"QUOTASVC_DRAIN_DELAY=500ms", // no load balancer reads /readyz here
		"QUOTASVC_VERIFY_EVERY=0s",   // the drill verifies; a full pass at each start would be most of the load
	}}
	crashes := new(atomic.Int64)
	for range cfg.Instances {
		f.slots = append(f.slots, &slot{crashes: crashes})
	}
	for _, s := range f.slots {
		if err := f.start(ctx, s); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// start starts an instance in s. Like a supervisor, it tries again when the instance ends: PostgreSQL may be down.
func (f *fleet) start(ctx context.Context, s *slot) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		process, err := program.Start(f.log, f.env, f.exe, "serve")
		if err != nil {
			return err
		}
		api, err := process.Address(ctx, "API http://")
		if err != nil {
			err = errors.Join(err, process.Kill())
			if sleep(ctx, startPause) != nil {
				return fmt.Errorf("an instance did not start within %s: %w", startTimeout, err)
			}
			continue
		}
		s.mu.Lock()
		s.process = process
		s.expected.Store(false)
		s.api.Store(&api)
		s.mu.Unlock()
		go func() {
			<-process.Done()
			if !s.expected.Load() {
				s.crashes.Add(1)
			}
		}()
		return nil
	}
}

// crashed returns the number of instances that ended without a fault.
func (f *fleet) crashed() int64 { return f.slots[0].crashes.Load() }

// kill kills the instance of a slot and starts another one after away.
func (f *fleet) kill(ctx context.Context, i int, away time.Duration) error {
	s := f.slots[i]
	defer s.fault()()
	s.expected.Store(true)
	if err := s.process.Kill(); err != nil {
		return err
	}
	if err := sleep(ctx, away); err != nil {
		return err
	}
	return f.start(ctx, s)
}

// pause stops all work of an instance for d.
func (f *fleet) pause(ctx context.Context, i int, d time.Duration) error {
	s := f.slots[i]
	defer s.fault()()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := sleep(ctx, d)
	return errors.Join(err, s.process.Signal(syscall.SIGCONT))
}

// roll replaces all instances in order, one after another.
func (f *fleet) roll(ctx context.Context) error {
	for _, s := range f.slots {
		if err := f.replace(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) replace(ctx context.Context, s *slot) error {
	defer s.fault()()
	s.expected.Store(true)
	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := s.process.Stop(stopCtx); err != nil {
		return fmt.Errorf("stop an instance: %w", err)
	}
	return f.start(ctx, s)
}

// fault marks the beginning of a fault. The returned function marks its end.
func (s *slot) fault() (end func()) {
	s.faults.Add(1)
	return func() { s.faults.Add(1) }
}

func (f *fleet) stop() error {
	var errs error
	for _, s := range f.slots {
		if s.process != nil {
			s.expected.Store(true)
			errs = errors.Join(errs, s.process.Kill())
		}
	}
	return errs
}
