package localstack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// owner is another process that has started servers.
type owner struct {
	cmd             *exec.Cmd
	postgres, redis int // process ids of the servers
	url             string
}

func startOwner(t *testing.T, dir string) *owner {
	t.Helper()
	o := &owner{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	o.cmd.Env = append(os.Environ(), helperDir+"="+dir, helperCache+"="+durableCache())
	o.cmd.Stderr = os.Stderr
	out, err := o.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, o.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "ready %d %d %s", &o.postgres, &o.redis, &o.url)
	require.NoError(t, err, "the other process prints %q", line)
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends when the process ends
	return o
}

// die kills the owner, so that it cannot stop its servers.
func (o *owner) die(t *testing.T) {
	t.Helper()
	require.NoError(t, o.cmd.Process.Kill())
	_ = o.cmd.Wait() // the error is always "signal: killed"
}

func TestStack_OwnerKilled_ServersEndDataStays(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death; elsewhere the next start stops the leftover")
	}
	dir := filepath.Join(newDir(t), "dev")
	o := startOwner(t, dir)
	sql[int](t, o.url, "CREATE TABLE kept AS SELECT 42 AS n", "SELECT n FROM kept")
	o.die(t)
	eventually(t, "both servers to end", func() bool { return !alive(o.postgres) && !alive(o.redis) })

	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	s, err := Start(ctx, Config{Dir: dir, cache: durableCache()})
	require.NoError(t, err)
	endWithTest(t, s.Stop)
	assert.Equal(t, 42, sql[int](t, s.Postgres.URL(), "SELECT n FROM kept"))
}

// The next start needs no manual clean-up, even immediately after the owner's death.
func TestStack_StartAfterOwnersDeath_Succeeds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "dev")
	for range 3 {
		startOwner(t, dir).die(t)
	}
	s, err := Start(t.Context(), Config{Dir: dir, cache: durableCache()})
	require.NoError(t, err)
	endWithTest(t, s.Stop)
}

func TestStack_SecondStart_NamesPidOfFirst(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "dev")
	o := startOwner(t, dir)
	defer o.die(t)
	_, err := Start(t.Context(), Config{Dir: dir, cache: durableCache()})
	want := fmt.Sprintf("another quotasvc dev (pid %d) is using %s", o.cmd.Process.Pid, dir)
	assert.True(t, err != nil && strings.Contains(err.Error(), want), "want %q, got %v", want, err)
}

// If the kernel does not end the servers of a dead owner, the next start stops them.
func TestPostgres_LeftoverServer_StoppedByNextStart(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testing.T) (pid int, again func() error){
		"PostgreSQL": func(t *testing.T) (int, func() error) {
			p := startPostgres(t, PostgresConfig{})
			forget(t, &p.Server)
			return p.proc.pid, func() error {
				next, err := StartPostgres(t.Context(), PostgresConfig{Dir: p.Dir()})
				if err == nil {
					endWithTest(t, next.Stop)
				}
				return err
			}
		},
		"Redis": func(t *testing.T) (int, func() error) {
			r := startRedis(t, RedisConfig{})
			forget(t, &r.Server)
			return r.proc.pid, func() error {
				next, err := StartRedis(t.Context(), RedisConfig{Dir: r.Dir()})
				if err == nil {
					endWithTest(t, next.Stop)
				}
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pid, again := leave(t)
			require.NoError(t, again())
			assert.False(t, alive(pid), "the leftover, pid %d, still runs", pid)
		})
	}
}

// forget releases the lock without stopping the server, so that the server remains as after a crash of its owner.
func forget(t *testing.T, s *Server) {
	t.Helper()
	require.NoError(t, s.unlock())
}

func TestPostgres_ReusedPid_LeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "redis.pid")
	require.NoError(t, os.WriteFile(pidFile, fmt.Appendln(nil, os.Getppid()), 0o600))
	var log strings.Builder
	// A signal to this pid would end the test run.
	assert.NoError(t, stopOrphan(t.Context(), pidFile, dir, syscall.SIGKILL, slog.New(slog.NewTextHandler(&log, nil))))
	assert.True(t, log.Len() <= 0, "waited for a program that is not ours: %s", &log)
}

// The kernel sends the parent-death signal when the thread that forked the child ends, not when the process ends.
func TestServer_StartingThreadEnds_Survives(t *testing.T) {
	t.Parallel()
	var r *Redis
	dir := t.TempDir()
	asked, thread := make(chan error), ""
	var start func()
	start = func() {
		runtime.LockOSThread()                       // never unlocked, so the thread ends with the goroutine
		thread, _ = os.Readlink("/proc/thread-self") // Linux only
		if thread == fmt.Sprintf("%d/task/%[1]d", os.Getpid()) {
			defer runtime.UnlockOSThread()
			var other sync.WaitGroup
			other.Go(start) // the first thread of a process never ends
			other.Wait()
			return
		}
		var err error
		r, err = StartRedis(context.Background(), RedisConfig{Dir: dir})
		asked <- err
	}
	go start()
	require.NoError(t, <-asked)
	endWithTest(t, r.Stop)
	eventually(t, "the thread to end", func() bool { return thread == "" || !fileExists("/proc/"+thread) })
	// A signal from the kernel would have ended the server by now.
	assert.NoError(t, answerTo(t, r.probe), "the server ended with the thread")
}

func TestWait_ServerEnds_Reported(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Dir: filepath.Join(newDir(t), "dev"), cache: durableCache()})
	require.NoError(t, err)
	endWithTest(t, s.Stop)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, s.Wait(over), "waiting is over and both run")
	require.NoError(t, syscall.Kill(s.Redis.proc.pid, syscall.SIGKILL))
	err = s.Wait(t.Context())
	assert.True(t, err != nil && strings.Contains(err.Error(), "redis.log"), "err = %v", err)
}

func TestRedis_Persist_DataSurvivesStop(t *testing.T) {
	t.Parallel()
	r := startRedis(t, RedisConfig{Persist: true})
	url := r.URL()
	require.Equal(t, "+OK", redisCommand(t, r, "SET kept 42"))
	// This is enough data for a slow load. A server that loads data is not ready.
	require.Equal(t, ":1", redisCommand(t, r, `EVAL "for i = 1, 300000 do redis.call('SET', i, i) end return 1" 0`))
	require.NoError(t, r.Restart(t.Context()))
	assert.Equal(t, url, r.URL(), "the URL changed from %s to", url)
	assert.Equal(t, ":2", redisCommand(t, r, "STRLEN kept"), "STRLEN kept")
}
