package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A page of this origin may read refusals, if a configuration says so.
const pagesOrigin = "https://app.example.com"

// asPage are the headers that a browser adds to requests of a page of another origin.
func asPage(headers ...string) []string { return append([]string{"Origin", pagesOrigin}, headers...) }

// letsPreflightsPass checks that a browser's preflight reaches the application and costs nothing, with and without the
// client's key, and that other requests are not taken for a preflight.
func (m *metered) letsPreflightsPass(t *testing.T, g *gateway) {
	t.Helper()
	m.limit(t, "pace", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1/day"})
	preflight := asPage("Access-Control-Request-Method", "POST")
	for _, path := range []string{"/search", "/export", "/profile", "/render"} {
		for _, key := range []string{"the-key-of-acme", "", "nobodys"} {
			g.send(http.MethodOptions, "127.0.0.1", path, "", append(preflight, "X-Api-Key", key)...).passed(t)
			r, _ := m.app.last()
			asked := r.Header.Get("Access-Control-Request-Method")
			assert.True(t, r.Method == http.MethodOptions && r.Header.Get("Origin") == pagesOrigin && asked == "POST",
				"the application got %s %v", r.Method, r.Header)
		}
	}
	m.acme().wantLeft(t, 1000)
	g.get("127.0.0.1", "/search").passed(t) // the limit's only token is there
	_, before := m.app.last()
	forged := append(preflight,
		"X-Original-Method", "OPTIONS", "X-Forwarded-Method", "OPTIONS", "X-HTTP-Method-Override", "OPTIONS")
	for what, c := range map[string]struct {
		method  string
		headers []string
	}{
		"another method":      {http.MethodGet, forged},
		"no origin":           {http.MethodOptions, []string{"Access-Control-Request-Method", "POST"}},
		"no requested method": {http.MethodOptions, asPage()},
		"empty headers":       {http.MethodOptions, []string{"Origin", "", "Access-Control-Request-Method", ""}},
	} {
		got := g.send(c.method, "127.0.0.1", "/search", "", c.headers...)
		assert.Equal(t, 429, got.status, "%s: %s", what, got)
		got = g.send(c.method, "127.0.0.1", "/search", "", append(c.headers, "X-Api-Key", "nobodys")...)
		assert.Equal(t, 401, got.status, "%s, without a key: %s", what, got)
	}
	_, after := m.app.last()
	assert.Equal(t, before, after, "requests reached the application")
}

// exposesHeaders checks that pages of other origins may read the headers that quotasvc's answers have.
func (m *metered) exposesHeaders(t *testing.T, g *gateway) {
	t.Helper()
	m.limit(t, "slow", object{
		"per": []string{"tenant"}, "match": object{"route": "/search"}, "kind": "token_bucket", "rate": "1/day",
	})
	exposed := func(got answer) {
		t.Helper()
		all := strings.Split(strings.Join(got.header.Values("Access-Control-Expose-Headers"), ", "), ", ")
		for _, name := range []string{
			"Retry-After", "RateLimit", "RateLimit-Policy", "X-Quota-Limit", "X-Quota-Remaining", "X-Quota-Reset",
		} {
			assert.Contains(t, all, name, "%s: %v", got, got.header)
		}
	}
	admitted := g.get("127.0.0.1", "/search", asPage()...).passed(t)
	if !g.quiet { // the answer has no such headers
		exposed(admitted)
	}
	exposed(g.get("127.0.0.1", "/search", asPage()...).denied(t, 429, "rate_limited"))
	exposed(g.get("127.0.0.1", "/render", asPage()...).denied(t, 402, "credits_exhausted"))
}

func TestGateways_Preflight_PassesUncharged(t *testing.T) {
	t.Parallel()
	behindEach(t, (*metered).letsPreflightsPass)
}

func TestGateways_Answers_ExposeTheirHeaders(t *testing.T) {
	t.Parallel()
	behindEach(t, (*metered).exposesHeaders)
}

// refusalsFor checks that a page of an origin of the configuration can read refusals, and a page of another one cannot.
func (m *metered) refusalsFor(t *testing.T, g *gateway) {
	t.Helper()
	for origin, allowed := range map[string]string{pagesOrigin: pagesOrigin, "https://elsewhere.example": "", "": ""} {
		got := g.get("127.0.0.1", "/render", "Origin", origin).denied(t, 402, "credits_exhausted")
		assert.Equal(t, allowed, got.header.Get("Access-Control-Allow-Origin"), "refused to %q: %v", origin, got.header)
		assert.Equal(t, "Origin", got.header.Get("Vary"), "refused to %q", origin)
		passed := g.get("127.0.0.1", "/search", "Origin", origin).passed(t)
		assert.Empty(t, passed.header.Get("Access-Control-Allow-Origin"), "the application allows origins itself")
	}
}

func TestNginx_Refusals_ReadableForConfiguredOrigins(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.refusalsFor(t, m.nginx(t, m.key, `# "https://app.example.com"`, `"https://app.example.com"`))
}

func TestHAProxy_Refusals_ReadableForConfiguredOrigins(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	const allow = "http-request set-var(txn.quota_origin)"
	m.refusalsFor(t, m.haproxy(t, m.key, "# "+allow, allow))
}
