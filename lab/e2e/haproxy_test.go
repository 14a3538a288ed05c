package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// haproxy starts HAProxy with deploy/haproxy in front of m. change lists texts of the configuration, each followed by
// its replacement.
func (m *metered) haproxy(t testing.TB, key string, change ...string) *gateway {
	t.Helper()
	binary := gatewayProgram(t, "haproxy")
	address := onFreePort(t, func(address string) *exec.Cmd {
		cmd := exec.Command(binary, "-db", "-f", "haproxy.cfg")
		cmd.Dir = configured(t, "haproxy", key, append(change,
			"127.0.0.1:8080", strings.TrimPrefix(m.api, "http://"), "127.0.0.1:8000", address,
			"127.0.0.1:3000", strings.TrimPrefix(m.app.URL, "http://"),
			"abns@quotasvc", "abns@quotasvc-test-"+address, // abstract names are shared by all programs of the host
		))
		return cmd
	})
	return &gateway{t: t, url: "http://" + address}
}

func TestHAProxy_ModeLimit_ApplicationCanRefund(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.chargesLimitsOnly(t, m.haproxy(t, m.key, "str(api_calls)\n", "str(api_calls)\n    http-request set-var(txn.quota_mode) str(limit)\n"))
}

func TestHAProxy_ClientHeaders_NotTrusted(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.isNotFooled(t, m.haproxy(t, m.key))
}

func TestHAProxy_NoDecision_OnePathClosesOneOpens(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	m := newMetered(t, "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL))
	g := m.haproxy(t, m.key)
	g.get("127.0.0.1", "/search").passed(t)
	undecided := func(what string) {
		t.Log("an answer with " + what)
		g.get("127.0.0.1", "/search").denied(t, 503, "unavailable")
		g.get("127.0.0.1", "/profile").passed(t)
	}
	postgres.Pause()
	undecided("PostgreSQL frozen")
	postgres.Resume()
	testenv.Eventually(t, func() bool { return g.get("127.0.0.1", "/search").status == 200 }, "it decides again")
	m.stop()
	undecided("quotasvc down")
	seen, _ := m.app.last()
	assert.Empty(t, seen.Header.Get("X-Quota-Operation"), "the application gets operation")
}

func TestHAProxy_QueueFull_OpensNothing(t *testing.T) {
	t.Parallel()
	opensUnlessQueueFull(t, func(m *metered) *gateway { return m.haproxy(t, m.key) })
}

func TestHAProxy_WrongKey_OpensNothing(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.opensNothing(t, m.haproxy(t, m.key+"x"))
}

func TestHAProxy_OuterLimit_RefusesInSameForm(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	g := m.haproxy(t, m.key, "gt 500 }", "gt 2 }")
	for range 2 {
		g.get("127.0.0.1", "/search").passed(t)
	}
	before := m.balance(t, "acme", "api_calls").Remaining
	for _, path := range []string{"/search", "/profile"} {
		g.get("127.0.0.1", path).denied(t, 429, "rate_limited")
	}
	m.acme().wantLeft(t, before) // requests that HAProxy refused have used no units
	g.get("127.0.0.2", "/search").passed(t)
}

// A request that waits for a decision does not block other requests.
func TestHAProxy_ManyRequests_WaitIndependently(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	g := m.haproxy(t, m.key)
	for range 10 {
		done := make(chan answer)
		for range 20 {
			go func() { done <- g.get("127.0.0.1", "/search") }()
		}
		for range 20 {
			got, _ := testenv.Receive(t, done)
			assert.True(t, got.status == 200, "got %s", got)
		}
	}
	m.acme().wantLeft(t, 800)
}
