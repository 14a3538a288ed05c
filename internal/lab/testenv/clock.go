package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// withoutVariable is the environment variable that lists the programs that may be missing in a test run.
// scripts/install-test-tools.sh installs these programs.
const withoutVariable = "QUOTASVC_TEST_WITHOUT"

// servers is the name for the local binaries of PostgreSQL and Redis in withoutVariable.
const servers = "servers"

// without reports whether the programs that may be missing include this one.
func without(program string) bool {
	return slices.Contains(strings.Split(os.Getenv(withoutVariable), ","), program)
}

// libfaketime is the library that gives a process a clock of its own.
const libfaketime = "libfaketime.so.1"

// PostgresClock is a PostgreSQL for one test, whose clock the test can set.
type PostgresClock struct {
	*PostgresServer

	file string
}

// PostgresWithClock starts a server like PostgresPrivate. The method Shift sets the server's clock. If libfaketime is
// missing, the test fails. The test is skipped instead if QUOTASVC_TEST_WITHOUT contains libfaketime.
func PostgresWithClock(t testing.TB) *PostgresClock {
	t.Helper()
	library, err := findFaketime()
	if err != nil {
		if without("libfaketime") {
			t.Skip(err)
		}
		t.Fatal("testenv: ", err)
	}
	dir, err := os.MkdirTemp("", tempPrefix) //nolint:usetesting // the server's user must be able to enter it, and t.TempDir belongs to this user alone
	check(t, "make a directory for the clock", err)
	t.Cleanup(func() { check(t, "remove the clock", os.RemoveAll(dir)) })
	check(t, "open the clock's directory to the server", os.Chmod(dir, 0o755))
	// The server's user may not be able to enter the checkout. The loader silently skips a library that it cannot read.
	text, err := os.ReadFile(library)
	check(t, "read libfaketime", err)
	library = filepath.Join(dir, libfaketime)
	check(t, "copy libfaketime", os.WriteFile(library, text, 0o644)) //nolint:gosec // the server runs as another user
	p := &PostgresClock{file: filepath.Join(dir, "clock")}
	p.write(t, 0)
	p.PostgresServer = startPostgres(t, "LD_PRELOAD="+library, "FAKETIME_TIMESTAMP_FILE="+p.file, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1")
	return p
}

// Shift sets the server's clock to the machine's clock plus the given duration. The change takes effect at once.
func (p *PostgresClock) Shift(by time.Duration) {
	p.t.Helper()
	p.write(p.t, by)
}

// write replaces the clock's file in one step, because the server may read it at any time.
func (p *PostgresClock) write(t testing.TB, by time.Duration) {
	t.Helper()
	next := p.file + ".next"
	check(t, "set the clock", os.WriteFile(next, fmt.Appendf(nil, "%+.6f\n", by.Seconds()), 0o644)) //nolint:gosec // the server runs as another user
	check(t, "set the clock", os.Rename(next, p.file))
}

// findFaketime returns the path of the library libfaketime.
func findFaketime() (string, error) {
	for _, pattern := range []string{"/usr/lib/*/faketime/" + libfaketime, "/usr/lib*/faketime/" + libfaketime, "/usr/local/lib/faketime/" + libfaketime} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if path := filepath.Join(dir, "bin", libfaketime); fileExists(path) {
			return path, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("libfaketime is missing: run scripts/install-test-tools.sh, or set %s=libfaketime to skip the tests that move PostgreSQL's clock", withoutVariable)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
