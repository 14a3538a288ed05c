package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// poolEnough is a pool size that is greater than the number of connections of an instance and a command.
const poolEnough = 40

// pgbouncer starts PgBouncer with a pool mode in front of a PostgreSQL server. size is the number of connections for
// each user. All urls must be URLs of that server. pgbouncer returns the same URLs with PgBouncer's address. If the
// program is missing, the test fails, or is skipped if QUOTASVC_TEST_WITHOUT names PgBouncer.
func pgbouncer(t testing.TB, mode string, size int, urls ...string) []string {
	t.Helper()
	binary, libraries := pgbouncerProgram(t)
	server := parsed(t, urls[0])
	dir, err := os.MkdirTemp("", "quotasvc-pgbouncer-") //nolint:usetesting // it runs as another user, who cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var users strings.Builder
	for _, u := range urls {
		password, _ := parsed(t, u).User.Password()
		fmt.Fprintf(&users, "%q %q\n", parsed(t, u).User.Username(), password)
	}
	address := onFreePort(t, func(address string) *exec.Cmd {
		config := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s/users
pool_mode = %s
default_pool_size = %d
server_login_retry = 0.1
`, server.Hostname(), server.Port(), address[strings.LastIndex(address, ":")+1:], dir, mode, size)
		readable(t, dir, 0o755)
		for name, text := range map[string]string{"pgbouncer.ini": config, "users": users.String()} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			readable(t, filepath.Join(dir, name), 0o644)
		}
		args := []string{filepath.Join(dir, "pgbouncer.ini")}
		if os.Geteuid() == 0 { // PgBouncer does not run as root
			args = append([]string{"-u", "nobody"}, args...)
		}
		cmd := exec.Command(binary, args...)
		if libraries != "" {
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries)
		}
		return cmd
	})
	var through []string
	for _, u := range urls {
		p := parsed(t, u)
		p.Host = address
		through = append(through, p.String())
	}
	return through
}

func readable(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.Chmod(path, mode))
}

func parsed(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// pgbouncerProgram returns the path of PgBouncer, which is installed or in bin/pgbouncer. In the second case it also
// returns the directory of PgBouncer's libraries.
func pgbouncerProgram(t testing.TB) (binary, libraries string) {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, ""
		}
	}
	own, err := filepath.Abs("../../bin/pgbouncer")
	require.NoError(t, err)
	if path, err := exec.LookPath(filepath.Join(own, "pgbouncer")); err == nil {
		return path, own
	}
	if slices.Contains(strings.Split(os.Getenv("QUOTASVC_TEST_WITHOUT"), ","), "pgbouncer") {
		t.Skip("there is no PgBouncer")
	}
	t.Fatal("there is no PgBouncer: run `make test-tools`, install the package pgbouncer, or set QUOTASVC_TEST_WITHOUT=pgbouncer to skip the test")
	return "", ""
}

func TestPgBouncer_SessionMode_ServesAndFollows(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	through := pgbouncer(t, "session", poolEnough, testenv.AsService(server.URL), server.URL)
	env := append(backends(t), "QUOTASVC_DATABASE_URL="+through[0])
	in := serve(t, env).setUp(t, 1000)
	debit := func(key string) (answer, error) {
		return in.send(t.Context(), "POST", "/v1/debits", key, object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	sure := func(key string) {
		t.Helper()
		testenv.Eventually(t, func() bool { got, err := debit(key); return err == nil && got.status == http.StatusOK }, "debit ", key)
	}
	for i := range 10 {
		in.do(t, http.StatusOK, "POST", "/v1/debits", fmt.Sprint("before-", i), object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	in.do(t, http.StatusOK, "POST", "/v1/check", "", object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}})

	// Notifications arrive. Without them, an instance sees a change by another process only after up to 30 s.
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	require.NoError(t, os.WriteFile(file, []byte("meters:\n  - {meter: heard, unit: call}\n"), 0o600))
	must(t, env, "apply", "-f", file)
	began := time.Now()
	testenv.Eventually(t, func() bool {
		got, err := in.send(t.Context(), "GET", "/v1/meters/heard", "", nil)
		return err == nil && got.status == http.StatusOK
	}, "the new meter is known")
	testenv.Eventually(t, func() bool { return strings.Contains(in.metrics(t), "quotasvc_catalog_listening 1") }, "notifications arrive")
	took := time.Since(began)
	assert.True(t, took <= 15*time.Second, "the change was seen after %s", took)

	// The settings of sessions are effective: after lock_timeout, a locked balance is set aside.
	db := connectTo(t, server.URL)
	runSQL(t, db, "BEGIN; SELECT FROM balances WHERE tenant_id = 'acme' FOR UPDATE")
	ended := make(chan answer, 1)
	go func() { got, _ := debit("locked"); ended <- got }()
	testenv.Eventually(t, func() bool { return strings.Contains(in.metrics(t), "quotasvc_ledger_locked_balances 1") }, "the locked balance is set aside")
	runSQL(t, db, "ROLLBACK")
	<-ended
	sure("locked")

	server.Kill()
	_, _ = debit("away") // this answer does not matter; the next one does
	server.Start()
	sure("away")
	for _, args := range [][]string{{"migrate", "status"}, {"roll"}, {"verify", "--full"}, {"keys", "list"}} {
		must(t, env, args...)
	}
	left := in.balance(t, "acme", "api_calls").Remaining
	assert.True(t, left == 1000-12, "%d are left of 1000 after 12 debits", left)
	in.stop()
}

func TestPgBouncer_SharedSessions_RefusedAtStart(t *testing.T) {
	t.Parallel()
	direct := testenv.PostgresService(t)
	for _, mode := range []string{"transaction", "statement"} {
		through := pgbouncer(t, mode, poolEnough, direct)[0]
		reports := append(backends(t), "QUOTASVC_REPORT_DATABASE_URL="+through)
		if status, _, log := tool(t, reports, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"); status != 1 || !strings.Contains(log, "QUOTASVC_REPORT_DATABASE_URL") {
			t.Errorf("%s mode, for reports: status %d\n%s", mode, status, log)
		}
		env := append(backends(t), "QUOTASVC_DATABASE_URL="+through)
		for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, {"roll"}, {"keys", "list"}} {
			status, _, log := tool(t, env, args...)
			assert.True(t, status == 1 && strings.Contains(log, "pool_mode = session"),
				"%s mode: quotasvc %s: status %d\n%s", mode, args[0], status, log)
		}
	}
}

func TestPgBouncer_UnknownParameter_RefusedAtStart(t *testing.T) {
	t.Parallel()
	u := parsed(t, pgbouncer(t, "session", poolEnough, testenv.PostgresService(t))[0])
	q := u.Query()
	q.Set("work_mem", "8MB")
	u.RawQuery = q.Encode()
	status, _, log := tool(t, append(backends(t), "QUOTASVC_DATABASE_URL="+u.String()), "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	assert.True(t, status == 1 && strings.Contains(log, "ignore_startup_parameters") &&
		strings.Contains(log, "work_mem"), "status %d\n%s", status, log)
}

func TestPgBouncer_PoolTooSmall_SaysSo(t *testing.T) {
	t.Parallel()
	env := append(backends(t), "QUOTASVC_DATABASE_URL="+pgbouncer(t, "session", 1, testenv.PostgresService(t))[0])
	status, _, log := tool(t, env, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--start-timeout", "1s")
	assert.True(t, status == 1 && strings.Contains(log, "pool_size"), "status %d\n%s", status, log)
}
