package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// ask requests a path of the ops listener.
func (in *instance) ask(t testing.TB, path string) answer {
	t.Helper()
	response, err := in.http.Get(in.ops + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// A load balancer that asks /readyz must not take all instances out at once because their database hangs: checks are answered from the cache.
func TestReadyz_PostgresFrozen_StaysReadyAndSaysSo(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	in := serve(t, append(backends(t), "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL)))
	in.setUp(t, 1000)
	if got := in.ask(t, "/readyz?strict=1"); got.status != 200 || !strings.Contains(string(got.body), `"postgresql":"ok"`) || !strings.Contains(string(got.body), `"redis":"ok"`) {
		t.Fatalf("well: %s", got)
	}
	postgres.Pause()
	defer postgres.Resume()
	eventually(t, "the body says that PostgreSQL is away", func() bool {
		got := in.ask(t, "/readyz")
		if got.status != 200 {
			t.Fatalf("PostgreSQL is frozen: %s", got)
		}
		return !strings.Contains(string(got.body), `"postgresql":"ok"`)
	})
	if got := in.ask(t, "/readyz?strict=1"); got.status != 503 {
		t.Errorf("strict: %s", got)
	}
	if got := in.ask(t, "/metrics"); !strings.Contains(string(got.body), "quotasvc_postgresql_up 0\n") || !strings.Contains(string(got.body), "quotasvc_redis_up 1\n") {
		t.Errorf("/metrics has no quotasvc_postgresql_up 0 or no quotasvc_redis_up 1")
	}
	began := time.Now()
	var askers sync.WaitGroup
	for range 50 { // asking does not ask PostgreSQL
		askers.Go(func() { in.ask(t, "/readyz") })
	}
	askers.Wait()
	if took := time.Since(began); took > time.Second {
		t.Errorf("50 questions at once took %s", took)
	}
	postgres.Resume()
	eventually(t, "PostgreSQL is back", func() bool {
		return in.ask(t, "/readyz?strict=1").status == 200 && strings.Contains(string(in.ask(t, "/metrics").body), "quotasvc_postgresql_up 1\n")
	})
}

// Slow reports of one tenant must not make the instance look ill.
func TestReadyz_ReadersBusy_PostgresIsUp(t *testing.T) {
	t.Parallel()
	env := backends(t)
	in := serve(t, env)
	in.setUp(t, 1000)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, testenv.AsSuperuser(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL=")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE entries, balances IN ACCESS EXCLUSIVE MODE"); err != nil { // reads take as long as they may
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 12 {
		for _, path := range []string{"/v1/tenants/acme/balances", "/v1/tenants/acme/entries"} {
			readers.Go(func() { _, _ = in.send(ctx, "GET", path, "", nil) })
		}
	}
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got := in.ask(t, "/readyz?strict=1"); got.status != 200 {
			t.Errorf("with busy readers: %s", got)
			break
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	readers.Wait()
}

func TestStart_PostgresAway_WaitsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	postgres.Stop()
	in := serveAway(t, append(backends(t), "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL), "QUOTASVC_LOG_LEVEL=info"))
	if got := in.ask(t, "/livez"); got.status != 200 {
		t.Errorf("/livez: %s", got)
	}
	eventually(t, "/readyz says what it waits for", func() bool { // the ops listener answers before the first attempt has failed
		got := in.ask(t, "/readyz")
		if got.status != 503 {
			t.Fatalf("/readyz: %s", got)
		}
		return strings.Contains(string(got.body), "waiting for PostgreSQL")
	})
	if got, err := in.send(t.Context(), "POST", "/v1/check", "", debitOf("acme", "api_calls", 1)); err == nil { // a load balancer tries the next instance
		t.Errorf("the API listens before it can answer: %s", got)
	}
	time.Sleep(time.Second) // some attempts, one line
	select {
	case <-in.ended:
		t.Fatal("it ended")
	default:
	}
	postgres.Start()
	in.line("API ")
	eventually(t, "ready", func() bool { return in.ask(t, "/readyz?strict=1").status == 200 })
	in.setUp(t, 1000)
	log := in.stderr.String()
	if n := strings.Count(log, "waiting for PostgreSQL"); n != 1 {
		t.Errorf("%d lines say that it waits:\n%s", n, log)
	}
	if n := strings.Count(log, "PostgreSQL answers"); n != 1 {
		t.Errorf("%d lines say that the wait is over:\n%s", n, log)
	}
	in.stop()
}

// serveAway starts an instance that perhaps cannot start yet, on free addresses.
func serveAway(t testing.TB, env []string) *instance {
	t.Helper()
	return serveAt(t, env, freeAddress(t), freeAddress(t))
}

// serveAt starts an instance on these addresses and returns when the ops listener answers.
func serveAt(t testing.TB, env []string, api, ops string) *instance {
	t.Helper()
	in := &instance{
		process: launch(t, env, "serve", "--listen", api, "--ops-listen", ops),
		api:     "http://" + api, ops: "http://" + ops, http: &http.Client{Timeout: soon},
	}
	t.Cleanup(in.http.CloseIdleConnections)
	eventually(t, "the ops listener answers", func() bool {
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
	})
	return in
}

// freeAddress returns an address on loopback that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestStart_PostgresStaysAway_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	began := time.Now()
	status, _, log := tool(t, []string{
		"QUOTASVC_DATABASE_URL=postgres://quotasvc:hush@" + address + "/quotasvc", "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_START_TIMEOUT=1s",
	}, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	if took := time.Since(began); status != 1 || took < time.Second || !strings.Contains(log, "QUOTASVC_DATABASE_URL") || !strings.Contains(log, "within 1s") {
		t.Errorf("%d after %s: %s", status, took, log)
	}
}

func TestStart_StoppedWhileWaiting_EndsWell(t *testing.T) {
	t.Parallel()
	in := serveAway(t, []string{"QUOTASVC_DATABASE_URL=postgres://quotasvc:hush@" + freeAddress(t) + "/quotasvc", "QUOTASVC_ADMIN_KEY=" + testKey})
	in.signal(syscall.SIGTERM)
	if status := in.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
}

// What waiting cannot mend ends the process at once, with the next step.
func TestStart_WrongPasswordOrDatabase_EndsAtOnce(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	good, err := pgx.ParseConfig(postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, want string }{
		"password": {strings.Replace(postgres.URL, good.Password, "wrong-password", 1), "password"},
		"database": {strings.Replace(postgres.URL, "/"+good.Database+"?", "/no_such_database?", 1), "no_such_database"},
	} {
		began := time.Now()
		status, _, log := tool(t, []string{"QUOTASVC_DATABASE_URL=" + c.url, "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_START_TIMEOUT=20s"},
			"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
		if status != 1 || time.Since(began) > 10*time.Second || !strings.Contains(log, c.want) || !strings.Contains(log, "QUOTASVC_DATABASE_URL") || strings.Contains(log, "wrong-password") {
			t.Errorf("%s: %d after %s: %s", name, status, time.Since(began), log)
		}
	}
}
