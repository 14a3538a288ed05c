package localstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPostgres_StopAndNewOwner_DataAndURLStay(t *testing.T) {
	t.Parallel()
	cfg := PostgresConfig{Dir: filepath.Join(newDir(t), "postgres"), Durable: true, Cache: durableCache()}
	first := startPostgres(t, cfg)
	assert.EqualValues(t, "on", sql[string](t, first.URL(), "SHOW fsync"), "a durable server has fsync")
	require.Equal(t, 42, sql[int](t, first.URL(), "CREATE TABLE kept AS SELECT 42 AS n", "SELECT n FROM kept"))
	require.NoError(t, first.Stop(t.Context()))
	cfg.Port = first.Port()
	second := startPostgres(t, cfg)
	assert.Equal(t, first.URL(), second.URL(), "the URL changed from %s to", first.URL())
	assert.Equal(t, 42, sql[int](t, second.URL(), "SELECT n FROM kept"))
}

func TestPostgres_DirectoryInUse_NamesOwner(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: p.Dir()})
	var inUse *InUseError
	require.True(t, errors.As(err, &inUse) && inUse.PID == os.Getpid(), "err = %v", err)
	want := fmt.Sprintf("another quotasvc dev (pid %d) is using %s", os.Getpid(), p.Dir())
	assert.Contains(t, err.Error(), want, "the error does not say %q: %v", want, err)
	assert.True(t, sql[int](t, p.URL(), "SELECT 1") == 1, "the owner was disturbed")
}

func TestPostgres_PortTaken_NamesPortAndSetting(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, errPostgres := StartPostgres(t.Context(), PostgresConfig{
		Dir: filepath.Join(newDir(t), "postgres"), Port: port, PortSetting: "--postgres-port", Cache: cacheDir,
	})
	_, errRedis := StartRedis(t.Context(), RedisConfig{Dir: t.TempDir(), Port: port, PortSetting: "--redis-port"})
	for server, err := range map[string]error{"PostgreSQL": errPostgres, "Redis": errRedis} {
		var taken *PortTakenError
		if !errors.As(err, &taken) || taken.Port != port || taken.Server != server {
			t.Errorf("%s: %v", server, err)
			continue
		}
		setting := map[string]string{"PostgreSQL": "--postgres-port", "Redis": "--redis-port"}[server]
		if text := err.Error(); !strings.Contains(text, strconv.Itoa(port)) || !strings.Contains(text, setting) {
			t.Errorf("%s: %s", server, text)
		}
	}
}

func TestServer_Access_LoopbackAndPasswordOnly(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	assert.EqualValues(t, "127.0.0.1", sql[string](t, p.URL(), "SHOW listen_addresses"), "PostgreSQL listens on")
	assert.Empty(t, sql[string](t, p.URL(), "SHOW unix_socket_directories"), "PostgreSQL has sockets in")
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://quotasvc:guess@127.0.0.1:%d/quotasvc?sslmode=disable", p.Port()))
	if err == nil {
		_ = c.Close(t.Context())
		t.Error("PostgreSQL lets a wrong password in")
	}
	r := startRedis(t, RedisConfig{})
	r.password = "guess"
	assert.ErrorContains(t, answerTo(t, r.probe), "WRONGPASS", "Redis answers a wrong password")
}

func TestServer_Password_NotReadableByOthers(t *testing.T) {
	t.Parallel()
	p, r := startPostgres(t, PostgresConfig{}), startRedis(t, RedisConfig{})
	for pid, password := range map[int]string{p.proc.pid: p.password, r.proc.pid: r.password} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		assert.False(t, err == nil && strings.Contains(string(text), password), "the command line shows the password: %q", text)
	}
	for _, path := range []string{
		filepath.Join(p.Dir(), "password"), filepath.Join(r.Dir(), "password"), filepath.Join(r.Dir(), "redis.conf"),
	} {
		info, err := os.Stat(path)
		assert.True(t, err == nil && info.Mode().Perm() == 0o600, "%s: %v, %v", path, info.Mode(), err)
	}
}

func TestPostgres_FailedStart_QuotesLogLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: dir, Cache: cacheDir, Extra: map[string]string{"no_such_setting": "1"}})
	assert.True(t, err != nil && strings.Contains(err.Error(), "unrecognized configuration parameter"), "err = %v", err)
	// Another server can use the directory again.
	startPostgres(t, PostgresConfig{Dir: dir})
}

func TestPostgres_LostPassword_ReportedAtOnce(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	require.NoError(t, p.Stop(t.Context()))
	file := filepath.Join(p.Dir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("another\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	assert.ErrorContains(t, p.Start(ctx), "the password in "+file+" is not the data's")
	require.NoError(t, os.Remove(file))
	err := p.Start(ctx)
	assert.True(t, err != nil && strings.Contains(err.Error(), "to start from scratch"), "err = %v", err)
}

func TestPostgres_InterruptedFirstStart_Repeated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	half := filepath.Join(dir, "data.new")
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	p := startPostgres(t, PostgresConfig{Dir: dir})
	assert.True(t, sql[int](t, p.URL(), "SELECT 1") == 1, "the server does not answer")
	_, err := os.Stat(half)
	assert.ErrorIs(t, err, os.ErrNotExist, "the half-made directory is still there")
}

func TestPostgres_DataOfOtherVersion_RefusedWithRemedy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("99\n"), 0o600))
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: dir})
	assert.True(t, IsMissing(err) && strings.Contains(err.Error(), "was written by PostgreSQL 99") &&
		strings.Contains(err.Error(), "move it away"), "err = %v", err)
}

