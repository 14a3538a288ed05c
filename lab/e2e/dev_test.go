package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func execSQL(t *testing.T, databaseURL, statement string) {
	t.Helper()
	testenv.Exec(t, testenv.Connect(t, databaseURL), statement)
}

// keyFile is the name of the file with the administrator's key, in the data directory of `quotasvc dev`.
const keyFile = "admin.key"

// introduction is a running `quotasvc dev` with the parts of the text that it prints at its start.
type introduction struct {
	*process
	api, key, console string

	commands []string
}

// launchDev starts dev with only the tenant of its introduction. It starts dev without the demo, because the demo
// takes long on a busy machine.
func launchDev(t *testing.T, dir string) *introduction {
	t.Helper()
	return introduced(launch(t, nil, "dev", "--no-demo", "--dir", dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "warn"))
}

// launchDemo starts dev as `make run` does.
func launchDemo(t *testing.T, dir string) *introduction {
	t.Helper()
	return introduced(launch(t, nil, "dev", "--dir", dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "warn"))
}

// introduced waits until dev has printed its introduction.
func introduced(p *process) *introduction {
	p.t.Helper()
	in := &introduction{process: p, api: p.line("  API "), console: p.line("  console "), key: p.line("  key ")}
	p.line("Ctrl-C")
	for line := range strings.Lines(p.stdout.String()) {
		if strings.HasPrefix(line, "curl ") || strings.HasPrefix(line, "for ") {
			in.commands = append(in.commands, strings.TrimSpace(line))
		}
	}
	return in
}

// paste runs a command in a shell and returns its output.
func paste(t *testing.T, command string) string {
	t.Helper()
	_, err := exec.LookPath("curl")
	require.NoError(t, err, "this test pastes curl commands: install curl")
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	require.NoError(t, err, "%s: %v\n%s", command, err, out)
	return string(out)
}

func TestDev_Introduction_CommandsWorkDataSurvives(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := launchDemo(t, dir)
	ahead := first.roomInTheHour(t)
	story := first.story(t, ahead)
	for i, step := range []struct {
		again  int // number of times that the command is pasted
		expect []string
	}{
		{1, []string{`"meter":"api_calls"`, `"remaining":5`}},
		{2, []string{"200 OK", "X-Quota-Remaining: 2", "Idempotent-Replayed: true"}},
		{1, []string{"429 Too Many Requests", "quota_exceeded", "X-Quota-Remaining: 2", "Retry-After: "}},
		{1, []string{"402 Payment Required", "credits_exhausted", "X-Quota-Remaining: 0"}},
		{1, []string{"201 Created", `"source":"topup"`}},
		{4, []string{"200 OK", `"allowed":true`, `"remaining":100`, "RateLimit: \"demo-search\";r=3"}},
		{1, []string{"200 OK", "429 Too Many Requests", "rate_limited", "demo-search", "X-Quota-Remaining: 97"}},
		{1, []string{`"items":[`, `"kind":"debit"`, `"kind":"grant"`}},
	} {
		var printed strings.Builder
		for range step.again {
			printed.WriteString(paste(t, first.commands[i]))
		}
		for _, want := range step.expect {
			assert.Contains(t, printed.String(), want,
				"command %d: no %s in what it prints:\n%s\n", i+1, want, first.commands[i])
		}
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	assert.True(t, err == nil && info.Mode().Perm() == 0o600, "the key's file: %v, %v; want mode 0600", info, err)

	// A second dev in the same directory does not start.
	fails(t, nil, 1, "(pid ", "dev", "--dir", dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")

	first.signal(syscall.SIGINT)
	assert.Zero(t, first.wait(), "dev after Ctrl-C; its log:\n%s", first.stderr.tail())
	second := launchDemo(t, dir)
	assert.True(t, second.key == first.key, "the key has changed")
	assert.Equal(t, story, second.story(t, ahead), "the second start tells another story")
	left := paste(t,
		"curl -s '"+second.api+"/v1/tenants/demo/balances/ai_credits' -H 'Authorization: Bearer "+second.key+"'")
	assert.Contains(t, left, `"remaining":97`, "after a restart the balance is\n")
	second.signal(syscall.SIGINT)
	second.wait()
}

// story fails the test unless the demo is complete and the clock is the given number of seconds ahead of the present.
// It returns the newest entries of some tenants, which must be the same after the next start.
func (in *introduction) story(t *testing.T, ahead int) string {
	t.Helper()
	ask := func(path string) string {
		return paste(t, "curl -s '"+in.api+path+"' -H 'Authorization: Bearer "+in.key+"'")
	}
	assert.Contains(t, ask("/v1/test/clock"), fmt.Sprintf(`"offset_seconds":%d}`, ahead),
		"the clock is not %d s ahead of the present", ahead)
	lines := strings.Count(ask("/v1/audit?action=clock.advance&limit=100"), `"clock.advance"`)
	assert.LessOrEqual(t, lines, 1, "the audit log has steps of the demo's clock; only this test's own may be there")
	var told strings.Builder
	for path, want := range map[string]string{
		"/v1/tenants/acme/balances/ai_credits":              `"remaining":12,`,
		"/v1/tenants/acme/denials":                          `"available":12,"code":"credits_exhausted"`,
		"/v1/tenants/acme/terms":                            "upgrade, ticket 1203",
		"/v1/tenants/initech":                               `"status":"suspended"`,
		"/v1/tenants/globex/entries?kind=adjust_up&limit=5": "demo-adjust",
		"/v1/tenants/hooli/holds":                           "render-8841",
		"/v1/limits/render-strict":                          `"mode":"shadow"`,
	} {
		testenv.Eventually(t, func() bool { return strings.Contains(ask(path), want) }, path, " has ", want) // refusals are stored a second later
	}
	for _, tenant := range []string{"acme", "globex", "hooli", "umbrella"} {
		told.WriteString(ask("/v1/tenants/" + tenant + "/entries?meter=ai_credits&order=desc&limit=1"))
	}
	return told.String()
}

// roomInTheHour moves dev's clock into the next hour if the current hour ends soon. At the end of an hour the demo's
// allowance is renewed, which would change the numbers in the introduction. roomInTheHour returns the number of
// seconds by which dev's clock is then ahead.
func (in *introduction) roomInTheHour(t *testing.T) (ahead int) {
	t.Helper()
	if left := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); left < testenv.Patience {
		ahead = int(left.Seconds()) + 1
		paste(t, fmt.Sprintf(`curl -sSf %s/v1/test/clock -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"advance":"%ds"}'`, in.api, in.key, ahead))
	}
	return ahead
}

func TestDev_InterruptedStart_LeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := launch(t, nil, "dev", "--dir", dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "info")
	p.logged("creating the PostgreSQL data directory", 1)
	p.signal(syscall.SIGINT)
	assert.Equal(t, exitInterrupted, p.wait(), "its log:\n%s", p.stderr.tail())
	again := launchDev(t, dir) // the directory is free, and unfinished data is created again
	again.signal(syscall.SIGINT)
	again.wait()
}

