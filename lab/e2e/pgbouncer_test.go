package e2e

import (
	"errors"
	"fmt"
	"net/http"
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
	server := urlOf(t, urls[0])
	dir, err := os.MkdirTemp("", "quotasvc-pgbouncer-") //nolint:usetesting // it runs as another user, who cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var users strings.Builder
	for _, u := range urls {
		password, _ := urlOf(t, u).User.Password()
		fmt.Fprintf(&users, "%q %q\n", urlOf(t, u).User.Username(), password)
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
		require.NoError(t, os.Chmod(dir, 0o755))
		for name, text := range map[string]string{"pgbouncer.ini": config, "users": users.String()} {
			path := filepath.Join(dir, name)
			require.NoError(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o644)))
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
		p := urlOf(t, u)
		p.Host = address
		through = append(through, p.String())
	}
	return through
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
	own := testenv.Must(t).Get(filepath.Abs("../../bin/pgbouncer"))
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
		return in.send(t.Context(), "POST", "/v1/debits", key, debitOf("acme", "api_calls", 1))
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
	must(t, env, "apply", "-f", write(t, "catalog.yaml", "meters:\n  - {meter: heard, unit: call}\n"))
	began := time.Now()
	testenv.Eventually(t, func() bool {
		got, err := in.send(t.Context(), "GET", "/v1/meters/heard", "", nil)
		return err == nil && got.status == http.StatusOK
	}, "the new meter is known")
	testenv.Eventually(t, func() bool { return strings.Contains(in.metrics(t), "quotasvc_catalog_listening 1") }, "notifications arrive")
	assert.LessOrEqual(t, time.Since(began), 15*time.Second, "the change was seen late")

	// The settings of sessions are effective: after lock_timeout, a locked balance is set aside.
	db := testenv.Connect(t, server.URL)
	testenv.Exec(t, db, "BEGIN; SELECT FROM balances WHERE tenant_id = 'acme' FOR UPDATE")
	ended := make(chan answer, 1)
	go func() { got, _ := debit("locked"); ended <- got }()
	testenv.Eventually(t, func() bool { return strings.Contains(in.metrics(t), "quotasvc_ledger_locked_balances 1") }, "the locked balance is set aside")
	testenv.Exec(t, db, "ROLLBACK")
	<-ended
	sure("locked")

	server.Kill()
	_, _ = debit("away") // this answer does not matter; the next one does
	server.Start()
	sure("away")
	for _, args := range [][]string{{"migrate", "status"}, {"roll"}, {"verify", "--full"}, {"keys", "list"}} {
		must(t, env, args...)
	}
	in.acme().wantLeft(t, 1000-12)
	in.stop()
}

func TestPgBouncer_SharedSessions_RefusedAtStart(t *testing.T) {
	t.Parallel()
	direct := testenv.PostgresService(t)
	for _, mode := range []string{"transaction", "statement"} {
		through := pgbouncer(t, mode, poolEnough, direct)[0]
		reports := append(backends(t), "QUOTASVC_REPORT_DATABASE_URL="+through)
		fails(t, reports, 1, "QUOTASVC_REPORT_DATABASE_URL", serveFree...)
		env := append(backends(t), "QUOTASVC_DATABASE_URL="+through)
		for _, args := range [][]string{serveFree, {"roll"}, {"keys", "list"}} {
			fails(t, env, 1, "pool_mode = session", args...)
		}
	}
}

func TestPgBouncer_UnknownParameter_RefusedAtStart(t *testing.T) {
	t.Parallel()
	u := urlOf(t, pgbouncer(t, "session", poolEnough, testenv.PostgresService(t))[0])
	q := u.Query()
	q.Set("work_mem", "8MB")
	u.RawQuery = q.Encode()
	status, _, log := tool(t, append(backends(t), "QUOTASVC_DATABASE_URL="+u.String()), serveFree...)
	assert.True(t, status == 1 && strings.Contains(log, "ignore_startup_parameters") &&
		strings.Contains(log, "work_mem"), "status %d\n%s", status, log)
}

func TestPgBouncer_PoolTooSmall_SaysSo(t *testing.T) {
	t.Parallel()
	env := append(backends(t), "QUOTASVC_DATABASE_URL="+pgbouncer(t, "session", 1, testenv.PostgresService(t))[0])
	fails(t, env, 1, "pool_size", append(serveFree, "--start-timeout", "1s")...)
}
