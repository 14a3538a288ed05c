package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The gateway tests run the configurations under deploy/ in front of the real program. They replace only addresses
// and keys. nginx and HAProxy are the real programs. Debian has no Traefik and no Envoy, so stand-ins behave as their
// documentation describes (traefik_test.go, envoy_test.go).

// metered is an instance with a catalogue for the examples under deploy/, and the application behind the gateway.
type metered struct {
	*instance
	app *application
	key string // key of the gateway, which has only the scope use
}

// application is the server behind a gateway. Its answers contain the request that it has received.
type application struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newApplication(t testing.TB) *application {
	t.Helper()
	app := &application{}
	app.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		app.mu.Lock()
		app.seen = append(app.seen, r)
		app.mu.Unlock()
		status := http.StatusOK
		if _, err := fmt.Sscanf(r.URL.Query().Get("answer"), "%d", &status); err != nil {
			status = http.StatusOK
		}
		w.Header().Set("X-App", "here")
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	}))
	t.Cleanup(app.Close)
	return app
}

// last returns the newest request to the application and the number of requests.
func (a *application) last() (*http.Request, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) == 0 {
		return nil, 0
	}
	return a.seen[len(a.seen)-1], len(a.seen)
}

// newMetered starts an instance that trusts proxies on loopback, with env as further environment.
func newMetered(t testing.TB, env ...string) *metered {
	t.Helper()
	m := &metered{app: newApplication(t)}
	m.instance = serve(t, append(backends(t), append([]string{"QUOTASVC_TRUSTED_PROXIES=127.0.0.1", "QUOTASVC_LOG_LEVEL=info"}, env...)...))
	m.setUp(t, 1000)
	m.do(t, http.StatusCreated, "PUT", "/v1/meters/credits", "", object{"unit": "credit"})
	m.do(t, http.StatusCreated, "PUT", "/v1/plans/metered", "", object{"allowances": []object{
		{"meter": "api_calls", "amount": 1000, "every": "year", "anchor": "calendar"},
		{"meter": "credits", "amount": 0, "every": "once", "anchor": "calendar"},
	}})
	m.do(t, http.StatusOK, "PATCH", "/v1/tenants/acme", "", object{"plan": "metered", "apply": "now"})
	m.key = m.newSecret(t, object{"name": "gateway", "scopes": []string{"use"}})
	return m
}

// limit stores a rule and waits until the instance applies it to GET requests of acme for the rule's route.
func (m *metered) limit(t testing.TB, rule string, body object) {
	t.Helper()
	m.do(t, http.StatusCreated, "PUT", "/v1/limits/"+rule, "", body)
	ask := object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}, "ip": "192.0.2.1"}
	if match, ok := body["match"].(object); ok && match["route"] != nil {
		ask["route"] = match["route"]
	}
	testenv.Eventually(t, func() bool {
		got := m.do(t, http.StatusOK, "POST", "/v1/check", "", ask)
		return strings.Contains(string(got.body), fmt.Sprintf("%q", rule))
	}, "limit ", rule, " is in force")
}

// gateway is a gateway in front of an application.
type gateway struct {
	t   testing.TB
	url string

	// quiet is true for gateways that do not add quota headers to answers of the application.
	quiet bool
}

// get sends a request to the gateway with acme's key, from an address in 127.0.0.0/8. More headers may follow.
func (g *gateway) get(address, path string, headers ...string) answer {
	g.t.Helper()
	return g.send(http.MethodGet, address, path, "", headers...)
}

func (g *gateway) send(method, address, path, body string, headers ...string) answer {
	g.t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: testenv.Patience}
	return fetch(g.t, client, method, g.url+path, body, append([]string{"X-Api-Key", "the-key-of-acme"}, headers...)...)
}

// passed fails the test unless the answer is that of the application.
func (a answer) passed(t testing.TB) answer {
	t.Helper()
	require.True(t, a.status == http.StatusOK && a.header.Get("X-App") == "here",
		"the request did not pass: %s %v", a, a.header)
	return a
}

