package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// machine imitates a host as docs/operations expects it: PostgreSQL with an administrator, Redis, sudo and
// systemctl.
type machine struct {
	t    *testing.T
	root string // the directory that replaces /
	env  []string
	said *strings.Replacer
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the page is for Linux")
	}
	promtool, as := programOf(t, "promtool"), "" // as: prefix of PostgreSQL's commands
	for _, name := range []string{"bash", "openssl", "curl", "redis-cli"} {
		programOf(t, name)
	}
	if os.Geteuid() == 0 {
		name := "postgres"
		if _, err := user.Lookup(name); err != nil {
			name = "nobody" // as internal/lab/localstack chooses
		}
		as = programOf(t, "setpriv") + " --reuid=" + name + " --regid=$(id -g " + name + ") --clear-groups "
	}
	root, err := os.MkdirTemp("", "quotasvc-page-") //nolint:usetesting // t.TempDir is closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	m := &machine{t: t, root: root}
	if err := os.Chmod(m.root, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user if the test is root
		t.Fatal(err)
	}
	postgres, redis := testenv.PostgresPrivate(t), testenv.RedisPrivate(t)
	at := urlOf(t, postgres.URL)
	password, _ := at.User.Password()
	at.Path = "/postgres"
	execSQL(t, at.String(), "DROP DATABASE quotasvc") // the page creates it
	systemd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, _ := io.ReadAll(r.Body)
		if string(what) != "restart postgresql" {
			http.Error(w, "unknown", http.StatusBadRequest)
			return
		}
		postgres.Restart()
	}))
	t.Cleanup(systemd.Close)
	found := testenv.Must(t).Get(localstack.SystemSearch().Postgres(t.Context(), 0))
	server := testenv.Must(t).Get(filepath.EvalSymlinks(filepath.Join(found.Dir, "postgres")))
	bin := filepath.Join(m.root, "bin")
	program := testenv.Must(t).Get(os.ReadFile(quotasvc(t)))
	m.write(filepath.Join(bin, "program"), string(program), 0o755) // in a directory that PostgreSQL's user can enter
	for name, text := range map[string]string{
		"quotasvc":  "exec " + bin + `/program "$@"`,
		"sudo":      `if [ "$1" = -u ]; then shift 2; cd /; exec ` + as + `"$@"; fi; exec "$@"`,
		"systemctl": `exec curl -fsS -d "$*" ` + systemd.URL,
		"promtool":  "exec " + promtool + ` "$@"`,
	} {
		m.write(filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n", 0o755)
	}
	backup := filepath.Join(m.root, "backup")
	require.NoError(t, os.Mkdir(backup, 0o777))
	if err := os.Chmod(backup, 0o777); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	m.env = append(withoutSettings(os.Environ()),
		"PATH="+bin+":"+filepath.Dir(server)+":"+os.Getenv("PATH"), "PGHOST="+at.Hostname(), "PGPORT="+at.Port(), "PGUSER="+at.User.Username(), "PGPASSWORD="+password,
		"QUOTASVC_DRAIN_DELAY=500ms", // the load of this test reacts to a drain at once
	)
	repository := testenv.Must(t).Get(filepath.Abs("../.."))
	m.said = strings.NewReplacer(
		"/etc/quotasvc", filepath.Join(m.root, "etc"), "/backup", backup, " deploy/", " "+repository+"/deploy/",
		"redis://127.0.0.1:6379/0", redis.URL, "5432", at.Port(), "5433", portOf(t),
		"8443", portOf(t), "8444", portOf(t), "9091", portOf(t), "9092", portOf(t),
	)
	t.Cleanup(func() { // stops the restored server, if the page has started it
		command := exec.Command(filepath.Join(bin, "sudo"), "-u", "postgres", "pg_ctl", "-D", backup+"/restored", "-m", "immediate", "stop")
		command.Env = m.env
		_ = command.Run()
	})
	return m
}

func (m *machine) write(path, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as above
		m.t.Fatal(err)
	}
	require.NoError(m.t, os.WriteFile(path, []byte(text), mode))
}

// programOf returns the path of a program that the page needs, from PATH or bin/. If the program is missing, the test
// fails. The test is skipped instead if QUOTASVC_TEST_WITHOUT names the program.
func programOf(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path := testenv.Must(t).Get(filepath.Abs(filepath.Join("../../bin", name)))
	if _, err := os.Stat(path); err != nil {
		if slices.Contains(strings.Split(os.Getenv("QUOTASVC_TEST_WITHOUT"), ","), name) {
			t.Skip("there is no " + name)
		}
		t.Fatalf("there is no %s: run `make test-tools`, install it, or set QUOTASVC_TEST_WITHOUT=%s to skip the test", name, name)
	}
	return path
}

