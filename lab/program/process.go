package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// linesMax is the maximum number of lines that are kept for Address. Further lines are dropped. No caller needs more.
const linesMax = 16

// Process is a running binary.
type Process struct {
	cmd   *exec.Cmd
	lines chan string // lines of standard output; closed at its end
	done  chan struct{}
	err   error // error of the end; valid after done is closed
}

// Start starts exe with args. The environment is this process's environment with env added. log gets standard error.
func Start(log io.Writer, env []string, exe string, args ...string) (*Process, error) {
	p := &Process{lines: make(chan string, linesMax), done: make(chan struct{})}
	p.cmd = exec.Command(exe, args...) //nolint:noctx // Stop ends it in order; a context would kill it
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = attributes()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, err)
	}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the process when the thread that has started it ends, so this thread must not end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.follow(out)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", exe, err)
	}
	return p, nil
}

// follow reads standard output to its end, and then waits for the process.
func (p *Process) follow(out io.Reader) {
	in := bufio.NewScanner(out)
	for in.Scan() {
		select {
		case p.lines <- in.Text():
		default: // no reader needs that many lines
		}
	}
	close(p.lines)
	p.err = p.cmd.Wait()
	close(p.done)
}

// Address waits for a line of standard output that begins with prefix, and returns the rest of that line.
func (p *Process) Address(ctx context.Context, prefix string) (string, error) {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", errors.New("the process ended before it was ready; see its log")
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return rest, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the process to be ready: %w", ctx.Err())
		}
	}
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends the signal s. It returns nil if the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", s, err)
	}
	return nil
}

// Kill ends the process at once and waits for its end.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Stop sends SIGTERM and waits for the end of the process. It returns the error with which the process ended. If ctx
// ends first, Stop kills the process and returns an error.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Kill())
	}
}
