package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// link creates a link to the portal page of a tenant, and returns its path.
func (c *consoled) link(t testing.TB, tenant string, more object) string {
	t.Helper()
	body := object{"tenant": tenant}
	for name, value := range more {
		body[name] = value
	}
	made := decoded[struct{ URL string }](t, c.do(t, 201, "POST", "/v1/portal-sessions", "", body))
	return urlOf(t, made.URL).Path
}

// follow opens a link to the portal, and returns the path of the page to which it leads.
func (b *browser) follow(link string) string {
	b.t.Helper()
	got := b.send("GET", link, nil)
	at := got.header.Get("Location")
	require.True(b.t, got.status == 303 && strings.HasPrefix(at, "/portal/") && !strings.Contains(link, at+"x") &&
		!strings.Contains(at, "open"), "%s leads to %q: %s", link, at, got)
	return at
}

func TestPortal_LinkShowsItsTenantInTheBrowsersLanguage(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.do(t, 201, "PUT", "/v1/limits/burst", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "5/10min", "burst": 7, "match": object{"route": "/search/*"}})
	c.do(t, 201, "PUT", "/v1/limits/others", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "6/s", "match": object{"tenant": "globex"}})
	c.do(t, 201, "PUT", "/v1/limits/tried", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "8/s", "mode": "shadow"})
	b := c.browser(t)
	at := b.follow(c.link(t, "acme", object{"return_url": "https://app.example/billing?a=1&b=2"}))
	page := b.get(200, at+"?meter=api_calls", "Usage of acme", "25 % used", "7,500", "New units on 1", "Europe/Berlin", "your plan", "bought", "40", "reserved", "Use of api_calls by day", "requests to /search/*", "5 in 10 minutes", "7 of 7")
	for _, want := range []string{`aria-label="api_calls: 2,500 calls used, 0 reserved, 7,500 left"`, `lang="en"`, `href="https://app.example/billing?a=1&amp;b=2"`} {
		assert.Contains(t, page, want, "the page lacks %s", want)
	}
	for _, hidden := range []string{"invoice-7", "invoice 7", "render-1", "debit-1", "user-1", "bootstrap", "globex", "6 in", "8 in", "admin", "Top up", "style=", "<script>"} {
		assert.NotContains(t, page, hidden, "the page has %q", hidden)
	}
	b.get(200, at+"meters", "7,500")
	b.get(200, at+"statements/api_calls", "10,000")
	b.get(200, at+"statements/api_calls/current", "Statement of api_calls", "Added", "+10,000", "Used", "\u22122,500", "Left at the end", "running")
	german := b.send("GET", at, nil, "Accept-Language", "de-DE,de;q=0.9,en;q=0.5")
	b.has(german, 200, at, "Verbrauch von acme", "7.500", "verbraucht", "Neues Guthaben am 1.", "Zurück", "Anfragen an /search/*", "5 in 10 Minuten")
	assert.True(t, german.header.Get("Content-Language") == "de" &&
		strings.Contains(german.header.Get("Vary"), "Accept-Language"), german.header)
	c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"status": "suspended", "reason": "unpaid"})
	b.get(200, at, "Your use is suspended")
}

// TestPortal_NoOtherTenant: a link gives no access to another tenant, neither by paths, nor by queries, nor by the
// cookie of another link.
func TestPortal_NoOtherTenant(t *testing.T) {
	c := oneConsole.parallel(t)
	acme, globex := c.link(t, "acme", nil), c.link(t, "globex", nil)
	b := c.browser(t)
	at := b.follow(globex)
	other, _, _ := strings.Cut(acme, "open/")
	for _, path := range []string{other, other + "meters", other + "statements/api_calls/current"} {
		b.get(410, path, "This link has ended")
	}
	stolen := b.client.Jar.Cookies(urlOf(t, b.at+at))
	require.Len(t, stolen, 1, "cookies")
	b.has(b.send("GET", other, nil, "Cookie", stolen[0].String()), 410, other, "This link has ended")
	for _, path := range []string{at + "?tenant=acme", at + "statements/api_calls/current?tenant=acme&subject=user-1", at + "?meter=../acme"} {
		page := plain(b.get(200, path, "globex"))
		assert.False(t, strings.Contains(page, "acme") || strings.Contains(page, "2,500"),
			"%s shows others: %s", path, page)
	}
	for _, path := range []string{at + "statements/..%2F..%2Facme/current", at + "statements/none/current", at + "nowhere", "/portal/", at + "statements/api_calls/yesterday"} {
		got := b.send("GET", path, nil)
		assert.False(t, got.status != 404 && got.status != 400 && got.status != 301 && got.status != 307, "%s: %s", path, got)
	}
	b.get(200, at, "Usage of globex")
	// The cookie gives no access to the API and the console. No method changes anything.
	for _, path := range []string{"/v1/tenants/globex", "/console/tenants/globex"} {
		assert.Equal(t, 401, b.send("GET", path, nil, "Cookie", stolen[0].String()).status, path)
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		assert.GreaterOrEqual(t, b.send(method, at, nil).status, 400, method)
	}
}

