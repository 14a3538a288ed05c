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
	// defaultStartTimeout is the time limit of a start whose context has no deadline. The crash recovery of a dev
	// database on a slow disk may take long; a start after an orderly stop takes well under a second.
	defaultStartTimeout = 2 * time.Minute

	// defaultStopTimeout is the time limit of an orderly stop whose context has no
	// deadline. The final checkpoint of a busy dev database takes seconds.
	defaultStopTimeout = 30 * time.Second

	// killTimeout is the time limit for the end of a process after it got SIGKILL. A process ends only after its
	// current fsync, which takes over 10 s on a disk that other programs use a lot.
	killTimeout = 2 * time.Minute

	// orphanGrace is the time that the server of a dead owner gets to stop after the
	// kernel's signal, before it gets a second signal.
	orphanGrace = 3 * time.Second

	// startTries is the number of attempts to start a server. Between the check of a free port and the server's bind,
	// another process may take the port.
	startTries = 8
)

// Server is the common part of PostgreSQL and Redis. It has one directory, one port and one child process, and starts
// and stops the process.
type Server struct {
	name       string // name of the server in messages
	dir        string // the real directory: the configured one or its stand-in
	port       int    // 0 until the first start chooses one; then fixed
	stopSignal syscall.Signal
	startProc  func(context.Context) error // sets proc and returns when the server is ready
	afterKill  func()                      // releases the resources that an orderly stop would release
	log        *slog.Logger

	mu   sync.Mutex // held during each start, stop, kill, pause and resume
	lock *dirLock   // held from Start to Stop or Kill
	proc *process   // nil before the first start
}

// Dir returns the data's directory: the configured one or its stand-in.
func (s *Server) Dir() string { return s.dir }

// Port returns the TCP port on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Start starts the stopped or killed server with the same port and data. If the server runs, Start does nothing. If
// ctx has no deadline, the time limit is two minutes. A failed start leaves no process behind.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return nil
	}
	ctx, cancel := withDefaultTimeout(ctx, defaultStartTimeout)
	defer cancel()
	if err := s.unlock(); err != nil { // the lock is still held if the server ended without Stop
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

// Stop stops the server in order: PostgreSQL rolls back open transactions, and Redis saves its data. If the server
// still runs when ctx ends (30 s by default), Stop kills it and returns an error. Stop does nothing if the server is
// stopped already.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return s.unlock()
	}
	ctx, cancel := withDefaultTimeout(ctx, defaultStopTimeout)
	defer cancel()
	// A paused server does not handle signals.
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
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.kill(), s.unlock())
}

// Restart stops and starts the server.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Pause stops the server's processes without ending them. Connections stay open, and the kernel accepts new
// connections, but the server answers nothing until Resume.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("pause %s: it is not running", s.name)
	}
	return s.proc.pause()
}

// Resume ends a Pause.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("resume %s: it is not running", s.name)
	}
	return s.proc.resume()
}

// Exited returns a channel that is closed when the running server ends for any reason.
func (s *Server) Exited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.done
}

// onPort calls launch after it has set s.port to a free port. If another process takes the port before the server,
// onPort tries another port. A server keeps its port after the first start.
func (s *Server) onPort(setting string, launch func() error) error {
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

// setIfChanged sets a password only if it differs. A restart reads the same password again, and writing it again
// would race with readers.
func setIfChanged(password *string, found string) {
	if *password != found {
		*password = found
	}
}

// lostPort reports whether a server did not start because another program has taken its port, or a second port that
// it needs. That program may have ended since. So lostPort also searches err, which contains the end of the server's
// log.
func lostPort(port int, err error) bool {
	return errors.Is(tryPort(port), syscall.EADDRINUSE) || strings.Contains(err.Error(), "Address already in use")
}

func (s *Server) running() bool { return s.proc != nil && !s.proc.exited() }

func (s *Server) kill() error {
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

func (s *Server) unlock() error {
	if s.lock == nil {
		return nil
	}
	lock := s.lock
	s.lock = nil
	return lock.release()
}

// withDefaultTimeout adds a deadline to ctx unless it has one.
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
