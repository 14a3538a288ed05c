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
	"github.com/stretchr/testify/require"
)

func TestPostgres_StopAndNewOwner_DataAndURLStay(t *testing.T) {
	t.Parallel()
	cfg := PostgresConfig{Dir: filepath.Join(newDir(t), "postgres"), Durable: true, Cache: durableCache()}
	first := startPostgres(t, cfg)
	if v := sql[string](t, first.URL(), "SHOW fsync"); v != "on" {
		t.Errorf("a durable server has fsync %s", v)
	}
	if n := sql[int](t, first.URL(), "CREATE TABLE kept AS SELECT 42 AS n", "SELECT n FROM kept"); n != 42 {
		t.Fatalf("n = %d", n)
	}
	require.NoError(t, first.Stop(t.Context()))
	cfg.Port = first.Port()
	second := startPostgres(t, cfg)
	if second.URL() != first.URL() {
		t.Errorf("the URL changed from %s to %s", first.URL(), second.URL())
	}
	if n := sql[int](t, second.URL(), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d", n)
	}
}

func TestPostgres_DirectoryInUse_NamesOwner(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: p.Dir()})
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("err = %v", err)
	}
	if want := fmt.Sprintf("another quotasvc dev (pid %d) is using %s", os.Getpid(), p.Dir()); !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not say %q: %v", want, err)
	}
	if sql[int](t, p.URL(), "SELECT 1") != 1 {
		t.Error("the owner was disturbed")
	}
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
	if v := sql[string](t, p.URL(), "SHOW listen_addresses"); v != "127.0.0.1" {
		t.Errorf("PostgreSQL listens on %s", v)
	}
	if v := sql[string](t, p.URL(), "SHOW unix_socket_directories"); v != "" {
		t.Errorf("PostgreSQL has sockets in %s", v)
	}
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://quotasvc:guess@127.0.0.1:%d/quotasvc?sslmode=disable", p.Port()))
	if err == nil {
		_ = c.Close(t.Context())
		t.Error("PostgreSQL lets a wrong password in")
	}
	r := startRedis(t, RedisConfig{})
	r.password = "guess"
	if err := answerTo(t, r.probe); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("Redis answers a wrong password with %v", err)
	}
}

func TestServer_Password_NotReadableByOthers(t *testing.T) {
	t.Parallel()
	p, r := startPostgres(t, PostgresConfig{}), startRedis(t, RedisConfig{})
	for pid, password := range map[int]string{p.proc.pid: p.password, r.proc.pid: r.password} {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(text), password) {
			t.Errorf("the command line shows the password: %q", text)
		}
	}
	for _, path := range []string{
		filepath.Join(p.Dir(), "password"), filepath.Join(r.Dir(), "password"), filepath.Join(r.Dir(), "redis.conf"),
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestPostgres_FailedStart_QuotesLogLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: dir, Cache: cacheDir, Extra: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "unrecognized configuration parameter") {
		t.Errorf("err = %v", err)
	}
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
	if err := p.Start(ctx); err == nil || !strings.Contains(err.Error(), "the password in "+file+" is not the data's") {
		t.Errorf("err = %v", err)
	}
	require.NoError(t, os.Remove(file))
	if err := p.Start(ctx); err == nil || !strings.Contains(err.Error(), "to start from scratch") {
		t.Errorf("err = %v", err)
	}
}

func TestPostgres_InterruptedFirstStart_Repeated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	half := filepath.Join(dir, "data.new")
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	p := startPostgres(t, PostgresConfig{Dir: dir})
	if sql[int](t, p.URL(), "SELECT 1") != 1 {
		t.Error("the server does not answer")
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the half-made directory is still there: %v", err)
	}
}

func TestPostgres_DataOfOtherVersion_RefusedWithRemedy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "postgres")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("99\n"), 0o600))
	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: dir})
	if !IsMissing(err) || !strings.Contains(err.Error(), "was written by PostgreSQL 99") || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("err = %v", err)
	}
}

// Clusters that are copied from one cache have the same password. So the password does not distinguish this server
// from another test's server on the same port.
func TestPostgres_ForeignServerOnPort_NotReady(t *testing.T) {
	t.Parallel()
	ours, theirs := startPostgres(t, PostgresConfig{}), startPostgres(t, PostgresConfig{})
	if ours.password != theirs.password {
		t.Fatal("the test's premise is gone: the passwords differ")
	}
	if err := answerTo(t, ours.probe); err != nil {
		t.Error(err)
	}
	elsewhere := &Postgres{Server: Server{port: theirs.port, dir: ours.dir}, password: ours.password}
	if err := answerTo(t, elsewhere.probe); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("PostgreSQL: %v", err)
	}
	r := startRedis(t, RedisConfig{})
	other := &Redis{Server: Server{port: r.port, proc: &process{pid: 1}}, password: r.password}
	if err := answerTo(t, other.probe); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("Redis: %v", err)
	}
}

func TestStop_PastDeadline_KillsAndReports(t *testing.T) {
	t.Parallel()
	p := startPostgres(t, PostgresConfig{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(over); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "killed it instead") {
		t.Errorf("err = %v", err)
	}
	if alive(p.proc.pid) {
		t.Error("the server is still there")
	}
	// The next start recovers the data.
	require.NoError(t, p.Start(t.Context()))
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
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
	if left := segmentsOf(p.proc.pid); left != 0 {
		t.Errorf("%d of %d segments of shared memory are left", left, segments)
	}
	for _, pid := range backends {
		if alive(pid) {
			t.Errorf("process %d outlived its server", pid)
		}
	}
	if err := <-busy; err == nil {
		t.Error("the query of a killed backend succeeded")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Error(err)
	}
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
		if name, value, _ := strings.Cut(entry, "="); stray[name] == value && value != "" {
			t.Errorf("%s reaches the server", entry)
		}
	}
	p := startPostgres(t, PostgresConfig{Durable: true})
	if err := os.Unsetenv("PGOPTIONS"); err != nil { // the test's driver reads it
		t.Fatal(err)
	}
	if v := sql[string](t, p.URL(), "SHOW timezone"); v != "UTC" {
		t.Errorf("time zone %s", v)
	}
	if v := sql[string](t, p.URL(), "SELECT datcollate || datctype FROM pg_database WHERE datname = current_database()"); v != "CC" {
		t.Errorf("locale %s", v)
	}
}

func TestStop_PausedServer_InOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	for name, s := range map[string]*Server{
		"PostgreSQL": &startPostgres(t, PostgresConfig{}).Server, "Redis": &startRedis(t, RedisConfig{}).Server,
	} {
		require.NoError(t, s.Pause())
		if err := s.Stop(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Pause() == nil || s.Resume() == nil {
			t.Errorf("%s: a stopped server was paused or resumed without an error", name)
		}
	}
}

func TestServer_TerminalSignals_NotReceived(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]int{
		"PostgreSQL": startPostgres(t, PostgresConfig{}).proc.pid, "Redis": startRedis(t, RedisConfig{}).proc.pid,
	} {
		group, err := syscall.Getpgid(pid)
		if err != nil || group != pid {
			t.Errorf("%s is in process group %d, want its own, %d (%v)", name, group, pid, err)
		}
	}
}
