package testenv

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// control stops, kills and freezes the server of one test. A method that fails marks the test as failed. The server
// keeps its address and password after stops and starts.
type control struct {
	t      testing.TB
	name   string
	server *localstack.Server
}

// Stop stops the server in order and closes its connections.
func (c *control) Stop() { c.t.Helper(); within(c.t, "stop "+c.name, c.server.Stop) }

// Start starts the stopped or killed server and returns when it answers.
func (c *control) Start() { c.t.Helper(); within(c.t, "start "+c.name, c.server.Start) }

// Restart stops and starts the server.
func (c *control) Restart() { c.t.Helper(); within(c.t, "restart "+c.name, c.server.Restart) }

// Kill ends the server at once, as a crash would.
func (c *control) Kill() { c.t.Helper(); check(c.t, "kill "+c.name, c.server.Kill()) }

// Pause freezes the server: its connections stay open, and the server answers nothing.
func (c *control) Pause() { c.t.Helper(); check(c.t, "pause "+c.name, c.server.Pause()) }

// Resume ends a Pause.
func (c *control) Resume() { c.t.Helper(); check(c.t, "resume "+c.name, c.server.Resume()) }

// PostgresServer is a PostgreSQL for one test, with all migrations applied. The test may stop, kill or freeze it.
// Committed data survives a Kill.
type PostgresServer struct {
	control

	URL string
}

// PostgresPrivate starts a PostgreSQL for this test from local binaries and stops it when the test ends.
func PostgresPrivate(t testing.TB) *PostgresServer {
	t.Helper()
	return startPostgres(t)
}

// PostgresReplicated is a PostgresServer with a synchronous standby: every COMMIT waits until the standby has stored
// the transaction.
type PostgresReplicated struct {
	*PostgresServer

	Standby *PostgresServer
	standby *localstack.Postgres
}

// PostgresWithStandby starts a primary and its standby for this test from local binaries.
func PostgresWithStandby(t testing.TB) *PostgresReplicated {
	t.Helper()
	primary, server := startPostgresOf(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	standby, err := primary.AddStandby(ctx, "standby-backup", localstack.PostgresConfig{
		Dir: filepath.Join(filepath.Dir(primary.Dir()), "standby"), Extra: map[string]string{"max_connections": maxConnections},
		Search: &shared.source.search,
	})
	if standby != nil {
		t.Cleanup(func() { check(t, "stop the standby", standby.Kill()) })
	}
	require.NoError(t, err, "testenv")
	return &PostgresReplicated{
		PostgresServer: server, standby: standby, Standby: &PostgresServer{control: control{t, "the standby", &standby.Server}, URL: standby.URL()},
	}
}

// Promote makes the standby a primary. Kill the old primary first.
func (p *PostgresReplicated) Promote() {
	p.t.Helper()
	within(p.t, "promote the standby", p.standby.Promote)
}

// startPostgres starts a server like PostgresPrivate, with further environment variables for the server.
func startPostgres(t testing.TB, environment ...string) *PostgresServer {
	t.Helper()
	_, server := startPostgresOf(t, environment...)
	return server
}

func startPostgresOf(t testing.TB, environment ...string) (*localstack.Postgres, *PostgresServer) {
	t.Helper()
	shared.requireBinaries(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, stop, err := shared.source.localPostgres(ctx, maxConnections, environment...)
	require.NoError(t, err, "testenv: a private PostgreSQL needs local binaries")
	StopAtEnd(t, stop)
	require.NoError(t, errors.Join(migrate(ctx, p.URL()), makeServiceLoginAt(ctx, p.URL())), "testenv")
	return p, &PostgresServer{control: control{t, "PostgreSQL", &p.Server}, URL: p.URL()}
}

// RedisServer is a Redis for one test. The test may stop, kill or freeze it, and may change its server-wide settings.
// It is empty after a stop or a kill.
type RedisServer struct {
	control

	Addr string
	URL  string

	redis *localstack.Redis
}

// RedisPrivate starts a Redis for this test from local binaries and stops it when the test ends.
func RedisPrivate(t testing.TB) *RedisServer {
	t.Helper()
	shared.requireBinaries(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	r, stop, err := shared.source.localRedis(ctx)
	require.NoError(t, err, "testenv: a private Redis needs local binaries")
	StopAtEnd(t, stop)
	return newRedisServer(t, r)
}

func newRedisServer(t testing.TB, r *localstack.Redis) *RedisServer {
	return &RedisServer{control: control{t, "Redis", &r.Server}, Addr: r.Addr(), URL: r.URL(), redis: r}
}

// Options returns the options of a client of the server.
func (s *RedisServer) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr, Password: s.redis.Password()}
}

// Info returns a section of the server's INFO, which it reads on a separate connection. If the server is down, Info
// returns an error, unlike the other methods, which fail the test.
func (s *RedisServer) Info(ctx context.Context, section string) (string, error) {
	return s.redis.Info(ctx, section)
}

// within calls the function `do` with the time limit stopTimeout, which is enough for a start as well. It reports a
// failure with t.Error, not t.Fatal, because fault tests call the function `within` from other goroutines.
func within(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	check(t, what, do(ctx))
}

func check(t testing.TB, what string, err error) {
	t.Helper()
	assert.NoError(t, err, "testenv: %s", what)
}

// redisURL returns options as a URL.
func redisURL(o *redis.Options) string {
	u := url.URL{Scheme: "redis", Host: o.Addr, Path: "/" + strconv.Itoa(o.DB)}
	if o.TLSConfig != nil {
		u.Scheme = "rediss"
	}
	if o.Username != "" || o.Password != "" {
		u.User = url.UserPassword(o.Username, o.Password)
	}
	return u.String()
}
