package localstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// defaultStartTimeout leaves room for crash recovery of a dev database on a
	// slow disk; a clean start takes well under a second.
	defaultStartTimeout = 2 * time.Minute

	// defaultStopTimeout bounds an orderly stop whose context has no deadline: the
	// final checkpoint of a busy dev database takes seconds.
	defaultStopTimeout = 30 * time.Second

	// killTimeout bounds the wait for the kernel after SIGKILL.
	killTimeout = 10 * time.Second

	// orphanGrace is how long a server left over from a dead owner, which the kernel
	// has told to stop, gets before it is told again.
	orphanGrace = 3 * time.Second

	// startTries bounds how often a start is repeated because another process took
	// the free port between the check and the server's bind.
	startTries = 8
)

// server is what PostgreSQL and Redis have in common: one directory, one port, one
// child, and the changes between running and not.
type server struct {
	name       string // in messages
	dir        string // where it really lies
	port       int    // 0 until the first start has chosen one; then fixed
	stopSignal syscall.Signal
	startProc  func(context.Context) error // sets proc and returns once it is ready
	afterKill  func()                      // tidies up what only an orderly stop would
	log        *slog.Logger

	mu   sync.Mutex // one change of state at a time
	lock *dirLock   // held from Start to Stop or Kill
	proc *process   // nil before the first start
}

// Dir is where the data lies: the configured directory or its stand-in.
func (s *server) Dir() string { return s.dir }

// Port is the TCP port on 127.0.0.1.
func (s *server) Port() int { return s.port }

// Start starts the stopped or killed server on the same port and data; a running
// one is left alone. A context without a deadline gets two minutes. A failed
// start leaves no process behind.
func (s *server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	ctx, cancel := withDefaultTimeout(ctx, defaultStartTimeout)
	defer cancel()
	if err := s.unlock(); err != nil { // still held if the server died on its own
		return err
	}
	lock, err := lockDir(s.dir)
	if err != nil {
		return err
	}
	s.lock = lock
	if err := s.startProc(ctx); err != nil {
		return errors.Join(err, s.kill(), s.unlock())
	}
	return nil
}

// Stop stops the server in order: PostgreSQL rolls open transactions back, Redis
// saves. If it has not stopped when ctx ends (30 s by default) it is killed, and
// the error says so. Stopping a stopped server does nothing.
func (s *server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return s.unlock()
	}
	ctx, cancel := withDefaultTimeout(ctx, defaultStopTimeout)
	defer cancel()
	// A paused server could not hear the request.
	err := errors.Join(s.proc.resume(), s.proc.signal(s.stopSignal))
	if err == nil {
		err = s.proc.wait(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("stop %s: %w, killed it instead", s.name, err), s.kill(), s.unlock())
	}
	s.log.Info("server has stopped", "server", s.name, "port", s.port)
	return s.unlock()
}

// Kill ends the server and its children at once by SIGKILL, as a crash would.
func (s *server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.kill(), s.unlock())
}

// Restart is Stop and Start.
func (s *server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Pause freezes the server: connections stay open, new ones are accepted by the
// kernel, nothing is answered. Resume goes on where it was.
func (s *server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("pause %s: it is not running", s.name)
	}
	return s.proc.pause()
}

// Resume ends a Pause.
func (s *server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("resume %s: it is not running", s.name)
	}
	return s.proc.resume()
}

// Exited is closed when the server that runs now has ended, for whatever reason.
func (s *server) Exited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.done
}

// onPort calls launch with a free port in s.port. A port once chosen stays; before
// that, losing the race for one only means trying another.
func (s *server) onPort(setting string, launch func() error) error {
	if s.port != 0 {
		if _, err := choosePort(s.port, s.name, setting); err != nil {
			return err
		}
		return launch()
	}
	for try := 1; ; try++ {
		port, err := choosePort(0, s.name, setting)
		if err != nil {
			return err
		}
		s.port = port
		err = launch()
		if err == nil {
			return nil
		}
		s.port = 0
		if try == startTries || s.running() || !lostPort(port, err) {
			return err
		}
	}
}

// keep sets a password that is not known yet, or is another one now. A restart mostly finds what it is, and others read it meanwhile.
func keep(password *string, found string) {
	if *password != found {
		*password = found
	}
}

// lostPort reports whether a server did not start because another program was given its port in the meantime, or one that it
// needs beside it. Who took it may be gone again; the server's log, which is part of err, remembers.
func lostPort(port int, err error) bool {
	return errors.Is(tryPort(port), syscall.EADDRINUSE) || strings.Contains(err.Error(), "Address already in use")
}

func (s *server) running() bool { return s.proc != nil && !s.proc.exited() }

func (s *server) kill() error {
	if !s.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := s.proc.kill(ctx); err != nil {
		return err
	}
	s.afterKill()
	return nil
}

func (s *server) unlock() error {
	if s.lock == nil {
		return nil
	}
	lock := s.lock
	s.lock = nil
	return lock.release()
}

// withDefaultTimeout bounds ctx by d unless it has a deadline already.
func withDefaultTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
