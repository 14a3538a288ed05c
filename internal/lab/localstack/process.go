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
	// toolGrace is the time limit for reading the rest of a tool's output after the tool has ended. A child of the
	// tool may keep the pipe open for longer.
	toolGrace = 2 * time.Second

	// logTailBytes is the number of bytes of a log that an error contains: the last twenty lines, approximately.
	logTailBytes = 2 << 10
)

// command is a program to start.
type command struct {
	path        string
	args        []string
	dir         string         // working directory; the user in the field as must be able to enter it
	as          runUser        // user that runs the program; zero: the caller
	env         []string       // further environment variables
	log         *os.File       // stdout and stderr; nil: discarded
	deathSignal syscall.Signal // sent by the kernel when this process dies (Linux)
}

// cmd returns c as an exec.Cmd. The program does not inherit the environment, because PGDATA, PGPORT or LC_ALL of the
// caller must not change the server.
func (c command) cmd(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/"}
	for _, name := range []string{"TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok && c.as.zero() {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, c.env...)
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

// runTool runs a short program and returns its output. An error contains the output. If ctx ends first, runTool kills
// the program.
func runTool(ctx context.Context, c command) (string, error) {
	// The kernel sends the parent-death signal when the forking thread ends, so the thread must not end before the
	// tool.
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
	done chan struct{} // closed when the child has exited and was reaped
	err  error         // the result of the child; valid after done is closed
}

// startProcess starts a long-lived child. The goroutine of startProcess keeps the thread that forked the child alive
// until the child exits. Otherwise the Go runtime may end an idle thread, and the kernel sends the parent-death
// signal when that thread ends.
func startProcess(c command) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// The end of a context must not end the child. Stop ends the child.
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

// signal sends sig. It returns nil if the child has already exited.
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

// kill ends the child and the child's own children at once, and waits until they are reaped. If kill did not end the
// children, a busy PostgreSQL backend would continue after its postmaster. The next start would find the shared memory
// in use.
func (p *process) kill(ctx context.Context) error {
	if p.exited() {
		return nil
	}
	// A stopped process cannot create further children while its children are listed.
	err := p.signal(syscall.SIGSTOP)
	children := childrenOf(p.pid)
	if err := errors.Join(err, p.signal(syscall.SIGKILL), signalAll(children, syscall.SIGKILL)); err != nil {
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

// pause stops the child and its children without ending them. Their connections stay open, but get no answers. resume
// lets the processes continue.
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

// pollEvery is the interval for polling a condition. It is well below the 50-100 ms that the start of a server takes.
const pollEvery = 10 * time.Millisecond

// waitGone waits until no process has this pid.
func waitGone(ctx context.Context, pid int) error {
	err := poll(ctx, func() bool { return !alive(pid) })
	if err != nil {
		return fmt.Errorf("wait for pid %d to exit: %w", pid, err)
	}
	return nil
}

// poll calls done until it returns true or ctx ends.
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

// alive reports whether a process has this pid, even if the process belongs to another user. A zombie does not count:
// in some containers no process reaps orphans, so an orphan that has exited stays a zombie for ever.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return (err == nil || errors.Is(err, syscall.EPERM)) && !zombie(pid)
}

// openLog opens a server's log for appending and returns its length, so that an error can contain only the lines of
// this start. If the log is longer than maxLogBytes, openLog renames it to ".1" and begins a new log.
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

// maxLogBytes is the largest length of a log to which a start appends. A start replaces a longer log, so that logs of
// `quotasvc dev` do not fill the disk.
const maxLogBytes = 16 << 20

// logTail returns the last logTailBytes of the file at path, without the text before offset.
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
