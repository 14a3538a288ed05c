package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// slowApplication makes the application wait: a request to it ends when the test sends how. "abort" breaks the
// connection in the middle of the answer, anything else is the status.
type slowApplication struct {
	arrived chan *http.Request
	how     chan int
}

const abort = -1

func (m *metered) slowApplication() *slowApplication {
	s := &slowApplication{arrived: make(chan *http.Request, 16), how: make(chan int)}
	m.app.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client goes away
		s.arrived <- r
		w.Header().Set("X-App", "here")
		select {
		case status := <-s.how:
			if status == abort {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("a part"))
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.Repeat("long ", 100_000)))
		case <-r.Context().Done():
		}
	})
	return s
}

// leasesEnd checks that a request holds a lease while it runs, and that the gateway ends it however the request ends.
// The limit's time is longer than the test, so no lease ends by itself.
func (m *metered) leasesEnd(t *testing.T, g *gateway) {
	t.Helper()
	m.do(t, http.StatusCreated, "PUT", "/v1/limits/exports", "", object{
		"per": []string{"tenant"}, "kind": "concurrency", "rate": "1/h", "burst": 1,
	})
	app := m.slowApplication()
	free := func() bool {
		dry := object{"rule": "exports", "tenant": "acme", "dry_run": true}
		a, err := m.send(t.Context(), "POST", "/v1/leases", "", dry)
		require.NoError(t, err)
		return a.status == http.StatusOK
	}
	testenv.Eventually(t, free, "the limit is known")
	start := func(headers ...string) (end context.CancelFunc, done chan answer) {
		ctx, cancel := context.WithCancel(t.Context())
		done = make(chan answer, 1)
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			headers = append(headers, "X-Api-Key", "the-key-of-acme")
			a, err := exchange(ctx, client, http.MethodPost, g.url+"/export", "a body", headers...)
			if err != nil {
				a = answer{}
			}
			done <- a
		}()
		return cancel, done
	}
	for _, how := range []int{200, 500, abort} {
		_, done := start("X-Quota-Lease", "forged")
		r, _ := testenv.Receive(t, app.arrived)
		lease := r.Header.Get("X-Quota-Lease")
		m.do(t, http.StatusOK, "POST", "/v1/leases/"+lease+"/renew", "", object{"ttl_seconds": 3600})
		g.get("127.0.0.1", "/export").denied(t, 429, "rate_limited")
		assert.False(t, free())
		app.how <- how
		got, _ := testenv.Receive(t, done)
		assert.True(t, got.status == how || how == abort, "got %d, want %d", got.status, how)
		testenv.Eventually(t, free, "the lease has ended after ", how)
	}
	cancel, done := start()
	testenv.Receive(t, app.arrived)
	cancel() // the client goes away. HAProxy waits for the application nevertheless
	testenv.Receive(t, done)
	testenv.Eventually(t, func() bool {
		select {
		case app.how <- 200:
		default:
		}
		return free()
	}, "the lease has ended without its client")

	// Without quotasvc the lease cannot be ended, and the request is not disturbed.
	_, done = start()
	testenv.Receive(t, app.arrived)
	m.stop()
	app.how <- 200
	got, _ := testenv.Receive(t, done)
	assert.Equal(t, 200, got.status)
}

func TestNginx_ModeLease_EndsWithItsRequest(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	const route = "set $quota_route  /export;"
	const held = "set $quota_mode lease; set $quota_rule exports; include quotasvc-lease.conf;"
	m.leasesEnd(t, m.nginx(t, m.key, route, route+"\n        "+held))
}

func TestHAProxy_ModeLease_EndsWithItsRequest(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.leasesEnd(t, m.haproxy(t, m.key, "# filter lua.quotasvc-lease", "filter lua.quotasvc-lease",
		"# http-request set-var(txn.quota_mode)", "http-request set-var(txn.quota_mode)",
		"# http-request set-var(txn.quota_rule)", "http-request set-var(txn.quota_rule)"))
}