// denied fails the test unless the answer is the problem with this status and code, with all headers of a problem.
func (a answer) denied(t testing.TB, status int, code string) answer {
	t.Helper()
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
		RequestID                 string `json:"request_id"`
	}
	err := json.Unmarshal(a.body, &p)
	require.True(t, err == nil && a.status == status && p.Status == status && p.Code == code && p.Type != "" && p.Detail != "" &&
		p.RequestID != "", "got %s (%v), want %d %s", a, err, status, code)
	assert.True(t, a.header.Get("Content-Type") == "application/problem+json" && a.header.Get("X-App") == "",
		"%d %s: %v", status, code, a.header)
	assert.True(t, a.header.Get("X-Request-Id") == p.RequestID,
		"%d %s: X-Request-Id %q, in the body %q", status, code, a.header.Get("X-Request-Id"), p.RequestID)
	retry, err := strconv.Atoi(a.header.Get("Retry-After"))
	assert.Equal(t, status == 429 || status == 503, err == nil && retry >= 1,
		"%d %s: Retry-After %q", status, code, a.header.Get("Retry-After"))
	return a
}

// meters checks that a request that passes is charged once, and that the client and the application get the quota
// headers.
func (m *metered) meters(t *testing.T, g *gateway) {
	t.Helper()
	m.limit(t, "pace", object{"per": []string{"tenant"}, "match": object{"route": "/search"}, "kind": "token_bucket", "rate": "1000/day"})
	got := g.send(http.MethodPost, "127.0.0.1", "/search?q=1", "a body").passed(t)
	assert.Equal(t, "POST /search?q=1 a body", string(got.body), "the application got %q", got.body)
	if !g.quiet {
		for header, want := range map[string]string{"X-Quota-Limit": "1000", "X-Quota-Remaining": "999", "RateLimit-Policy": `"pace";q=1000;w=86400`} {
			assert.True(t, got.header.Get(header) == want, "%s is %q, want %q", header, got.header.Get(header), want)
		}
		assert.True(t, strings.HasPrefix(got.header.Get("RateLimit"), `"pace";r=999;t=`) &&
			got.header.Get("X-Quota-Reset") != "", "headers: %v", got.header)
	}
	seen, _ := m.app.last()
	operation := seen.Header.Get("X-Quota-Operation")
	m.do(t, http.StatusOK, "GET", "/v1/tenants/acme/operations/"+operation, "", nil)
	g.get("127.0.0.1", "/export").passed(t)
	m.acme().wantLeft(t, 994)
	m.do(t, http.StatusOK, "POST", "/v1/refunds", "refund", object{"tenant": "acme", "operation_id": operation})
	const clients = 20
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { g.get("127.0.0.1", "/search") })
	}
	all.Wait()
	m.acme().wantLeft(t, 995-clients)
}

// chargesLimitsOnly checks a gateway that charges limits alone: a client uses no units, and the application can
// refund the charge. The charge that a client names in a header has no effect.
func (m *metered) chargesLimitsOnly(t *testing.T, g *gateway) {
	t.Helper()
	m.limit(t, "pace", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "3/day"})
	refund := func() string {
		seen, _ := m.app.last()
		return string(m.do(t, http.StatusOK, "POST", "/v1/limits/charge/refund", "", object{"charge_id": seen.Header.Get("X-Quota-Charge")}).body)
	}
	for range 4 {
		g.get("127.0.0.1", "/search", "X-Quota-Charge", "forged").passed(t)
		got := refund()
		assert.True(t, strings.Contains(got, `"refunded":true`) && strings.Contains(got, `"remaining":3`), "%s", got)
	}
	m.acme().wantLeft(t, 1000)
}

