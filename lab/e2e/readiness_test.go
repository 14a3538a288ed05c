package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// ask requests a path of the ops listener.
func (in *instance) ask(t testing.TB, path string) answer {
	t.Helper()
	return fetch(t, in.http, http.MethodGet, in.ops+path, "")
}

// If the database hangs, a load balancer that asks /readyz must not remove all instances at once, because they still
// answer checks from the cache.
func TestReadyz_PostgresFrozen_StaysReadyAndSaysSo(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	in := serve(t, append(backends(t), "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL))).setUp(t, 1000)
	got := in.ask(t, "/readyz?strict=1")
	require.True(t, got.status == 200 && strings.Contains(string(got.body), `"postgresql":"ok"`) &&
		strings.Contains(string(got.body), `"redis":"ok"`), "well: %s", got)
	postgres.Pause()
	defer postgres.Resume()
	testenv.Eventually(t, func() bool {
		got := in.ask(t, "/readyz")
		require.True(t, got.status == 200, "PostgreSQL is frozen: %s", got)
		return !strings.Contains(string(got.body), `"postgresql":"ok"`)
	}, "the body says that PostgreSQL is away")
	assert.Equal(t, 503, in.ask(t, "/readyz?strict=1").status, "strict")
	metrics := in.metrics(t)
	assert.True(t, strings.Contains(metrics, "quotasvc_postgresql_up 0\n") &&
		strings.Contains(metrics, "quotasvc_redis_up 1\n"), "/metrics")
	postgres.Resume()
	testenv.Eventually(t, func() bool {
		return in.ask(t, "/readyz?strict=1").status == 200 && strings.Contains(string(in.ask(t, "/metrics").body), "quotasvc_postgresql_up 1\n")
	}, "PostgreSQL is back")
}

// Slow reports of one tenant must not make an instance seem unhealthy.
func TestReadyz_ReadersBusy_PostgresIsUp(t *testing.T) {
	in, env := parallelService(t, 1000)
	ctx := t.Context()
	tx, err := testenv.Connect(t, testenv.AsSuperuser(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))).Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE entries, balances IN ACCESS EXCLUSIVE MODE") // reads take as long as they may
	require.NoError(t, err)
	var readers sync.WaitGroup
	reading, endReading := context.WithCancel(ctx)
	defer endReading()
	for range 12 {
		for _, path := range []string{"/v1/tenants/acme/balances", "/v1/tenants/acme/entries"} {
			readers.Go(func() {
				for reading.Err() == nil {
					_, _ = in.send(ctx, "GET", path, "", nil)
				}
			})
		}
	}
	watch := testenv.Connect(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))
	of := func(sql string) (n int) {
		t.Helper()
		require.NoError(t, watch.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'quotasvc-reader' AND "+sql).Scan(&n))
		return n
	}
	most := int(metricOf(in.metrics(t), `quotasvc_postgres_connections_max{pool="readers"}`))
	testenv.Eventually(t, func() bool { return of("wait_event_type = 'Lock'") >= most }, "every reader waits")
	for range 2 { // an earlier probe may still be running
		testenv.Exec(t, watch, "SET my.since = '"+time.Now().Format(time.RFC3339Nano)+"'")
		testenv.Eventually(t, func() bool {
			got := in.ask(t, "/readyz?strict=1")
			require.True(t, got.status == 200, "with busy readers: %s", got)
			return of("query LIKE '%clock_timestamp%' AND state = 'idle' AND query_start > current_setting('my.since')::timestamptz") > 0
		}, "PostgreSQL is asked whether it answers")
	}
	assert.NoError(t, tx.Rollback(ctx))
	endReading()
	readers.Wait()
}

func TestStart_PostgresAway_WaitsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	env := append(backends(t), "QUOTASVC_LOG_LEVEL=info")
	link, url := testenv.NewLinkTo(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))
	postgres, attempts := *link.Server.Load(), 0
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer nobody.Close()
	away := nobody.Addr().String()
	link.Server.Store(&away)
	in := serveAway(t, append(env, "QUOTASVC_DATABASE_URL="+url))
	assert.Equal(t, 200, in.ask(t, "/livez").status, "/livez")
	testenv.Eventually(t, func() bool { // the ops listener answers before the first attempt has failed
		got := in.ask(t, "/readyz")
		require.True(t, got.status == 503, "/readyz: %s", got)
		return strings.Contains(string(got.body), "waiting for PostgreSQL")
	}, "/readyz says what it waits for")
	// A load balancer tries the next instance.
	_, err = in.send(t.Context(), "POST", "/v1/check", "", debitOf("acme", "api_calls", 1))
	assert.Error(t, err, "the API listens before it can answer")
	for ; attempts < 3; attempts++ { // and one line
		conn := testenv.Must(t).Get(nobody.Accept())
		_ = conn.Close()
	}
	select {
	case <-in.ended:
		t.Fatal("it ended")
	default:
	}
	link.Server.Store(&postgres)
	_ = nobody.Close()
	in.line("API ")
	testenv.Eventually(t, func() bool { return in.ask(t, "/readyz?strict=1").status == 200 }, "ready")
	in.setUp(t, 1000)
	for _, line := range []string{"waiting for PostgreSQL", "PostgreSQL answers"} {
		assert.Equal(t, 1, strings.Count(in.stderr.String(), line), "lines %q", line)
	}
	in.stop()
}