// databaseOfDev returns the URL of the PostgreSQL that a dev with the data directory dir has started.
func databaseOfDev(t *testing.T, dir string) string {
	t.Helper()
	read := func(path string) string {
		return strings.TrimSpace(string(testenv.Must(t).Get(os.ReadFile(path))))
	}
	place := filepath.Join(dir, "postgres")
	if _, err := os.Stat(place + ".path"); err == nil {
		place = read(place + ".path")
	}
	port := strings.Split(read(filepath.Join(place, "data", "postmaster.pid")), "\n")[3]
	return "postgres://quotasvc:" + read(filepath.Join(place, "password")) + "@127.0.0.1:" + port + "/quotasvc?sslmode=disable"
}

// The ledger's time survives a restart of dev. It also applies to commands on dev's database. No other process may
// serve that database.
func TestDev_TestClock_KeepsItsTime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, keyFile), []byte(testKey), 0o600)); err != nil { //nolint:gosec // PostgreSQL's user must enter it
		t.Fatal(err)
	}
	first := launchDev(t, dir)
	type moved struct {
		Now    time.Time `json:"now"`
		Offset int64     `json:"offset_seconds"`
	}
	on := func(in *introduction) *instance {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		return &instance{process: in.process, api: in.api, http: &http.Client{Transport: transport, Timeout: testenv.Patience}}
	}
	dev := on(first)
	dev.do(t, http.StatusCreated, "POST", "/v1/tenants/demo/grants", "promo", object{
		"meter": "ai_credits", "amount": 50, "source": "promo", "expires_at": time.Now().Add(30 * 24 * time.Hour).UTC().Format(time.RFC3339),
	})
	dev.do(t, http.StatusOK, "POST", "/v1/debits", "before", debitOf("demo", "api_calls", 5))
	assert.EqualValues(t, 50, dev.balance(t, "demo", "ai_credits").Remaining, "credits before")
	var c moved
	// The clock moves beyond the months whose partitions were created at the start. On a slow machine, the creation
	// of further partitions takes longer than a request may. Created partitions stay, so a later attempt succeeds.
	var ahead answer
	testenv.Eventually(t, func() (done bool) {
		var err error
		ahead, err = dev.send(t.Context(), "POST", "/v1/test/clock", "", object{"advance": "800d"})
		return err != nil || ahead.status != http.StatusServiceUnavailable
	}, "the clock moves")
	require.True(t, ahead.status == http.StatusOK, "the clock did not move: %d %s", ahead.status, ahead.body)
	ahead.into(t, &c)
	assert.EqualValues(t, 800*24*3600, c.Offset)
	assert.Zero(t, dev.balance(t, "demo", "ai_credits").Remaining, "credits after %+v", c)
	assert.EqualValues(t, 5, dev.balance(t, "demo", "api_calls").Remaining, "calls in a new hour")
	dev.do(t, http.StatusOK, "POST", "/v1/debits", "after", debitOf("demo", "api_calls", 2))
	env := []string{"QUOTASVC_DATABASE_URL=" + databaseOfDev(t, dir), "QUOTASVC_ADMIN_KEY=" + testKey}
	must(t, env, "roll")
	must(t, env, "verify")
	fails(t, env, 1, "test clock", serveFree...)
	first.signal(syscall.SIGINT)
	first.wait()

	second := launchDev(t, dir)
	dev = on(second)
	again := decoded[moved](t, dev.do(t, http.StatusOK, "GET", "/v1/test/clock", "", nil))
	assert.True(t, again.Offset == c.Offset && !again.Now.Before(c.Now) &&
		!again.Now.After(time.Now().Add(time.Duration(c.Offset+1)*time.Second)), "%+v after a restart, %+v before", again, c)
	assert.Zero(t, dev.balance(t, "demo", "ai_credits").Remaining, "credits after a restart")
	dev.do(t, http.StatusOK, "POST", "/v1/debits", "again", debitOf("demo", "api_calls", 1))
	second.signal(syscall.SIGINT)
	second.wait()
}

// `quotasvc serve` has no route that moves its time.
func TestServe_TestClock_IsNotFound(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	in.do(t, http.StatusNotFound, "POST", "/v1/test/clock", "", object{"advance": "31d"})
	in.do(t, http.StatusNotFound, "GET", "/v1/test/clock", "", nil)
}
