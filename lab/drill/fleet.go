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

	// startTimeout is the time limit for the start of an instance. It is long because PostgreSQL may be down at that
	// time.
	startTimeout = 5 * time.Minute

	// startPause is the time between two attempts to start an instance, as a supervisor would wait.
	startPause = 100 * time.Millisecond

	stopTimeout = 2 * time.Minute
)

// fleet contains the instances of the service, and restarts them as a supervisor would. One goroutine injects faults.
// Any goroutine may read the atomic fields of a slot.
type fleet struct {
	exe   string
	env   []string
	log   io.Writer
	slots []*slot
}

// slot contains one instance at a time. When that instance has ended, the slot contains its successor.
type slot struct {
	mu      sync.Mutex
	process *program.Process

	api      atomic.Pointer[string] // host:port of the newest instance, even if the instance is dead
	faults   atomic.Int64           // number of beginnings and ends of faults of this instance; odd during a fault
	expected atomic.Bool            // whether a fault ends the instance
	crashes  *atomic.Int64          // number of processes of all slots that ended without a fault
}

// startFleet starts n instances.
func startFleet(ctx context.Context, cfg *Config, databaseURL, redisURL string) (*fleet, error) {
	f := &fleet{exe: cfg.Exe, log: cfg.Log, env: []string{
		"QUOTASVC_DATABASE_URL=" + databaseURL, "QUOTASVC_REDIS_URL=" + redisURL, "QUOTASVC_ADMIN_KEY=" + adminKey,
		"QUOTASVC_LISTEN=127.0.0.1:0", "QUOTASVC_OPS_LISTEN=127.0.0.1:0", "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_LOG_FORMAT=text",
		fmt.Sprintf("QUOTASVC_REPLICAS=%d", cfg.Instances),
		"QUOTASVC_DRAIN_DELAY=500ms", // no load balancer reads /readyz here
		"QUOTASVC_VERIFY_EVERY=0s",   // the drill verifies; a full verification at each start would be most of the load
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

// start starts an instance in s. If the instance ends before it is ready, start tries again as a supervisor would,
// because PostgreSQL may be down.
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

// kill kills the instance of a slot and starts another instance after the time `away`.
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

// pause stops the process of an instance for the time d.
func (f *fleet) pause(ctx context.Context, i int, d time.Duration) error {
	s := f.slots[i]
	defer s.fault()()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := sleep(ctx, d)
	return errors.Join(err, s.process.Signal(syscall.SIGCONT))
}

// roll replaces all instances, one after another.
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

// fault notes the beginning of a fault of the slot's instance. The returned function notes its end.
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
