package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	// stopMax is the time within which SIGTERM must end an instance. It is several times the sum of
	// QUOTASVC_DRAIN_DELAY and QUOTASVC_STOP_TIMEOUT, because the machine is busy.
	stopMax = 30 * time.Second
)

// fleet contains the instances of the service, and restarts them as a supervisor would. One goroutine injects faults.
// Any goroutine may read the atomic fields of a slot.
type fleet struct {
	exe      string
	env      []string
	log      io.Writer
	slots    []*slot
	lives    []*life  // of all instances so far, by their number
	badStops []string // the instances that SIGTERM did not end in time with status 0
}

// slot contains one instance at a time. When that instance has ended, the slot contains its successor.
type slot struct {
	newest   atomic.Pointer[instance] // the newest instance, even if it is dead
	faults   atomic.Int64             // number of beginnings and ends of faults of this instance; odd during a fault
	expected atomic.Bool              // whether a fault ends the instance
	crashes  *atomic.Int64            // number of processes of all slots that ended without a fault
}

// instance is a process of the service. It does not change.
type instance struct {
	process  *program.Process
	number   int    // its index in fleet.lives
	api, ops string // host:port
	log      *logPipe
}

// life records when an instance began and ended, and its pauses. The goroutine that injects faults writes it.
type life struct {
	began, ended time.Time // ended is zero while it lives
	pauses       []span
}

// span is the time between two instants.
type span struct{ from, to time.Time }

// api returns the address of the newest instance in the slot.
func (s *slot) api() string { return s.newest.Load().api }

// startFleet starts n instances.
func startFleet(ctx context.Context, cfg *Config, databaseURL, redisURL string) (*fleet, error) {
	f := &fleet{exe: cfg.Exe, log: cfg.Log, env: []string{
		"QUOTASVC_DATABASE_URL=" + databaseURL, "QUOTASVC_REDIS_URL=" + redisURL, "QUOTASVC_ADMIN_KEY=" + adminKey,
		"QUOTASVC_LISTEN=127.0.0.1:0", "QUOTASVC_OPS_LISTEN=127.0.0.1:0", "QUOTASVC_LOG_LEVEL=info", "QUOTASVC_LOG_FORMAT=text",
		fmt.Sprintf("QUOTASVC_REPLICAS=%d", cfg.Instances),
		"QUOTASVC_DRAIN_DELAY=500ms",         // no load balancer reads /readyz here
		"QUOTASVC_TRUSTED_PROXIES=127.0.0.1", // so that each stranger has an address of its own
		"QUOTASVC_VERIFY_EVERY=0s",           // the drill verifies; a full verification at each start would be most of the load
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
		in, err := f.launch(ctx)
		if err != nil {
			if sleep(ctx, startPause) != nil {
				return fmt.Errorf("an instance did not start within %s: %w", startTimeout, err)
			}
			continue
		}
		s.expected.Store(false)
		s.newest.Store(in)
		go func() {
			<-in.process.Done()
			if !s.expected.Load() {
				s.crashes.Add(1)
			}
		}()
		return nil
	}
}

// launch starts a process and waits until it serves.
func (f *fleet) launch(ctx context.Context) (_ *instance, err error) {
	in := &instance{number: len(f.lives)}
	began := time.Now()
	log, output, err := newLogPipe(f.log)
	if err != nil {
		return nil, err
	}
	in.log = log
	in.process, err = program.Start(output, f.env, f.exe, "serve")
	if err = errors.Join(err, output.Close()); err != nil { // only the process writes
		return nil, err
	}
	if in.api, err = in.process.Address(ctx, "API http://"); err == nil {
		in.ops, err = in.process.Address(ctx, "ops http://")
	}
	if err != nil {
		return nil, errors.Join(err, in.process.Kill())
	}
	f.lives = append(f.lives, &life{began: began})
	return in, nil
}

// crashed returns the number of instances that ended without a fault.
func (f *fleet) crashed() int64 { return f.slots[0].crashes.Load() }

// kill kills the instance of a slot and starts another instance after the time `away`.
func (f *fleet) kill(ctx context.Context, i int, away time.Duration) error {
	s := f.slots[i]
	defer s.fault()()
	s.expected.Store(true)
	in := s.newest.Load()
	if err := in.process.Kill(); err != nil {
		return err
	}
	f.lives[in.number].ended = time.Now()
	if err := sleep(ctx, away); err != nil {
		return err
	}
	return f.start(ctx, s)
}

// pause stops the process of an instance for the time d.
func (f *fleet) pause(ctx context.Context, i int, d time.Duration) error {
	s := f.slots[i]
	defer s.fault()()
	in, began := s.newest.Load(), time.Now()
	if err := in.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := errors.Join(sleep(ctx, d), in.process.Signal(syscall.SIGCONT))
	l := f.lives[in.number]
	l.pauses = append(l.pauses, span{began, time.Now()})
	return err
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

// replace ends the instance of a slot with SIGTERM and starts another instance.
func (f *fleet) replace(ctx context.Context, s *slot) error {
	defer s.fault()()
	s.expected.Store(true)
	in, began := s.newest.Load(), time.Now()
	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := in.process.Stop(stopCtx)
	f.lives[in.number].ended = time.Now()
	if took := time.Since(began); err != nil || took > stopMax {
		f.badStops = append(f.badStops, fmt.Sprintf("an instance ended %s after SIGTERM: %v", took.Round(time.Millisecond), err))
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
		if in := s.newest.Load(); in != nil {
			s.expected.Store(true)
			errs = errors.Join(errs, in.process.Kill())
			<-in.log.done
		}
	}
	return errs
}