// Clusters that are copied from one cache have the same password. So the password does not distinguish this server
// from another test's server on the same port.
func TestPostgres_ForeignServerOnPort_NotReady(t *testing.T) {
	t.Parallel()
	ours, theirs := startPostgres(t, PostgresConfig{}), startPostgres(t, PostgresConfig{})
	require.Equal(t, theirs.password, ours.password, "the test's premise is gone: the passwords differ")
	assert.NoError(t, answerTo(t, ours.probe))
	elsewhere := &Postgres{Server: Server{port: theirs.port, dir: ours.dir}, password: ours.password}
	err := answerTo(t, elsewhere.probe)
	assert.True(t, err != nil && strings.Contains(err.Error(), "not ours"), "PostgreSQL: %v", err)
	r := startRedis(t, RedisConfig{})
	other := &Redis{Server: Server{port: r.port, proc: &process{pid: 1}}, password: r.password}
	err = answerTo(t, other.probe)
	assert.True(t, err != nil && strings.Contains(err.Error(), "not ours"), "Redis: %v", err)
}

func TestStop_PastDeadline_KillsAndReports(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Stop(over)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "killed it instead")
	assert.False(t, alive(p.proc.pid), "the server is still there")
	// The next start recovers the data.
	require.NoError(t, p.Start(t.Context()))
	assert.NoError(t, p.Stop(t.Context()))
	assert.NoError(t, p.Stop(t.Context()), "stopping twice")
}

func TestKill_Postgres_EndsBackends(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	conn, err := pgx.Connect(t.Context(), p.URL())
	require.NoError(t, err)
	defer conn.Close(context.Background())
	busy := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(3600)")
		busy <- err
	}()
	const sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
	eventually(t, "a busy backend", func() bool { return sql[int](t, p.URL(), sleeping) == 1 })
	backends := childrenOf(p.proc.pid)
	segments := segmentsOf(p.proc.pid)
	require.NoError(t, p.Kill())
	left := segmentsOf(p.proc.pid)
	assert.Zero(t, left, "%d of %d segments of shared memory are left", left, segments)
	for _, pid := range backends {
		assert.False(t, alive(pid), "process %d outlived its server", pid)
	}
	err = <-busy
	assert.Error(t, err, "the query of a killed backend succeeded")
	assert.NoError(t, p.Start(t.Context()))
}

// segmentsOf returns the number of System V segments that a process has created, or 0
// on systems that do not list them.
func segmentsOf(pid int) int {
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	made := 0
	for line := range strings.Lines(string(text)) {
		// The columns are: key shmid perms size cpid ...
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == strconv.Itoa(pid) {
			made++
		}
	}
	return made
}

func TestPostgres_Environment_NotInherited(t *testing.T) {
	stray := map[string]string{"PGDATA": "/nowhere", "PGPORT": "1", "PGOPTIONS": "-c x=y", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
	for name, value := range stray {
		t.Setenv(name, value)
	}
	for _, entry := range (command{path: "/bin/true"}).cmd(t.Context()).Env {
		name, value, _ := strings.Cut(entry, "=")
		assert.False(t, stray[name] == value && value != "", "%s reaches the server", entry)
	}
	p := startPostgres(t, PostgresConfig{Durable: true})
	require.NoError(t, os.Unsetenv("PGOPTIONS")) // the test's driver reads it
	assert.EqualValues(t, "UTC", sql[string](t, p.URL(), "SHOW timezone"), "time zone")
	locale := "SELECT datcollate || datctype FROM pg_database WHERE datname = current_database()"
	assert.Equal(t, "CC", sql[string](t, p.URL(), locale))
}

func TestStop_PausedServer_InOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	for name, s := range map[string]*Server{
		"PostgreSQL": &startPostgres(t, PostgresConfig{}).Server, "Redis": &startRedis(t, RedisConfig{}).Server,
	} {
		require.NoError(t, s.Pause())
		assert.NoError(t, s.Stop(ctx), "%s", name)
		assert.True(t, s.Pause() != nil && s.Resume() != nil,
			"%s: a stopped server was paused or resumed without an error", name)
	}
}

func TestServer_TerminalSignals_NotReceived(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]int{
		"PostgreSQL": startPostgres(t, PostgresConfig{}).proc.pid, "Redis": startRedis(t, RedisConfig{}).proc.pid,
	} {
		group, err := syscall.Getpgid(pid)
		assert.True(t, err == nil && group == pid,
			"%s is in process group %d, want its own, %d (%v)", name, group, pid, err)
	}
}