// serveAway starts an instance on free addresses. The instance may be unable to serve yet, because a server is down.
func serveAway(t testing.TB, env []string) *instance {
	t.Helper()
	return serveAt(t, env, freeAddress(t), freeAddress(t))
}

// serveAt starts an instance on these addresses and returns when the ops listener answers.
func serveAt(t testing.TB, env []string, api, ops string) *instance {
	t.Helper()
	return serveInto(t, nil, env, api, ops)
}

// serveInto starts an instance like serveAt. If output is not nil, all output of the instance goes there.
func serveInto(t testing.TB, output *os.File, env []string, api, ops string) *instance {
	t.Helper()
	in := &instance{
		process: launchInto(t, output, quotasvc(t), env, "serve", "--listen", api, "--ops-listen", ops),
		api:     "http://" + api, ops: "http://" + ops, http: &http.Client{Timeout: testenv.Patience},
	}
	t.Cleanup(in.http.CloseIdleConnections)
	testenv.Eventually(t, func() bool {
		response, err := in.http.Get(in.ops + "/livez")
		if err != nil {
			select {
			case <-in.ended:
				t.Fatalf("it ended: %s", in.stderr.tail())
			default:
			}
			return false
		}
		return response.Body.Close() == nil
	}, "the ops listener answers")
	return in
}

// freeAddress returns an address on loopback that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l := testenv.Must(t).Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

func TestStart_PostgresStaysAway_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	began := time.Now()
	status, _, log := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://quotasvc:hush@" + address + "/quotasvc", "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_START_TIMEOUT=1s",
	}, serveFree...)
	took := time.Since(began)
	assert.True(t, status == 1 && took >= time.Second && strings.Contains(log, "QUOTASVC_DATABASE_URL") &&
		strings.Contains(log, "within 1s"), "%d after %s: %s", status, took, log)
}

func TestStart_StoppedWhileWaiting_EndsWell(t *testing.T) {
	t.Parallel()
	in := serveAway(t, []string{"QUOTASVC_DATABASE_URL=postgres://quotasvc:hush@" + freeAddress(t) + "/quotasvc", "QUOTASVC_ADMIN_KEY=" + testKey})
	in.signal(syscall.SIGTERM)
	assert.Zero(t, in.wait(), "status")
}

// If waiting cannot repair an error, the process ends at once. Its message names the next step.
func TestStart_WrongPasswordOrDatabase_EndsAtOnce(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	good := testenv.Must(t).Get(pgx.ParseConfig(postgres.URL))
	for name, c := range map[string]struct{ url, want string }{
		"password": {strings.Replace(postgres.URL, good.Password, "wrong-password", 1), "password"},
		"database": {strings.Replace(postgres.URL, "/"+good.Database+"?", "/no_such_database?", 1), "no_such_database"},
	} {
		status, _, log := tool(t, []string{"QUOTASVC_DATABASE_URL=" + c.url, "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_START_TIMEOUT=1h"},
			serveFree...)
		assert.True(t, status == 1 && strings.Contains(log, c.want) && strings.Contains(log, "QUOTASVC_DATABASE_URL") &&
			!strings.Contains(log, "wrong-password"), "%s: %d: %s", name, status, log)
	}
}
