package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	// startTimeout is the time limit for starting a server, including the download of a Docker image.
	startTimeout = Patience

	// stopTimeout is the time limit for stopping all shared servers.
	stopTimeout = Patience

	// opTimeout is the time limit of one administrative operation. Examples are the copy of a database, and the wait
	// until another process has created the template.
	opTimeout = Patience
)

// env holds the shared servers of one test process.
type env struct {
	source source

	mu       sync.Mutex
	running  bool // Main was called
	postgres *lazy[*postgresEnv]
	redis    *lazy[*redisEnv]
	stops    []func(context.Context) error
}

func newEnv(s source) *env {
	e := &env{source: s}
	e.postgres = newLazy(e.startPostgres)
	e.redis = newLazy(e.startRedis)
	return e
}

// shared is the env of this process. It is a global variable because the package testing cannot pass a value from
// TestMain to tests.
var shared = newEnv(systemSource())

// Main runs a package's tests, stops their servers, checks that no goroutine is
// left, and exits. Every package whose tests use testenv calls it:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	os.Exit(shared.run(m.Run, options))
}

// MainWithRedis is Main for a package whose tests create Redis clients and stop Redis. These clients log no outage.
func MainWithRedis(m *testing.M) {
	redis.SetLogger(noLog{}) // go-redis has one logger for all clients
	// A client that could not connect tries again after a second. Only then does its goroutine notice that the client
	// was closed, so the leak check ignores this goroutine.
	Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// noLog is a logger of go-redis that drops its lines.
type noLog struct{}

// Printf implements the logger of go-redis.
func (noLog) Printf(context.Context, string, ...any) {}

// run does the work of Main and returns the exit status.
func (e *env) run(tests func() int, options []goleak.Option) int {
	e.mu.Lock()
	e.running = true
	e.mu.Unlock()
	code := tests()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := e.stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: stop servers:", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code // a failed test may leave goroutines
	}
	if err := goleak.Find(append(options, e.source.leakOptions()...)...); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: goroutines are left after all tests:", err)
		return 1
	}
	return 0
}

// onStop registers a function that stops a shared server.
func (e *env) onStop(stop func(context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stops = append(e.stops, stop)
}

// stop stops all shared servers in reverse order of their start.
func (e *env) stop(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs error
	for i := len(e.stops) - 1; i >= 0; i-- {
		errs = errors.Join(errs, e.stops[i](ctx))
	}
	e.stops = nil
	return errs
}

// requireMain fails the test if its package does not call Main, because nothing would stop the servers.
func (e *env) requireMain(t testing.TB) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.True(t, e.running, "testenv: this package needs `func TestMain(m *testing.M) { testenv.Main(m) }`")
}

// requireBinaries is requireMain for a test with a private server. Without local binaries it skips the test.
func (e *env) requireBinaries(t testing.TB) {
	t.Helper()
	e.requireMain(t)
	if without(servers) {
		t.Skipf("a private server needs local binaries, and %s names %s", withoutVariable, servers)
	}
}

// lazy is a value that the first call of get creates. Later calls return the same value or error.
type lazy[T any] struct{ get func() (T, error) }

func newLazy[T any](start func(context.Context) (T, error)) *lazy[T] {
	return &lazy[T]{get: sync.OnceValues(func() (T, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		return start(ctx)
	})}
}