// refuses checks that every refusal reaches the client unchanged and that the application does not get the request.
func (m *metered) refuses(t *testing.T, g *gateway) {
	t.Helper()
	m.limit(t, "slow", object{"per": []string{"tenant"}, "match": object{"route": "/search"}, "kind": "token_bucket", "rate": "2/day"})
	for range 2 {
		g.get("127.0.0.1", "/search").passed(t)
	}
	for _, path := range []string{"/search", "/search/page.html?q=1"} {
		got := g.get("127.0.0.1", path).denied(t, 429, "rate_limited")
		for header, prefix := range map[string]string{
			"RateLimit": `"slow";r=0;t=`, "RateLimit-Policy": `"slow";q=2;w=86400`, "X-Quota-Remaining": "998", "X-Quota-Limit": "1000", "X-Quota-Reset": "",
		} {
			value := got.header.Get(header)
			assert.True(t, value != "" && strings.HasPrefix(value, prefix),
				"%s: %s is %q, want %q", path, header, value, prefix)
		}
	}
	g.get("127.0.0.1", "/render").denied(t, 402, "credits_exhausted")
	m.limit(t, "small", object{
		"per": []string{"tenant"}, "match": object{"route": "/export", "meter": "api_calls"}, "kind": "token_bucket", "rate": "2/s", "cost_by": "amount",
	})
	g.get("127.0.0.1", "/export").denied(t, 422, "cost_exceeds_capacity")
	m.do(t, http.StatusOK, "POST", "/v1/debits", "rest", debitOf("acme", "api_calls", 998))
	got := g.get("127.0.0.1", "/profile").denied(t, 429, "quota_exceeded")
	assert.EqualValues(t, "0", got.header.Get("X-Quota-Remaining"), "headers: %v", got.header)
	m.do(t, http.StatusOK, "PATCH", "/v1/tenants/acme", "", object{"status": "suspended"})
	testenv.Eventually(t, func() bool { return g.get("127.0.0.1", "/profile").status == 403 }, "the tenant is suspended")
	g.get("127.0.0.1", "/profile").denied(t, 403, "tenant_suspended")
	_, n := m.app.last()
	assert.Equal(t, 2, n, "requests that reached the application")
}

// isNotFooled checks that the headers and paths of a client cannot change the charged tenant, the amount or the
// limits.
func (m *metered) isNotFooled(t *testing.T, g *gateway) {
	t.Helper()
	m.do(t, http.StatusCreated, "PUT", "/v1/tenants/victim", "", object{"plan": "metered"})
	forged := []string{
		"X-Quota-Tenant", "victim", "X-Quota-Meter", "credits", "X-Quota-Amount", "100", "X-Quota-Mode", "check", "X-Quota-Route", "/cheap",
		"X-Quota-Subject", "somebody", "X-Quota-Key", "none", "X-Quota-Operation", "forged", "X-Quota-Charge", "forged", "X-Quota-Unknown", "1", "Idempotency-Key", "again",
		"X-Request-Id", "again", "X-Original-URI", "/cheap", "X-Forwarded-Uri", "/cheap", "X-Original-Method", "GET", "X-Forwarded-Method", "GET",
		"X-Real-IP", "203.0.113.1", "X-Forwarded-For", "203.0.113.1", "Authorization", "Bearer the-clients-own",
	}
	for i := range int64(3) {
		g.get("127.0.0.1", "/search", forged...).passed(t)
		m.acme().wantLeft(t, 999-i)
		seen, _ := m.app.last()
		operation := seen.Header.Get("X-Quota-Operation")
		assert.True(t, strings.HasPrefix(operation, "gw-") && operation != "gw-again",
			"the application gets operation %q", operation)
		assert.Empty(t, seen.Header.Get("X-Quota-Charge"), "the application gets charge")
		assert.EqualValues(t, "Bearer the-clients-own", seen.Header.Get("Authorization"),
			"the application gets Authorization")
		assert.True(t, seen.Header.Get("X-Quota-Key") != m.key, "the application gets the gateway's key")
	}
	account{m.instance, "victim"}.wantLeft(t, 1000)
	m.limit(t, "address", object{"per": []string{"ip"}, "kind": "token_bucket", "rate": "1/day"})
	g.get("127.0.0.2", "/search").passed(t)
	for _, headers := range [][]string{
		nil,
		{"X-Forwarded-For", "203.0.113.1"},
		{"X-Forwarded-For", "203.0.113.1, 127.0.0.1"},
		{"X-Real-IP", "203.0.113.1"},
		{"Forwarded", "for=203.0.113.1"},
	} {
		g.get("127.0.0.2", "/search", headers...).denied(t, 429, "rate_limited")
	}
	g.get("127.0.0.3", "/search").passed(t)
	m.do(t, http.StatusNoContent, "DELETE", "/v1/limits/address", "", nil)
	m.limit(t, "spelled", object{"per": []string{"tenant"}, "match": object{"route": "/search"}, "kind": "token_bucket", "rate": "4/day"})
	testenv.Eventually(t, func() bool { return g.get("127.0.0.3", "/profile").status == 200 }, "limit address is gone")
	ids := []string{"X-Request-Id", "again", "Idempotency-Key", "again"} // limits are charged once for an id of the gateway
	for _, path := range []string{"/search", "//search", "/%73earch", "/x/../search?q"} {
		g.get("127.0.0.1", path, ids...).passed(t)
	}
	for _, path := range []string{"/search", "//search", "/./search", "/%73%65arch", "/x/../search?q"} {
		g.get("127.0.0.1", path, ids...).denied(t, 429, "rate_limited")
	}
}

