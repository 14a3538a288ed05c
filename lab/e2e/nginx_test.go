package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// nginx starts nginx with deploy/nginx in front of m. change lists texts of the configuration, each followed by its
// replacement.
func (m *metered) nginx(t testing.TB, key string, change ...string) *gateway {
	t.Helper()
	binary := gatewayProgram(t, "nginx")
	address := onFreePort(t, func(address string) *exec.Cmd {
		dir := configured(t, "nginx", key, append(change,
			"127.0.0.1:8080", strings.TrimPrefix(m.api, "http://"), "127.0.0.1:8000", address,
			"127.0.0.1:3000", strings.TrimPrefix(m.app.URL, "http://")))
		user := ""
		if os.Getuid() == 0 {
			user = "user root;\n" // only root can enter the directory
		}
		main := user + `daemon off;
worker_processes 1;
error_log stderr warn;
pid nginx.pid;
events { worker_connections 256; }
http {
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    include quotasvc.conf;
    include site.conf;
    access_log access.log quotasvc;
}
`
		conf := filepath.Join(dir, "nginx.conf")
		require.NoError(t, os.WriteFile(conf, []byte(main), 0o600))
		return exec.Command(binary, "-p", dir, "-c", conf, "-e", "stderr")
	})
	return &gateway{t: t, url: "http://" + address}
}

func TestNginx_ModeLimit_ApplicationCanRefund(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.chargesLimitsOnly(t, m.nginx(t, m.key, "set $quota_route  /search;", "set $quota_route  /search;\n        set $quota_mode limit;"))
}

func TestNginx_ClientHeaders_NotTrusted(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.isNotFooled(t, m.nginx(t, m.key))
}

func TestNginx_NoDecision_OneLocationClosesOneOpens(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	g := m.nginx(t, m.key)
	g.get("127.0.0.1", "/search").passed(t)
	g.get("127.0.0.1", "/profile").passed(t)
	m.stop()
	g.get("127.0.0.1", "/search").denied(t, 503, "unavailable")
	got := g.get("127.0.0.1", "/profile").passed(t)
	assert.Empty(t, got.header.Get("X-Quota-Remaining"), "headers: %v", got.header)
	seen, _ := m.app.last()
	assert.Empty(t, seen.Header.Get("X-Quota-Operation"), "the application gets operation")
}

// nginx treats a service that cannot decide like a service that is down, even if the connection to its database stays
// open.
func TestNginx_NoPostgres_OneLocationClosesOneOpens(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	m := newMetered(t, "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL))
	g := m.nginx(t, m.key)
	undecided := func(what string) {
		t.Log("an answer with PostgreSQL " + what)
		g.get("127.0.0.1", "/search").denied(t, 503, "unavailable")
		g.get("127.0.0.1", "/profile").passed(t)
	}
	g.get("127.0.0.1", "/search").passed(t)
	postgres.Pause()
	undecided("frozen")
	postgres.Resume()
	testenv.Eventually(t, func() bool { return g.get("127.0.0.1", "/search").status == 200 }, "it decides again")
	postgres.Stop()
	undecided("down")
	postgres.Start()
	testenv.Eventually(t, func() bool { return g.get("127.0.0.1", "/search").status == 200 }, "it decides again")
}

func TestNginx_QueueFull_OpensNothing(t *testing.T) {
	t.Parallel()
	opensUnlessQueueFull(t, func(m *metered) *gateway { return m.nginx(t, m.key) })
}

func TestNginx_WrongKey_OpensNothing(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.opensNothing(t, m.nginx(t, m.key+"x"))
}

func TestNginx_LocationWithoutMeter_Passes(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	got := m.nginx(t, m.key).get("127.0.0.1", "/")
	assert.True(t, got.status == 200 && got.header.Get("X-Quota-Remaining") == "", "%s %v", got, got.header)
}

// nginx stops a flood before it sends the requests to quotasvc.
func TestNginx_OuterLimit_RefusesInSameForm(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	g := m.nginx(t, m.key, "rate=50r/s", "rate=1r/m", "burst=100 nodelay", "burst=1 nodelay")
	for range 2 {
		g.get("127.0.0.1", "/search").passed(t)
	}
	before := m.balance(t, "acme", "api_calls").Remaining
	for _, path := range []string{"/search", "/profile", "/"} {
		g.get("127.0.0.1", path).denied(t, 429, "rate_limited")
	}
	m.acme().wantLeft(t, before) // requests that nginx refused have used no units
	g.get("127.0.0.2", "/search").passed(t)
}
