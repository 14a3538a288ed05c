package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// authorized sends GET /v1/meters with a key and returns the status of the answer.
func (in *instance) authorized(t testing.TB, key string) int {
	t.Helper()
	return fetch(t, in.http, http.MethodGet, in.api+"/v1/meters", "", "Authorization", "Bearer "+key).status
}

// After a rotation without a restart, new connections use the new password, and the next request needs the new key.
func TestSecrets_FilesAndHangup_RotateWithoutRestart(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	owner := testenv.Connect(t, postgres.URL)
	run := func(sql string) {
		t.Helper()
		testenv.Exec(t, owner, sql)
	}
	run("CREATE ROLE rotating SUPERUSER LOGIN PASSWORD 'first-password'")
	withPassword := func(password string) string {
		u := urlOf(t, postgres.URL)
		u.User = url.UserPassword("rotating", password)
		return u.String()
	}
	first, second := strings.Repeat("first-key-", 4), strings.Repeat("second-key", 4)
	in := serve(t, []string{
		"QUOTASVC_DATABASE_URL_FILE=" + put("database", withPassword("first-password")+"\n"), "QUOTASVC_REDIS_URL_FILE=" + put("redis", testenv.RedisURL(t)+"\n"),
		"QUOTASVC_ADMIN_KEY_FILE=" + put("key", first+"\n"),
	})
	a, b := in.authorized(t, first), in.authorized(t, second)
	require.True(t, a == 200 && b == 401, "before: %d, %d", a, b)
	run("ALTER ROLE rotating PASSWORD 'second-password'")
	put("database", withPassword("second-password"))
	put("key", second+"\r\n")
	in.signal(syscall.SIGHUP)
	in.logged("read again", 1)
	a, b = in.authorized(t, first), in.authorized(t, second)
	assert.True(t, a == 401 && b == 200, "after: %d, %d", a, b)
	run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotating'") // all connections are new ones
	testenv.Eventually(t, func() bool {
		return in.authorized(t, second) == 200 && in.ask(t, "/readyz?strict=1").status == 200
	}, "it works on new connections")
	testenv.Eventually(t, func() bool { return strings.Contains(in.stderr.String(), "are received again") }, "notifications are received again")
	// Values that cannot be used change nothing.
	put("key", "short")
	put("database", "not a URL: hush-hush")
	in.signal(syscall.SIGHUP)
	in.logged("the old ones stay", 1)
	assert.Equal(t, 200, in.authorized(t, second), "after a broken file")
	put("key", second)
	put("database", strings.Replace(withPassword("second-password"), "127.0.0.1", "127.0.0.2", 1))
	in.signal(syscall.SIGHUP)
	in.logged("need a restart", 4) // three reloads, and one line about the host
	for _, secret := range []string{"password\"", "first-p", "second-p", "hush"} {
		assert.NotContains(t, in.stderr.String(), secret, "the log tells a secret")
	}
	in.stop()
}

func TestSecrets_WrongFiles_Named(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, c := range map[string]struct {
		env  []string
		args []string
		want []string
	}{
		"both":     {[]string{"QUOTASVC_DATABASE_URL=postgres://a:hush@127.0.0.1/b", "QUOTASVC_DATABASE_URL_FILE=" + empty}, []string{"roll"}, []string{"QUOTASVC_DATABASE_URL)", "QUOTASVC_DATABASE_URL_FILE"}},
		"no file":  {[]string{"QUOTASVC_DATABASE_URL_FILE=" + dir + "/none"}, []string{"roll"}, []string{"QUOTASVC_DATABASE_URL_FILE", "cannot be read"}},
		"empty":    {[]string{"QUOTASVC_REDIS_URL_FILE=" + empty}, []string{"verify"}, []string{"QUOTASVC_REDIS_URL_FILE", "is empty"}},
		"key":      {[]string{"QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_ADMIN_KEY_FILE=" + empty}, []string{"serve"}, []string{"QUOTASVC_ADMIN_KEY_FILE", "QUOTASVC_ADMIN_KEY)"}},
		"dev-only": {[]string{"QUOTASVC_ADMIN_KEY=dev-only-admin-key-0123456789abcdef"}, []string{"serve"}, []string{"QUOTASVC_ADMIN_KEY", "dev-only"}},
	} {
		status, _, log := tool(t, c.env, c.args...)
		for _, want := range c.want {
			assert.True(t, status == exitUsage && strings.Contains(log, want) && !strings.Contains(log, "hush"),
				"%s: %d, lacks %q:\n%s", name, status, want, log)
		}
	}
}

func TestHangup_OtherCommands_GoOn(t *testing.T) {
	t.Parallel()
	env := backends(t)
	roll := launch(t, append(env, "QUOTASVC_LOG_LEVEL=info"), "roll", "--every", "1h")
	roll.logged("roll", 1)
	for range 3 {
		roll.signal(syscall.SIGHUP)
	}
	roll.stop()
}