// opensNothing checks that a gateway with a wrong key lets no request pass and reveals nothing about the key.
func (m *metered) opensNothing(t *testing.T, g *gateway) {
	t.Helper()
	for _, path := range []string{"/search", "/profile"} {
		got := g.get("127.0.0.1", path)
		assert.True(t, got.status == 503 && got.header.Get("WWW-Authenticate") == "" &&
			!strings.Contains(string(got.body), "uthenticat"), "%s: %s %v", path, got, got.header)
	}
	_, n := m.app.last()
	assert.Zero(t, n, "requests reached the application")
}

// opensUnlessQueueFull checks a location of a gateway that lets requests pass if the service fails. It must not let
// requests pass if a tenant has filled its queue. A stand-in for the service answers in the form that this gateway
// expects.
func opensUnlessQueueFull(t *testing.T, start func(m *metered) *gateway) {
	t.Helper()
	var code atomic.Value
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem, status := fmt.Sprintf(`{"type":"about:blank","status":503,"title":"t","code":%q,"detail":"d","request_id":"r"}`, code.Load()), http.StatusServiceUnavailable
		w.Header().Set("X-Request-Id", "r")
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		if strings.HasSuffix(r.URL.Path, "/nginx") {
			w.Header().Set("X-Quota-Status", "503")
			w.Header().Set("X-Quota-Problem", problem)
			status = http.StatusForbidden
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, problem)
	}))
	t.Cleanup(service.Close)
	g := start(&metered{app: newApplication(t), instance: &instance{api: service.URL}, key: "any"})
	for path, want := range map[string]map[string]int{"/profile": {"queue_full": 503, "unavailable": 200}, "/search": {"queue_full": 503, "unavailable": 503}} {
		for c, status := range want {
			code.Store(c)
			got := g.get("127.0.0.1", path)
			assert.True(t, got.status == status && (status != 503 || strings.Contains(string(got.body), c)),
				"%s without a decision, %s: %s, want %d", path, c, got, status)
		}
	}
}

