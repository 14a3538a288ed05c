package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// helperDir is the name of an environment variable that contains a directory. If the variable is set, the test binary
// starts servers in this directory and prints their pids. Then it waits until it is killed. helperCache is the name of
// the environment variable that contains the durableCache of these servers.
const (
	helperDir   = "LOCALSTACK_TEST_HELPER_DIR"
	helperCache = "LOCALSTACK_TEST_HELPER_CACHE"
)

// testLimit is the time limit of each wait in a test. It only ends tests that hang. The tests of this package cannot
// use testenv.Patience, because testenv imports this package.
const testLimit = 5 * time.Minute

// cacheDir is the directory of the cluster that tests copy. It is new in each run, so the test of initdb does not
// depend on an earlier run.
var cacheDir string

// durableCache returns the cache directory for clusters that survive a power cut (PostgresConfig.Durable).
func durableCache() string { return filepath.Join(cacheDir, "durable") }

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(helper(dir))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if cacheDir, err = os.MkdirTemp("", "localstack-cache-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(cacheDir)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// helper starts the servers of a second process, for tests in which an owner of servers dies or a directory is in
// use.
func helper(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	s, err := Start(ctx, Config{Dir: dir, cache: os.Getenv(helperCache)})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("ready", s.Postgres.proc.pid, s.Redis.proc.pid, s.Postgres.URL())
	if err := s.Wait(ctx); err != nil {
		fmt.Println("error:", err)
	}
	return 1
}

// newDir returns a directory that the run user can enter. If the tests run as root, the run user cannot enter the
// parents of t.TempDir.
func newDir(t *testing.T) string {
	t.Helper()
	bin, err := SystemSearch().Postgres(t.Context(), 0)
	require.NoError(t, err)
	dir, err := TempDir(t.Context(), "localstack-test-", bin)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, os.RemoveAll(dir))
	})
	return dir
}

// startPostgres starts a server that stops when the test ends.
func startPostgres(t *testing.T, cfg PostgresConfig) *Postgres {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(newDir(t), "postgres")
	}
	if cfg.Cache == "" && !cfg.Durable {
		cfg.Cache = cacheDir
	}
	p, err := StartPostgres(t.Context(), cfg)
	require.NoError(t, err)
	endWithTest(t, p.Stop)
	return p
}

// startRedis starts a server that stops when the test ends.
func startRedis(t *testing.T, cfg RedisConfig) *Redis {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	r, err := StartRedis(t.Context(), cfg)
	require.NoError(t, err)
	endWithTest(t, r.Stop)
	return r
}

func endWithTest(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testLimit)
		defer cancel()
		assert.NoError(t, stop(ctx))
	})
}

// sql executes statements on a server and returns the single value that the last statement returns.
func sql[T any](t *testing.T, url string, statements ...string) T {
	t.Helper()
	var v T
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for _, s := range statements[:len(statements)-1] {
		_, err = conn.Exec(t.Context(), s)
		require.NoError(t, err, "%s", s)
	}
	last := statements[len(statements)-1]
	require.NoError(t, conn.QueryRow(t.Context(), last).Scan(&v), "%s", last)
	return v
}

// answerTo returns the result of a probe. If the probe ends at its time limit, answerTo repeats it, because the
// server may be slow.
func answerTo(t *testing.T, probe func(context.Context) error) (err error) {
	t.Helper()
	eventually(t, "an answer", func() bool {
		err = probe(t.Context())
		return !errors.Is(err, context.DeadlineExceeded) && !os.IsTimeout(err)
	})
	return err
}

// eventually waits until done returns true. It fails the test after testLimit.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	require.NoError(t, poll(ctx, done), "%s", what)
}