// urlOf parses a URL, which must be valid.
func urlOf(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func TestPortal_LinkEnds(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	secret, id := c.key(t, "acme", "admin")
	made := decoded[struct{ URL string }](t, c.as(t, secret, "POST", "/v1/portal-sessions", object{"tenant": "acme"}))
	require.Equal(t, 403, c.as(t, secret, "POST", "/v1/portal-sessions", object{"tenant": "globex"}).status)
	ofKey := c.browser(t)
	atKey := ofKey.follow(urlOf(t, made.URL).Path)
	ofKey.get(200, atKey, "Usage of acme")

	short := c.browser(t)
	link := c.link(t, "acme", object{"expires_in_seconds": 1})
	short.eventually(410, link) // a slow machine may open the link too late
	all := c.browser(t)
	atAll := all.follow(c.link(t, "acme", nil))
	all.get(200, atAll, "Usage of acme")

	c.do(t, 204, "DELETE", "/v1/keys/"+id, "", nil)
	ofKey.get(410, atKey, "This link has ended", "Go back to the page where you found it")
	all.get(200, atAll, "Usage of acme")
	c.do(t, 204, "DELETE", "/v1/tenants/acme/portal-sessions", "", nil)
	all.get(410, atAll+"meters", "This link has ended")
	all.get(410, "/portal/pnone/open/x", "This link has ended")
	german := all.send("GET", atAll, nil, "Accept-Language", "de")
	all.has(german, 410, atAll, "Dieser Link gilt nicht mehr")
	c.logged(`"msg":"portal page"`, 5)
	assert.NotContains(t, c.stderr.String(), link[len(link)-30:], "the log has a secret")
}

// as sends a request with the API key whose secret is given.
func (c *consoled) as(t testing.TB, secret, method, path string, body object) answer {
	t.Helper()
	got, _ := c.post(t, method, path, encode(t, body), "Authorization", "Bearer "+secret)
	return got
}

var assetPaths = regexp.MustCompile(`/portal/_/assets/[^"]+`)

func TestPortal_Answers_CarryTheirProtection(t *testing.T) {
	t.Parallel()
	logo := write(t, "logo.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="32">`+
		`<script>alert(1)</script><rect width="90" height="32"/></svg>`)
	c := newConsole(t, "QUOTASVC_PORTAL_FRAME_ANCESTORS=https://app.example,https://*.shop.example", "QUOTASVC_CONSOLE_FRAME_ANCESTORS=https://desk.example",
		"QUOTASVC_PORTAL_URL=https://quota.example", "QUOTASVC_PORTAL_NAME=<b>Acme</b> Cloud", "QUOTASVC_PORTAL_THEME=accent=#0a6b43,accent-dark=#5fd3a1", "QUOTASVC_PORTAL_LOGO="+logo)
	made := decoded[struct{ URL string }](t, c.do(t, 201, "POST", "/v1/portal-sessions", "", object{"tenant": "acme"}))
	assert.True(t, strings.HasPrefix(made.URL, "https://quota.example/portal/"), "the link is %s", made.URL)
	link := urlOf(t, made.URL).Path
	b := c.browser(t)
	for proxied, want := range map[string][]string{"": {"SameSite=Strict", "HttpOnly"}, "https": {"SameSite=None", "HttpOnly", "Secure", "Partitioned", "__Secure-"}} {
		cookie := b.send("GET", link, nil, "X-Forwarded-Proto", proxied).header.Get("Set-Cookie")
		for _, part := range want {
			assert.Contains(t, cookie, part, "with %q the cookie is %s, without %s", proxied, cookie, part)
		}
	}
	at := b.follow(link)
	page := b.get(200, at, "<b>Acme</b> Cloud")
	for _, path := range []string{link, at, at + "nowhere", "/portal/_/assets/none.js"} {
		h := b.send("GET", path, nil).header
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.HasSuffix(policy, "; frame-ancestors https://app.example https://*.shop.example") ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
	policy := b.send("GET", "/console/login", nil).header.Get("Content-Security-Policy")
	assert.True(t, strings.HasSuffix(policy, "; frame-ancestors https://desk.example"), "the console: %s", policy)
	found := map[string]bool{}
	for _, path := range assetPaths.FindAllString(page, -1) {
		got := b.send("GET", path, nil)
		assert.True(t, got.status == http.StatusOK && strings.Contains(got.header.Get("Cache-Control"), "immutable"),
			"%s: %s", path, got)
		name := strings.Split(strings.TrimPrefix(path, "/portal/_/assets/"), ".")[0]
		found[name] = true
		assert.False(t, name == "theme" && !strings.Contains(string(got.body), "--accent:#0a6b43;"),
			"the theme is %s", got.body)
		policy := got.header.Get("Content-Security-Policy")
		assert.True(t, name != "logo" || policy == "default-src 'none'; sandbox", "the logo has the policy %s", policy)
	}
	assert.True(t, found["theme"] && found["logo"] && found["portal"], "the page loads %v", found)
	for setting, bad := range map[string]string{
		"QUOTASVC_PORTAL_FRAME_ANCESTORS": "*", "QUOTASVC_CONSOLE_FRAME_ANCESTORS": "https://a.example; script-src *", "QUOTASVC_PORTAL_URL": "quota.example",
		"QUOTASVC_PORTAL_THEME": "accent=#ffff00", "QUOTASVC_PORTAL_LOGO": "/nowhere.png",
	} {
		code, _, stderr := tool(t, append(backends(t), setting+"="+bad), "serve", "--validate")
		assert.True(t, code != 0 && (strings.Contains(strings.ToLower(stderr), "portal") || strings.Contains(stderr, setting)), "%s=%s: %d %s", setting, bad, code, stderr)
	}
}
