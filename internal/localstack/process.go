package localstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// toolGrace is how long a finished tool's output may stay open (a grandchild
	// may hold the pipe) before we stop reading.
	toolGrace = 2 * time.Second

	// logTailBytes is how much of a server's log an error quotes: some twenty lines.
	logTailBytes = 2 << 10
)

// command is a program to start.
type command struct {
	path        string
	args        []string
	dir         string         // working directory; must be enterable by as
	as          runUser        // zero: the caller
	log         *os.File       // stdout and stderr; nil: discarded
	deathSignal syscall.Signal // sent by the kernel when this process dies (Linux)
}

// cmd translates c. The environment is rebuilt, not inherited: a stray PGDATA,
// PGPORT or LC_ALL of the caller must not change what the server does.
func (c command) cmd(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/"}
	for _, name := range []string{"TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok && c.as.zero() {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if c.log != nil {
		cmd.Stdout, cmd.Stderr = c.log, c.log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !c.as.zero() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.as.uid, Gid: c.as.gid}
	}
	setDeathSignal(cmd.SysProcAttr, c.deathSignal)
	return cmd
}

// runTool runs a short-lived program to its end and returns what it printed. An
// error quotes the output. When ctx ends first the program is killed.
func runTool(ctx context.Context, c command) (string, error) {
	// The parent-death signal is tied to the thread that forked: hold on to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.deathSignal = syscall.SIGKILL
	var out bytes.Buffer
	cmd := c.cmd(ctx)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = toolGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return out.String(), fmt.Errorf("run %s: %w%s", c.path, err, quote(out.String()))
	}
	return out.String(), nil
}

// process is a running child.
type process struct {
	pid  int
	done chan struct{} // closed once the child has exited and was reaped
	err  error         // how it exited; read after done
}

// startProcess starts a long-lived child. Its goroutine keeps the forking thread
// alive until the child has exited: the kernel sends the parent-death signal
// when that thread dies, and the Go runtime ends idle threads as it likes.
func startProcess(c command) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// The child's life is bounded by its owner's Stop, not by a context.
		cmd := c.cmd(context.Background())
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.path, err)
	}
	return p, nil
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends sig; a child that has exited already is no error.
func (p *process) signal(sig syscall.Signal) error {
	if p.exited() {
		return nil
	}
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to pid %d: %w", sig, p.pid, err)
	}
	return nil
}

// wait returns nil once the child has exited, or ctx's error.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends the child and its own children at once and waits for the reaping. The
// children go too: a PostgreSQL backend that is busy would otherwise outlive its
// postmaster, and the next start would find its shared memory still in use.
func (p *process) kill(ctx context.Context) error {
	if p.exited() {
		return nil
	}
	// Stopped first, so that it makes no new children while we list them.
	err := p.signal(syscall.SIGSTOP)
	children := childrenOf(p.pid)
	err = errors.Join(err, p.signal(syscall.SIGKILL))
	for _, pid := range children {
		if e := syscall.Kill(pid, syscall.SIGKILL); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("kill pid %d: %w", pid, e))
		}
	}
	if err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("wait for pid %d: %w", p.pid, err)
	}
	for _, pid := range children {
		if err := waitGone(ctx, pid); err != nil {
			return err
		}
	}
	return nil
}

// pause stops the child and its children without ending them: connections stay
// open and nobody answers. resume undoes it.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return signalAll(childrenOf(p.pid), syscall.SIGSTOP)
}

func (p *process) resume() error {
	return errors.Join(signalAll(childrenOf(p.pid), syscall.SIGCONT), p.signal(syscall.SIGCONT))
}

func signalAll(pids []int, sig syscall.Signal) error {
	var errs error
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = errors.Join(errs, fmt.Errorf("signal %v to pid %d: %w", sig, pid, err))
		}
	}
	return errs
}

// pollEvery is how often a condition nobody can notify us of is looked at again:
// well below the 50-100 ms that a server start takes.
const pollEvery = 10 * time.Millisecond

// waitGone waits until no process has this pid.
func waitGone(ctx context.Context, pid int) error {
	err := poll(ctx, func() bool { return !alive(pid) })
	if err != nil {
		return fmt.Errorf("wait for pid %d to exit: %w", pid, err)
	}
	return nil
}

// poll calls done until it says true or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// alive reports whether a process runs under this pid, be it another user's. A
// zombie does not count: in a container whose first process reaps nobody, an
// orphan that has exited stays one for good.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return (err == nil || errors.Is(err, syscall.EPERM)) && !zombie(pid)
}

// openLog opens a server's log for appending and tells its present length, so
// that an error can quote only what this start wrote. A log that has grown past
// maxLogBytes starts anew; the old one is kept as ".1".
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("rotate log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	return f, size, nil
}

// maxLogBytes keeps a forgotten `quotasvc dev` from filling the disk by its log.
const maxLogBytes = 16 << 20

// logTail returns the end of what was written to path after offset.
func logTail(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size()-logTailBytes > offset {
		offset = info.Size() - logTailBytes
	}
	text, err := io.ReadAll(io.NewSectionReader(f, offset, logTailBytes))
	if err != nil {
		return ""
	}
	return string(text)
}

// quote formats a program's output for the end of an error text.
func quote(output string) string {
	output = strings.TrimSpace(output)
	if output == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(output, "\n", "\n    ")
}
