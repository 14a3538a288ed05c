package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// deadProxy is the environment of a machine behind a proxy. Whatever is sent to this proxy fails.
var deadProxy = []string{
	"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9", "NO_PROXY=",
	"http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "all_proxy=http://127.0.0.1:9", "no_proxy=",
}

// homeless is the environment of a machine without a home directory.
var homeless = []string{"HOME=", "XDG_CACHE_HOME=", "XDG_CONFIG_HOME="}

// The service, the commands and `quotasvc dev` work in odd places. The image is tested in more of them by `make
// test-containers`.
func TestPlaces_WithoutHomeBehindAProxy_EverythingWorks(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"without a home directory": homeless, "behind a proxy": deadProxy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := serve(t, append(backends(t), env...))
			must(t, append([]string{"QUOTASVC_URL=" + in.api, "QUOTASVC_KEY=" + testKey}, env...), "tenant", "list")
			_, port, _ := strings.Cut(strings.TrimPrefix(in.ops, "http://"), ":")
			// Unlike 127.0.0.1, this address of the same host is no exception of Go.
			must(t, env, "health", "--url", "http://0.0.0.0:"+port+"/readyz")
			in.stop()
			dev := introduced(launch(t, env, "dev", "--no-demo", "--dir", filepath.Join(t.TempDir(), "data"),
				"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "warn"))
			proxied := strings.Contains(dev.stdout.String(), "export no_proxy=127.0.0.1")
			assert.Equal(t, name == "behind a proxy", proxied, "the introduction:\n%s", dev.stdout.String())
			dev.signal(syscall.SIGINT)
			assert.Zero(t, dev.wait(), "dev")
		})
	}
}

// A user of the system without a name and without rights can run the service.
func TestPlaces_UserWithoutName_Serves(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("", "quotasvc-place-") //nolint:usetesting // t.TempDir is closed to other users
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // another user runs the program in it
	program := filepath.Join(dir, "quotasvc")
	text := testenv.Must(t).Get(os.ReadFile(quotasvc(t)))
	require.NoError(t, os.WriteFile(program, text, 0o755)) //nolint:gosec // the same
	p := launchBy(t, programOf(t, "setpriv"), append(backends(t), homeless...), append([]string{
		"--reuid=1000660000", "--regid=0", "--clear-groups", "--no-new-privs", program,
	}, serveFree...)...)
	p.line("API ")
	p.stop()
}

// Beside a PostgreSQL that is too old, each command that needs its schema says so in one line.
func TestPlaces_OldPostgres_OneLineSaysSo(t *testing.T) {
	t.Parallel()
	u := urlOf(t, testenv.PostgresService(t))
	u.Host = testenv.Disguise(t, u.Host, regexp.MustCompile(`server_version\x00\d\d`), "server_version\x0012")
	env := using(u.String(), testenv.RedisURL(t))
	for _, args := range [][]string{serveFree, {"migrate", "up"}, {"apply", "-f", "../../cmd/quotasvc/demo.yaml"}} {
		status, _, stderr := tool(t, env, args...)
		assert.Equal(t, 1, status, "%q", args)
		last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
		assert.Regexp(t, `PostgreSQL 12\.\d+ is too old: quotasvc needs PostgreSQL 14 or newer\n$`, last, "%q", args)
	}
}