// portOf returns a port that nobody listens on, for a server that starts some seconds later. It is below the ports of
// outgoing connections and of private servers.
func portOf(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(12_000 + rand.IntN(8_000)) //nolint:gosec // no secret
		if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// followed counts the debits that are sent to the two instances while the test follows the page. A debit has failed
// if neither instance answered it with 200, because a client can try both instances.
type followed struct{ sent, failed int }

func (m *machine) load(ctx context.Context) *followed {
	f := &followed{}
	client := &http.Client{Timeout: testenv.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the page's curl verifies
	defer client.CloseIdleConnections()
	ports := []string{m.said.Replace("8443"), m.said.Replace("8444")}
	for pace(ctx, 20*time.Millisecond) {
		if _, err := os.Stat(filepath.Join(m.root, "etc", "debited")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(m.root, "etc", "stopping")); err == nil {
			m.write(filepath.Join(m.root, "etc", "quiet"), "", 0o600)
			break
		}
		key, err := os.ReadFile(filepath.Join(m.root, "etc", "use.header"))
		if err != nil || len(key) == 0 {
			continue
		}
		var last string
		for try := range 3 {
			r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, "https://127.0.0.1:"+ports[(f.sent+try)%2]+"/v1/debits",
				strings.NewReader(`{"tenant":"acme","items":[{"meter":"api_calls","amount":1}]}`))
			if err != nil {
				panic(err)
			}
			name, value, _ := strings.Cut(strings.TrimSpace(string(key)), ": ")
			r.Header.Set(name, value)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "load-"+strconv.Itoa(f.sent))
			response, err := client.Do(r)
			if err != nil {
				last = err.Error()
				continue
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if last = ""; response.StatusCode != http.StatusOK {
				last = response.Status + " " + string(body)
			}
			break
		}
		if f.sent == 0 && last != "" {
			continue // the catalogue does not exist yet
		}
		if f.sent++; last != "" {
			f.failed++
			m.t.Logf("debit %d: %s", f.sent, last)
		}
	}
	return f
}

// operationsPages are the pages of docs/operations with commands, in the order in which an operator needs them.
var operationsPages = []string{"install.md", "secrets.md", "upgrade.md", "database.md", "backup.md"}

// TestOperations_Pages_BringItUp follows docs/operations as an operator would: install, rotate, upgrade, back up,
// restore. Until the service is stopped for the restore, no debit of the two instances' clients fails.
func TestOperations_Pages_BringItUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var blocks []pageBlock
	for _, page := range operationsPages {
		blocks = append(blocks, markedBlocks(t, "docs/operations/"+page)...)
	}
	require.True(t, len(blocks) >= 15, "%d blocks", len(blocks))
	loading, stopLoad := context.WithCancel(t.Context())
	defer stopLoad()
	done := make(chan *followed, 1)
	go func() { done <- m.load(loading) }()
	m.follow(blocks)
	stopLoad()
	load := <-done
	m.logsTellNoSecret()
	assert.True(t, load.sent >= 50 && load.failed <= 0, "%d debits, %d failed", load.sent, load.failed)
}

// follow pastes the blocks of the page. It adds commands that create files, by which the test sees the progress.
func (m *machine) follow(blocks []pageBlock) {
	m.t.Helper()
	tty := openTerminal(m.t, m.root, m.env)
	defer func() {
		if m.t.Failed() {
			logs, _ := exec.Command("sh", "-c", "tail -n 3 "+m.root+"/etc/*.log "+m.root+"/backup/restored/log").CombinedOutput() //nolint:gosec // our own directory
			m.t.Logf("%s", tailOf(string(logs), 6000))
		}
	}()
	debit, debited, stopped := regexp.MustCompile(`(?m)^api use /v1/debits -H 'Idempotency-Key: order-1'.*$`), false, false
	for _, block := range blocks {
		debited = debited || debit.MatchString(block.text)
		stopped = stopped || strings.Contains(block.text, "stop a && stop b\n")
		block.text = debit.ReplaceAllString(block.text, "$0\ntouch /etc/quotasvc/debited") // an unknown tenant is remembered, so the load comes after the first debit
		block.text = strings.Replace(block.text, "stop a && stop b\n", "touch /etc/quotasvc/stopping; until test -e /etc/quotasvc/quiet; do sleep 0.05; done\nstop a && stop b\n", 1)
		block.text = "set -x\n" + block.text
		tty.use(block.said(m.said))
	}
	require.True(m.t, debited && stopped, "the page has no first debit, or no stop")
	tty.leave()
}

// logsTellNoSecret fails the test if the logs contain a secret of the page's files.
func (m *machine) logsTellNoSecret() {
	m.t.Helper()
	read := func(pattern string) (texts []string) {
		files, err := filepath.Glob(filepath.Join(m.root, "etc", pattern))
		assert.True(m.t, err == nil && len(files) != 0, "%s: %v", pattern, err)
		for _, file := range files {
			text := testenv.Must(m.t).Get(os.ReadFile(file))
			texts = append(texts, strings.TrimSpace(string(text)))
		}
		return texts
	}
	logs := strings.Join(read("[ab].log"), "\n")
	secrets := append(read("admin-key"), read("*.header")...)
	for _, address := range append(read("*database-url"), read("redis-url")...) {
		password, _ := urlOf(m.t, address).User.Password()
		secrets = append(secrets, password)
	}
	for i, secret := range secrets {
		if _, value, ok := strings.Cut(secret, "Bearer "); ok {
			secret = value
		}
		assert.True(m.t, secret != "" && !strings.Contains(logs, secret),
			"secret %d of %d is empty, or in a log", i, len(secrets))
	}
}

func tailOf(text string, most int) string { return text[max(0, len(text)-most):] }
