package testenv

import (
	"context"
	"net/url"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/localstack"
)

// PostgresServer is a PostgreSQL of one test's own, with all migrations applied,
// for tests that stop, kill or freeze it. A method that fails marks the test as
// failed. The URL stays the same through stops and starts.
type PostgresServer struct {
	URL string

	t testing.TB
	p *localstack.Postgres
}

// PostgresPrivate starts a PostgreSQL for this test alone, from local binaries. It
// is stopped when the test ends.
func PostgresPrivate(t testing.TB) *PostgresServer {
	t.Helper()
	shared.requireMain(t)
	return shared.source.privatePostgres(t)
}

func (s source) privatePostgres(t testing.TB) *PostgresServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, stop, err := s.localPostgres(ctx)
	if err != nil {
		t.Fatal("testenv: a private PostgreSQL needs local binaries: ", err)
	}
	cleanUp(t, stop)
	if err := migrate(ctx, p.URL()); err != nil {
		t.Fatal("testenv: ", err)
	}
	return &PostgresServer{URL: p.URL(), t: t, p: p}
}

// Stop stops the server in order; connections are closed.
func (s *PostgresServer) Stop() { s.t.Helper(); within(s.t, "stop PostgreSQL", s.p.Stop) }

// Start starts the stopped or killed server and returns once it answers.
func (s *PostgresServer) Start() { s.t.Helper(); within(s.t, "start PostgreSQL", s.p.Start) }

// Restart is Stop and Start.
func (s *PostgresServer) Restart() { s.t.Helper(); within(s.t, "restart PostgreSQL", s.p.Restart) }

// Kill ends the server at once, as a crash would; the next Start recovers. What
// was committed is still there.
func (s *PostgresServer) Kill() { s.t.Helper(); check(s.t, "kill PostgreSQL", s.p.Kill()) }

// Pause freezes the server: connections stay open and nothing is answered.
func (s *PostgresServer) Pause() { s.t.Helper(); check(s.t, "pause PostgreSQL", s.p.Pause()) }

// Resume ends a Pause.
func (s *PostgresServer) Resume() { s.t.Helper(); check(s.t, "resume PostgreSQL", s.p.Resume()) }

// RedisServer is a Redis of one test's own, for tests that stop, kill or freeze
// it, or that change what all databases of a server share. It keeps nothing
// across a stop. A method that fails marks the test as failed. Address and
// password stay the same through stops and starts.
type RedisServer struct {
	Addr string
	URL  string

	t testing.TB
	r *localstack.Redis
}

// RedisPrivate starts a Redis for this test alone, from local binaries. It is
// stopped when the test ends.
func RedisPrivate(t testing.TB) *RedisServer {
	t.Helper()
	shared.requireMain(t)
	return shared.source.privateRedis(t)
}

func (s source) privateRedis(t testing.TB) *RedisServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	r, stop, err := s.localRedis(ctx)
	if err != nil {
		t.Fatal("testenv: a private Redis needs local binaries: ", err)
	}
	cleanUp(t, stop)
	return &RedisServer{Addr: r.Addr(), URL: r.URL(), t: t, r: r}
}

// Options say how to reach the server.
func (s *RedisServer) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr, Password: s.r.Password()}
}

// Info is a section of what the server says about itself, asked on a connection of
// its own. Unlike the other methods it leaves the test alone when the server is away.
func (s *RedisServer) Info(ctx context.Context, section string) (string, error) {
	return s.r.Info(ctx, section)
}

// Stop stops the server in order.
func (s *RedisServer) Stop() { s.t.Helper(); within(s.t, "stop Redis", s.r.Stop) }

// Start starts the stopped or killed server, empty, and returns once it answers.
func (s *RedisServer) Start() { s.t.Helper(); within(s.t, "start Redis", s.r.Start) }

// Restart is Stop and Start.
func (s *RedisServer) Restart() { s.t.Helper(); within(s.t, "restart Redis", s.r.Restart) }

// Kill ends the server at once, as a crash would.
func (s *RedisServer) Kill() { s.t.Helper(); check(s.t, "kill Redis", s.r.Kill()) }

// Pause freezes the server: connections stay open and nothing is answered.
func (s *RedisServer) Pause() { s.t.Helper(); check(s.t, "pause Redis", s.r.Pause()) }

// Resume ends a Pause.
func (s *RedisServer) Resume() { s.t.Helper(); check(s.t, "resume Redis", s.r.Resume()) }

// cleanUp ends a private server with its test.
func cleanUp(t testing.TB, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() { within(t, "stop a private server", stop) })
}

// within bounds do by stopTimeout, which is ample for a start, too. It reports by
// Error, not Fatal, because fault tests act from goroutines of their own.
func within(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	check(t, what, do(ctx))
}

func check(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Error("testenv: ", what, ": ", err)
	}
}

// redisURL writes options as a URL.
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
