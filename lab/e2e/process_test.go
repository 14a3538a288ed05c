package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lab/program"
)

// These are the exit statuses of the program, besides 0 and 1.
const (
	exitUsage       = 2   // an invalid command line or configuration
	exitInterrupted = 130 // a signal has interrupted the command
)

func TestMain(m *testing.M) {
	if url := os.Getenv(asBackend); url != "" {
		os.Exit(backend(url))
	}
	testenv.Main(m)
}

// built builds the program for the first test that needs it. The program has the race detector if the tests have it.
// Its file is beside the test binary, in a directory that go test always removes.
var built = sync.OnceValues(func() (string, error) {
	tests, err := os.Executable()
	if err != nil {
		return "", err
	}
	return program.Build(context.Background(), "../..", filepath.Dir(tests), raceDetector)
})

// quotasvc returns the path of the program.
func quotasvc(t testing.TB) string {
	t.Helper()
	return testenv.Must(t).Get(built())
}

// process is a running quotasvc that a test has started.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	ended  chan struct{}
	lines  chan string // lines of standard output
	stderr logBuffer
	stdout logBuffer
}

// launch starts quotasvc with args. The environment contains env and none of the settings in the test's own
// environment.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return launchBy(t, quotasvc(t), env, args...)
}

// launchBy starts a process like launch, with the program at path.
func launchBy(t testing.TB, path string, env []string, args ...string) *process {
	t.Helper()
	return launchInto(t, nil, path, env, args...)
}

// launchInto starts a process like launchBy. If output is not nil, the process inherits it as standard output and
// standard error.
func launchInto(t testing.TB, output *os.File, path string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{}), lines: make(chan string, 256)}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = append(withoutSettings(os.Environ()), "QUOTASVC_DRAIN_DELAY=0s") // nobody waits for a load balancer to notice
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the terminal goes to the test only
	var out io.Reader = strings.NewReader("")
	if p.cmd.Stderr = &p.stderr; output != nil {
		p.cmd.Stdout, p.cmd.Stderr = output, output
	} else {
		out = testenv.Must(t).Get(p.cmd.StdoutPipe())
	}
	require.NoError(t, p.cmd.Start())
	go p.follow(out)
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if t.Failed() {
			t.Logf("quotasvc %s: standard output:\n%s\nlog:\n%s", strings.Join(args, " "), p.stdout.tail(), p.stderr.tail())
		}
	})
	return p
}

func withoutSettings(env []string) []string {
	var out []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, "QUOTASVC_") {
			out = append(out, pair)
		}
	}
	return out
}

// follow reads standard output to its end, and then waits for the end of the process.
func (p *process) follow(out io.Reader) {
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		_, _ = p.stdout.Write([]byte(scanner.Text() + "\n"))
		select {
		case p.lines <- scanner.Text():
		default: // no test reads that many lines
		}
	}
	close(p.lines)
	_ = p.cmd.Wait() // the status is in ProcessState
	close(p.ended)
}

// line waits for the next line of standard output that begins with prefix, and returns the rest of that line.
func (p *process) line(prefix string) string {
	p.t.Helper()
	for {
		line, ok := testenv.Receive(p.t, p.lines)
		if !ok {
			<-p.ended
			p.t.Fatalf("quotasvc ended with %d before it printed %q", p.cmd.ProcessState.ExitCode(), prefix) // its log follows
		}
		if rest, found := strings.CutPrefix(line, prefix); found {
			return strings.TrimSpace(rest)
		}
	}
}

// logged waits until the log contains a text the given number of times.
func (p *process) logged(text string, times int) {
	p.t.Helper()
	testenv.Eventually(p.t, func() bool { return strings.Count(p.stderr.String(), text) >= times }, "line ", times, " in the log: ", text)
}

// pace waits between two calls of a load. It returns false when ctx has ended.
func pace(ctx context.Context, every time.Duration) bool {
	select {
	case <-time.After(every):
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *process) signal(s syscall.Signal) {
	err := p.cmd.Process.Signal(s)
	assert.False(p.t, err != nil && !errors.Is(err, os.ErrProcessDone), "signal %s: %v", s, err)
}

// wait waits for the end of the process and returns its exit status.
func (p *process) wait() int {
	p.t.Helper()
	testenv.Receive(p.t, p.ended)
	return p.cmd.ProcessState.ExitCode()
}

// stop ends the process with SIGTERM and fails the test unless it exits with status 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	status := p.wait()
	assert.Zero(p.t, status, "quotasvc ended with %d after SIGTERM; its log:\n%s", status, p.stderr.tail())
}

// serveFree are the arguments of `quotasvc serve` on free ports.
var serveFree = []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}

// tool runs quotasvc until it exits.
func tool(t testing.TB, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, quotasvc(t), args...)
	cmd.Env = append(withoutSettings(os.Environ()), env...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	_, ended := errors.AsType[*exec.ExitError](err)
	require.False(t, err != nil && !ended, "quotasvc %s: %v\n%s", strings.Join(args, " "), err, log.String())
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

// migrateUpArgs returns the arguments of `quotasvc migrate up` for the database under test.
func migrateUpArgs() []string {
	if testenv.OnCitus() {
		return []string{"migrate", "up", "--citus", "--citus-shards", "4"}
	}
	return []string{"migrate", "up"}
}

// must runs quotasvc and fails the test unless it exits with status 0.
func must(t testing.TB, env []string, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := tool(t, env, args...)
	require.Zero(t, status, "quotasvc %s ended with %d\n%s\n%s", strings.Join(args, " "), status, stdout, stderr)
	return stdout
}

// fails runs quotasvc, and fails the test unless it exits with this status and its log contains this text.
func fails(t testing.TB, env []string, want int, says string, args ...string) {
	t.Helper()
	status, _, stderr := tool(t, env, args...)
	assert.True(t, status == want && strings.Contains(stderr, says),
		"%q ended with %d, want %d and %q: %s", args, status, want, says, stderr)
}

// logBuffer collects output. It may be written and read at the same time.
type logBuffer struct{ testenv.Log }

// tail returns the end of the output.
func (b *logBuffer) tail() string {
	const enough = 8000
	all := b.String()
	return all[max(0, len(all)-enough):]
}
