package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	// EnvPostgres is the environment variable with the URL of a PostgreSQL that already runs.
	EnvPostgres = "TEST_DATABASE_URL"

	// EnvRedis is the environment variable with the URL of a Redis that already runs.
	EnvRedis = "TEST_REDIS_URL"

	// tempPrefix begins the names of all temporary directories.
	tempPrefix = "quotasvc-test-"

	// maxConnections is max_connections of a PostgreSQL for one test, in which each component has its own pool.
	// PostgreSQL's default is 100.
	maxConnections = "200"

	// sharedConnections is max_connections of a PostgreSQL for the parallel tests of several packages.
	sharedConnections = "400"

	// maxWALSize is max_wal_size of a local PostgreSQL. PostgreSQL's default is 1 GB. The data directory may be in
	// memory, so WAL is recycled early. The additional checkpoints cost little without fsync.
	maxWALSize = "256MB"

	// redisDatabases is the number of databases of a local or container Redis: more than the number of parallel
	// tests. An empty database costs nothing. The default is 16.
	redisDatabases = 512
)

// origin is the way in which a server was found.
type origin string

const (
	fromURL       origin = "environment variable"
	fromBinaries  origin = "local binaries"
	fromContainer origin = "container"
)

// backend is a server for tests.
type backend struct {
	url    string
	origin origin
	stop   func(context.Context) error // nil: the server existed before and is not stopped
	citus  *localstack.Citus           // nil: a single PostgreSQL server
}

// source finds servers. The result depends only on its fields, so each of the three ways to find a server can be
// tested on any machine.
type source struct {
	getenv func(string) string
	search localstack.Search
	docker containers
	cache  string // directory of a cached cluster, which saves an initdb (1 to 3 s) in each process; empty: no cache
}

func systemSource() source {
	s := source{getenv: os.Getenv, search: localstack.SystemSearch(), docker: dockerContainers{}}
	if without(servers) {
		s.search = localstack.Search{} // finds nothing
	}
	// Without a home directory there is no cache, and every run calls initdb.
	if dir, err := os.UserCacheDir(); err == nil {
		s.cache = filepath.Join(dir, "quotasvc", "test-cluster")
	}
	return s
}

// containers is a container engine that can start the servers.
type containers interface {
	postgres(ctx context.Context) (backend, error)
	redis(ctx context.Context) (backend, error)
	leakOptions() []goleak.Option // goroutines that stay after the containers have stopped
}

func (s source) postgres(ctx context.Context) (backend, error) {
	if url := s.getenv(EnvPostgres); url != "" {
		return backend{url: url, origin: fromURL}, nil
	}
	if s.getenv(EnvCitus) != "" {
		c, stop, err := s.localCitus(ctx, workers)
		if err != nil {
			return backend{}, err
		}
		return backend{url: c.Coordinator.URL(), origin: fromBinaries, stop: stop, citus: c}, nil
	}
	p, stop, err := s.localPostgres(ctx, sharedConnections)
	if err == nil {
		return backend{url: p.URL(), origin: fromBinaries, stop: stop}, nil
	}
	return fallBack(err, EnvPostgres, func() (backend, error) { return s.docker.postgres(ctx) })
}

func (s source) redis(ctx context.Context) (backend, error) {
	if url := s.getenv(EnvRedis); url != "" {
		return backend{url: url, origin: fromURL}, nil
	}
	r, stop, err := s.localRedis(ctx)
	if err == nil {
		return backend{url: r.URL(), origin: fromBinaries, stop: stop}, nil
	}
	return fallBack(err, EnvRedis, func() (backend, error) { return s.docker.redis(ctx) })
}

// fallBack starts a container if localErr means that the server is not installed on this machine. It returns any other
// error unchanged, because Docker must not hide a broken installation.
func fallBack(localErr error, variable string, start func() (backend, error)) (backend, error) {
	if !localstack.IsMissing(localErr) {
		return backend{}, localErr
	}
	b, err := start()
	if err != nil {
		return backend{}, fmt.Errorf("no server for tests: %w; no container: %w; or set %s to the URL of a running server", localErr, err, variable)
	}
	return b, nil
}

// postgresDir creates a temporary directory for private PostgreSQL servers. It also removes such directories of ended
// processes.
func (s source) postgresDir(ctx context.Context) (string, error) {
	bin, err := s.search.Postgres(ctx, 0)
	if err != nil {
		return "", err
	}
	localstack.RemoveStale(tempPrefix)
	return localstack.TempDir(ctx, tempPrefix, bin)
}

// localPostgres starts a server in a temporary directory. `connections` is the largest number of its connections. env
// has further environment variables of the server's process. The returned function stops the server and removes the
// directory.
func (s source) localPostgres(ctx context.Context, connections string, env ...string) (*localstack.Postgres, func(context.Context) error, error) {
	dir, err := s.postgresDir(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir:    filepath.Join(dir, "postgres"),
		Extra:  map[string]string{"max_connections": connections, "max_wal_size": maxWALSize},
		Env:    env,
		Cache:  s.cache,
		Search: &s.search,
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func(ctx context.Context) error { return errors.Join(p.Stop(ctx), os.RemoveAll(dir)) }
	return p, stop, nil
}

// localRedis starts a Redis in a temporary directory, as localPostgres starts a PostgreSQL.
func (s source) localRedis(ctx context.Context) (*localstack.Redis, func(context.Context) error, error) {
	if _, err := s.search.Redis(); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("temporary directory: %w", err)
	}
	r, err := localstack.StartRedis(ctx, localstack.RedisConfig{
		Dir:       filepath.Join(dir, "redis"),
		Databases: redisDatabases,
		Search:    &s.search,
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Redis saves nothing, so it needs no orderly stop.
	stop := func(context.Context) error { return errors.Join(r.Kill(), os.RemoveAll(dir)) }
	return r, stop, nil
}

// leakOptions returns the goroutines that goleak should ignore.
func (s source) leakOptions() []goleak.Option { return s.docker.leakOptions() }