func TestSecrets_CommandLine_Warned(t *testing.T) {
	t.Parallel()
	closed := "postgres://u:hush@" + freeAddress(t) + "/d"
	_, _, log := tool(t, nil, "migrate", "status", "--database-url", closed)
	assert.True(t, strings.Contains(log, "a secret is on the command line") && strings.Contains(log, "QUOTASVC_DATABASE_URL_FILE") &&
		!strings.Contains(log, "hush"), "%s", log)
	_, _, log = tool(t, []string{"QUOTASVC_DATABASE_URL=" + closed}, "migrate", "status")
	assert.NotContains(t, log, "command line")
}

// TestSecrets_AllOutput_TellsNone creates secrets, uses them, and searches all output of the service for them.
func TestSecrets_AllOutput_TellsNone(t *testing.T) {
	t.Parallel()
	postgres, redis := testenv.PostgresPrivate(t), testenv.RedisPrivate(t)
	database, err := pgx.ParseConfig(postgres.URL)
	require.NoError(t, err)
	redisPassword, _ := urlOf(t, redis.URL).User.Password()
	const wrong = "wrong-key-0123456789abcdef-0123456789abcdef"
	secrets := map[string]string{
		"the admin key": testKey, "PostgreSQL's password": database.Password, "Redis' password": redisPassword, "a wrong key": wrong,
		"the admin key, encoded": base64.StdEncoding.EncodeToString([]byte(testKey)), "the password of a bad URL": "hush-0123456789",
	}
	var shown bytes.Buffer
	env := using(postgres.URL, redis.URL, "QUOTASVC_LOG_LEVEL=debug", "QUOTASVC_PPROF=true",
		"QUOTASVC_START_TIMEOUT=5s")
	in := serve(t, env).setUp(t, 1000)
	use := func() {
		for _, path := range []string{"/v1/check", "/v1/debits", "/v1/consume", "/v1/nothing", "/v1/tenants/acme/grants"} {
			if got, err := in.send(t.Context(), "POST", path, fmt.Sprint("k", shown.Len()), debitOf("acme", "api_calls", 1)); err == nil {
				fmt.Fprintln(&shown, got, got.header)
			}
		}
		for _, header := range []string{"Bearer " + wrong, wrong, "Basic " + wrong, "Bearer " + testKey + "x"} {
			got, err := exchange(t.Context(), in.http, http.MethodPost, in.api+"/v1/debits?key="+wrong,
				`{"key":"`+wrong+`"}`, "Authorization", header)
			if err == nil {
				fmt.Fprintln(&shown, got, got.header)
			}
		}
	}
	look := func() {
		for _, path := range []string{
			"/livez", "/readyz", "/readyz?strict=1", "/metrics", "/log-level", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
			"/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1", "/debug/pprof/symbol",
		} {
			fmt.Fprintln(&shown, in.ask(t, path))
		}
	}
	use()
	look()
	postgres.Pause()
	testenv.Eventually(t, func() bool { return in.ask(t, "/readyz?strict=1").status == 503 }, "PostgreSQL is away")
	redis.Stop()
	use()
	look()
	postgres.Resume()
	redis.Start()
	in.signal(syscall.SIGHUP)
	in.logged("SIGHUP", 1)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", in.cmd.Process.Pid))
	if err != nil {
		t.Log("no /proc here:", err)
	}
	shown.Write(line)
	in.stop()
	shown.WriteString(in.stdout.String() + in.stderr.String())

	// These are commands with wrong URLs.
	for _, bad := range []string{
		"postgres://u:hush-0123456789@" + freeAddress(t) + "/d", "postgres://u:hush-0123456789@[::1/d", "postgres://u:hush-0123456789@h:port/d",
		"host=127.0.0.1 password=hush-0123456789 port=none", strings.Replace(postgres.URL, database.Password, "hush-0123456789", 1),
	} {
		for _, command := range [][]string{serveFree, {"migrate", "status"}, {"roll"}, {"verify"}} {
			_, stdout, stderr := tool(t,
				using(bad, "redis://:hush-0123456789@127.0.0.1:1", "QUOTASVC_START_TIMEOUT=100ms"), command...)
			shown.WriteString(stdout + stderr)
		}
	}
	assert.True(t, shown.Len() >= 50_000, "only %d bytes were looked at", shown.Len())
	for what, text := range secrets {
		if at := strings.Index(shown.String(), text); text != "" && at >= 0 {
			t.Errorf("%s is shown: ...%s...", what, shown.String()[max(0, at-300):min(shown.Len(), at+60)])
		}
	}
}