// leavesAlone checks that the application's own refusals reach the client unchanged, and that an unknown client is
// not charged.
func (m *metered) leavesAlone(t *testing.T, g *gateway) {
	t.Helper()
	for _, status := range []int{401, 403, 404, 429, 500, 503} {
		got := g.get("127.0.0.1", fmt.Sprintf("/search?answer=%d", status))
		assert.True(t, got.status == status && got.header.Get("X-App") == "here" &&
			(g.quiet || got.header.Get("X-Quota-Remaining") != ""),
			"the application's %d became %s: %v", status, got, got.header)
	}
	before := m.balance(t, "acme", "api_calls").Remaining
	assert.Equal(t, 401, g.get("127.0.0.1", "/search", "X-Api-Key", "nobodys").status, "an unknown client")
	m.acme().wantLeft(t, before)
}

// behindEach runs a check behind each gateway, with an instance of its own.
func behindEach(t *testing.T, check func(m *metered, t *testing.T, g *gateway)) {
	t.Helper()
	for name, start := range map[string]func(m *metered, t testing.TB, key string, change ...string) *gateway{
		"Envoy": (*metered).envoy, "HAProxy": (*metered).haproxy,
		"nginx": (*metered).nginx, "Traefik": (*metered).traefik,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMetered(t)
			check(m, t, start(m, t, m.key))
		})
	}
}

func TestGateways_PassedRequest_ChargedOnce(t *testing.T) {
	t.Parallel()
	behindEach(t, (*metered).meters)
}

func TestGateways_Refusal_ReachesClient(t *testing.T) {
	t.Parallel()
	behindEach(t, (*metered).refuses)
}

func TestGateways_OtherRefusals_Unchanged(t *testing.T) {
	t.Parallel()
	behindEach(t, (*metered).leavesAlone)
}

// gatewayProgram returns the path of an installed program. It also searches directories that are not in an ordinary
// user's PATH.
func gatewayProgram(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: scripts/install-servers.sh %s", name, name)
	return ""
}

// configured copies a directory of deploy/, and replaces the key of the gateway in the copy. It also replaces the texts
// in replace; each of them is followed by its replacement. It fails the test if a text to replace is missing.
func configured(t testing.TB, name, key string, replace []string) (dir string) {
	t.Helper()
	replace = append([]string{"change-me-to-the-key-of-this-gateway", key}, replace...)
	source, dir := filepath.Join("..", "..", "deploy", name), t.TempDir()
	files := testenv.Must(t).Get(os.ReadDir(source))
	made := map[string]bool{}
	for _, file := range files {
		raw := testenv.Must(t).Get(os.ReadFile(filepath.Join(source, file.Name())))
		text := string(raw)
		for i := 0; i < len(replace); i += 2 {
			made[replace[i]] = made[replace[i]] || strings.Contains(text, replace[i])
			text = strings.ReplaceAll(text, replace[i], replace[i+1])
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, file.Name()), []byte(text), 0o600))
	}
	for from, found := range made {
		require.True(t, found, "deploy/%s does not say %q any more", name, from)
	}
	return dir
}

// startTries is the number of attempts to start a gateway. Another program may take the free port before the gateway.
const startTries = 5

// onFreePort starts a gateway on a free port, waits until it answers, and returns its address. The function `start`
// returns the command for an address.
func onFreePort(t testing.TB, start func(address string) *exec.Cmd) string {
	t.Helper()
	for range startTries {
		address := freeAddress(t)
		if out, ok := started(t, start(address), address); ok {
			return address
		} else if !strings.Contains(out, "ddress already in use") {
			t.Fatalf("the gateway did not start:\n%s", out)
		}
	}
	t.Fatalf("no free port in %d tries", startTries)
	return ""
}

// started starts a program and waits until it answers on address. The program ends with the test. If the program ends
// before it answers, ok is false.
func started(t testing.TB, cmd *exec.Cmd, address string) (output string, ok bool) {
	t.Helper()
	var out logBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the process group, which includes worker processes
		<-ended
	}
	running := true
	testenv.Eventually(t, func() bool {
		select {
		case <-ended:
			running = false
		default:
		}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil || !running
	}, cmd.Path, " answers")
	if !running {
		return out.String(), false
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(cmd.Path), out.tail())
		}
	})
	return "", true
}
