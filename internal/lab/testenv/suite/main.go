package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// stopTimeout is the time limit for stopping the servers.
const stopTimeout = time.Minute

func main() {
	slowest := flag.Int("slowest", 0, "also list the `N` slowest tests and packages")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "suite: name the packages, such as ./...")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, strings.Fields(flag.Arg(0)), flag.Args()[1:], *slowest)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs the tests and reports whether all of them passed. It returns an error if it could not run them.
func run(ctx context.Context, patterns, args []string, slowest int) (ok bool, err error) {
	packages, err := list(ctx, patterns)
	if err != nil {
		return false, err
	}
	environment, stop, err := testenv.Servers(ctx)
	if err != nil {
		return false, fmt.Errorf("servers for the tests: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err = errors.Join(err, stop(ctx))
	}()
	return follow(ctx, os.Stdout, environment, packages, args, slowest)
}

// follow runs the tests of packages and reports their progress.
func follow(ctx context.Context, to io.Writer, environment, packages, args []string, slowest int) (ok bool, err error) {
	// go test runs one package more than there are cores, because the tests of a package also wait for servers.
	more := fmt.Sprint("-p=", runtime.GOMAXPROCS(0)+1)
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json", more}, args, packages)...)
	// The test processes get a signal, not SIGKILL, so that they stop their own servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	cmd.Env = append(os.Environ(), environment...)
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1") // the race detector needs C
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r := newReport(to, packages)
	readErr := r.read(out)
	runErr := cmd.Wait()
	r.end(slowest)
	// go test exits with 1 if a test fails; the report has the details.
	if exit := (*exec.ExitError)(nil); errors.As(runErr, &exit) && r.failed() {
		runErr = nil
	}
	return !r.failed(), errors.Join(readErr, runErr)
}

// list returns the packages that have tests. The packages with the largest test files come first.
func list(ctx context.Context, patterns []string) ([]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var packages []string
	size := map[string]int64{}
	for line := range strings.Lines(string(bytes.TrimSpace(out))) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		packages = append(packages, path)
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if info, err := os.Stat(name); err == nil {
				size[path] += info.Size()
			}
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	slices.SortStableFunc(packages, func(a, b string) int { return int(size[b] - size[a]) })
	return packages, nil
}
