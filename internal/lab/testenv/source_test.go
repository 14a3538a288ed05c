package testenv

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// fakeContainers replaces the container engine, so that the choice can be tested
// without an engine and without downloading images.
type fakeContainers struct{ err error }

func (f fakeContainers) postgres(context.Context) (backend, error) {
	return backend{url: "postgres://in-a-container", origin: fromContainer}, f.err
}

func (f fakeContainers) redis(context.Context) (backend, error) {
	return backend{url: "redis://in-a-container", origin: fromContainer}, f.err
}

func (fakeContainers) leakOptions() []goleak.Option { return nil }

func noEnv(string) string { return "" }

// nothingInstalled returns a search that finds no program.
func nothingInstalled(t *testing.T) localstack.Search {
	return localstack.Search{Path: []string{t.TempDir()}, PostgresDirs: []string{"/nowhere/*/bin"}, RedisDirs: []string{"/nowhere"}}
}

// choose returns the PostgreSQL and the Redis that s finds.
func choose(t *testing.T, s source) (postgres, redis backend) {
	t.Helper()
	postgres = Must(t).Get(s.postgres(t.Context()))
	redis = Must(t).Get(s.redis(t.Context()))
	for _, b := range []backend{postgres, redis} {
		if b.stop != nil {
			StopAtEnd(t, b.stop)
		}
	}
	return postgres, redis
}

func TestSource_URLInEnvironment_First(t *testing.T) {
	t.Parallel()
	s := systemSource()
	s.getenv = func(name string) string { return "from " + name }
	p, r := choose(t, s)
	assert.True(t, p.url == "from TEST_DATABASE_URL" && r.url == "from TEST_REDIS_URL" && p.stop == nil &&
		r.stop == nil, "%+v, %+v", p, r)
}

func TestSource_LocalBinaries_Second(t *testing.T) {
	t.Parallel()
	shared.requireBinaries(t)
	s := systemSource()
	s.getenv, s.docker = noEnv, fakeContainers{}
	p, r := choose(t, s)
	assert.True(t, p.origin == fromBinaries && r.origin == fromBinaries, "%+v, %+v", p, r)
	assert.True(t, scan[int](t, Connect(t, p.url), "SELECT 1") == 1, "PostgreSQL does not answer")
}

func TestSource_NothingInstalled_ContainersThird(t *testing.T) {
	t.Parallel()
	p, r := choose(t, source{getenv: noEnv, search: nothingInstalled(t), docker: fakeContainers{}})
	assert.True(t, p.origin == fromContainer && r.origin == fromContainer, "%+v, %+v", p, r)
}

func TestSource_NoServer_ErrorNamesPackages(t *testing.T) {
	t.Parallel()
	noEngine := errors.New("docker: no engine")
	s := source{getenv: noEnv, search: nothingInstalled(t), docker: fakeContainers{err: noEngine}}
	_, errPostgres := s.postgres(t.Context())
	_, errRedis := s.redis(t.Context())
	for _, c := range []struct {
		err   error
		wants []string
	}{
		{errPostgres, []string{"PostgreSQL is not installed", "apt-get install postgresql", "dnf install", "brew install", "TEST_DATABASE_URL"}},
		{errRedis, []string{"Redis is not installed", "apt-get install redis-server", "dnf install", "brew install", "TEST_REDIS_URL"}},
	} {
		assert.True(t, errors.Is(c.err, noEngine) && localstack.IsMissing(c.err), "the error lost a cause: %v", c.err)
		for _, want := range c.wants {
			assert.Contains(t, c.err.Error(), want, "the error does not say %q: %v", want, c.err)
		}
	}
}

// Without a container engine the library must report an error, and not panic or hang. With an engine, the servers
// must work.
func TestContainers_Engine_UsedOrAbsenceReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	p, err := dockerContainers{}.postgres(ctx)
	if err != nil {
		assert.True(t, strings.HasPrefix(err.Error(), "docker: "), "the error does not name Docker: %v", err)
		t.Log("no container engine here, reported as: ", err)
		return
	}
	StopAtEnd(t, p.stop)
	assert.True(t, scan[int](t, Connect(t, p.url), "SELECT 1") == 1, "PostgreSQL does not answer")
	r := Must(t).Get(dockerContainers{}.redis(ctx))
	StopAtEnd(t, r.stop)
	o := Must(t).Get(redis.ParseURL(r.url))
	assert.NoError(t, client(t, o).Ping(ctx).Err())
}

func TestSource_BrokenInstallation_Reported(t *testing.T) {
	t.Parallel()
	broken := errors.New("initdb: out of disk")
	_, err := fallBack(broken, EnvPostgres, func() (backend, error) {
		t.Error("turned to containers")
		return backend{}, nil
	})
	assert.ErrorIs(t, err, broken, "err =")
}

func TestSource_UnusableURL_RefusedByName(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mysql://localhost/x", "localhost:5432", "%"} {
		_, err := newPostgresEnv(t.Context(), backend{url: url, origin: fromURL})
		assert.True(t, err != nil && strings.Contains(err.Error(), EnvPostgres), "%s: %v", url, err)
	}
	_, err := newRedisEnv(t.Context(), backend{url: "http://localhost"})
	assert.True(t, err != nil && strings.Contains(err.Error(), EnvRedis), err)
}

func TestMain_LeftGoroutineOrFailure_Fails(t *testing.T) {
	t.Parallel()
	stopped := 0
	e := newEnv(source{docker: fakeContainers{}})
	e.onStop(func(context.Context) error { stopped++; return nil })
	code := e.run(func() int { return 3 }, nil)
	assert.True(t, code == 3 && stopped == 1, "code %d, stopped %d times", code, stopped)
	e.onStop(func(context.Context) error { return errors.New("will not stop") })
	assert.NotZero(t, e.run(func() int { return 0 }, nil), "a server that did not stop went unnoticed")
}
