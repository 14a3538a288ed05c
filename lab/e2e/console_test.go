package e2e

import (
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// consoled is an instance with the address of its console.
type consoled struct {
	*instance

	console string // URL, with the slash at its end
}

// oneConsole is the service of tests that do not change its tenants or its catalogue.
var oneConsole = together[*consoled]{start: func(h *host) *consoled { return newConsole(h) }}

// newConsole starts a service with a catalogue and some tenants.
func newConsole(t testing.TB, env ...string) *consoled {
	t.Helper()
	in := serve(t, append(append(backends(t), "QUOTASVC_LOG_LEVEL=info"), env...))
	c := &consoled{instance: in, console: in.line("console ")}
	in.do(t, 201, "PUT", "/v1/meters/api_calls", "", object{"unit": "calls"})
	in.do(t, 201, "PUT", "/v1/meters/credits", "", object{"unit": "credits"})
	in.do(t, 201, "PUT", "/v1/plans/starter", "", object{"allowances": []object{
		{"meter": "api_calls", "amount": 10_000, "every": "month", "anchor": "calendar"}, {"meter": "credits", "amount": 100, "every": "month", "anchor": "calendar", "overage": object{"policy": "allow", "cap": 50}},
	}})
	in.do(t, 201, "PUT", "/v1/plans/team", "", object{"allowances": []object{{"meter": "api_calls", "amount": 50_000, "every": "month", "anchor": "calendar"}}})
	for _, tenant := range []string{"acme", "acme-eu", "globex"} {
		in.do(t, 201, "PUT", "/v1/tenants/"+tenant, "", object{"plan": "starter", "timezone": "Europe/Berlin"})
	}
	in.do(t, 201, "POST", "/v1/tenants/acme/grants", "topup-1", object{"meter": "credits", "amount": 500, "source": "topup", "grant_id": "invoice-7", "reason": "invoice 7"})
	in.do(t, 200, "POST", "/v1/debits", "debit-1", object{"tenant": "acme", "subject": "user-1", "items": []object{{"meter": "api_calls", "amount": 2_500}}})
	in.do(t, 201, "POST", "/v1/holds", "hold-1", object{"tenant": "acme", "hold_id": "render-1", "items": []object{{"meter": "credits", "amount": 40}}, "ttl_seconds": 86400})
	return c
}

// key creates an API key and returns its secret and its id.
func (c *consoled) key(t testing.TB, tenant string, scopes ...string) (secret, id string) {
	t.Helper()
	body := object{"name": "a " + strings.Join(scopes, " ") + " key", "scopes": scopes}
	if tenant != "" {
		body["tenant"] = tenant
	}
	made := decoded[struct {
		Secret string
		KeyID  string `json:"key_id"`
	}](t, c.do(t, 201, "POST", "/v1/keys", "", body))
	return made.Secret, made.KeyID
}

// browser sends requests as a browser without JavaScript does.
type browser struct {
	t      testing.TB
	at     string
	client *http.Client
}

func (c *consoled) browser(t testing.TB) *browser {
	t.Helper()
	jar := testenv.Must(t).Get(cookiejar.New(nil))
	return &browser{t: t, at: strings.TrimSuffix(c.console, "/console/"), client: &http.Client{
		Jar: jar, Timeout: testenv.Patience, Transport: c.http.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (b *browser) send(method, path string, fields url.Values, header ...string) answer {
	b.t.Helper()
	if fields != nil {
		header = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)
	}
	return fetch(b.t, b.client, method, b.at+path, fields.Encode(), header...)
}

// get requests a page and returns it. It fails the test unless the answer has this status and contains these texts.
func (b *browser) get(status int, path string, texts ...string) string {
	b.t.Helper()
	return b.has(b.send("GET", path, nil), status, path, texts...)
}

func (b *browser) post(status int, path string, fields url.Values, texts ...string) string {
	b.t.Helper()
	return b.has(b.send("POST", path, fields), status, path, texts...)
}

func (b *browser) has(got answer, status int, path string, texts ...string) string {
	b.t.Helper()
	page := string(got.body)
	require.True(b.t, got.status == status, "%s: %d, want %d: %s", path, got.status, status, plain(page))
	for _, text := range texts {
		require.Contains(b.t, plain(page), text, "%s lacks %q", path, text)
	}
	return page
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
	tokens = regexp.MustCompile(`name="token" value="([^"]+)"`)
	onces  = regexp.MustCompile(`name="once" value="([^"]+)"`)

	versions   = regexp.MustCompile(`name="version" value="([^"]+)"`)
	keptFields = regexp.MustCompile(`name="(kept\.[^"]+)" value="([^"]*)"`)
)

// plain returns the text of a page as a person sees it, without tags.
func plain(page string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(page, " ")), " "))
}

func unescaped(text string) string { return html.UnescapeString(text) }

// signIn signs in with a key, and fails the test if the sign-in fails.
func (b *browser) signIn(key string) *browser {
	b.t.Helper()
	b.post(303, "/console/login", url.Values{"key": {key}, "target": {"/console/"}})
	return b
}

// token returns the token that each form of the session contains.
func (b *browser) token() string {
	b.t.Helper()
	return tokens.FindStringSubmatch(b.get(200, "/console/tenants"))[1]
}

func TestConsole_SignIn_ExchangesKeyForSession(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.browser(t)
	b.get(401, "/console/tenants/acme?meter=credits", "Sign in to quotasvc")
	for _, tc := range []struct {
		key, says string
		status    int
	}{
		{"", "Enter a key", 400},
		{"with a blank", "Enter a key", 400},
		{strings.Repeat("x", 513), "Enter a key", 400},
		{strings.Repeat("x", 52), "unknown, expired or revoked", 401},
	} {
		assert.False(t, tc.key != "" && strings.Contains(b.post(tc.status, "/console/login", url.Values{"key": {tc.key}}, tc.says), tc.key),
			"the page shows the key that was entered")
	}
	use, _ := c.key(t, "", "use")
	b.post(403, "/console/login", url.Values{"key": {use}}, "needs a key with the scope read or admin; this key has use")

	secret, id := c.key(t, "", "read")
	got := b.send("POST", "/console/login", url.Values{"key": {" " + secret + "\n"}, "target": {"/console/tenants/acme?meter=credits"}})
	cookie := got.header.Get("Set-Cookie")
	require.True(t, got.status == 303 && got.header.Get("Location") == "/console/tenants/acme?meter=credits",
		"%d to %q", got.status, got.header.Get("Location"))
	for _, want := range []string{"quotasvc_console=", "Path=/console/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"} {
		assert.Contains(t, cookie, want, "the cookie %q lacks %s", cookie, want)
	}
	assert.True(t, !strings.Contains(cookie, secret) && !strings.Contains(cookie, "Secure"), "the cookie is %q", cookie)
	secure := b.send("POST", "/console/login", url.Values{"key": {secret}}, "X-Forwarded-Proto", "https").header.Get("Set-Cookie")
	assert.True(t, strings.HasPrefix(secure, "__Secure-quotasvc_console=") && strings.Contains(secure, "; Secure"),
		"over TLS the cookie is %q", secure)
	b.get(200, "/console/tenants/acme", "credits", "a read key read", "invoice-7", "render-1", "Europe/Berlin", "2,500")
	b.send("POST", "/console/logout", url.Values{"token": {b.token()}})
	b.get(401, "/console/tenants/acme", "Sign in to quotasvc")

	b.signIn(secret)
	c.do(t, 204, "DELETE", "/v1/keys/"+id, "", nil)
	b.eventually(401, "/console/tenants")
	assert.NotContains(t, c.stderr.String(), secret, "the log has the key")
}

// eventually waits until a request for a page is answered with this status.
func (b *browser) eventually(status int, path string) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool { return b.send("GET", path, nil).status == status }, path, " gets ", status)
}

// showsSoon waits until a page shows a text.
func (b *browser) showsSoon(path, text string) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool { return strings.Contains(plain(b.get(200, path)), text) }, path, " shows ", text)
}

func TestConsole_WrongKeys_LimitedWithThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.browser(t)
	var got answer
	for i := 0; i < 60 && got.status != 429; i++ {
		got = b.send("POST", "/console/login", url.Values{"key": {strings.Repeat("x", 40)}})
	}
	require.Equal(t, 429, got.status, "sixty wrong keys at once were not limited")
	assert.NotEmpty(t, got.header.Get("Retry-After"), "no Retry-After")
}

// TestConsole_TargetOfSignIn_StaysHere: the sign-in page never redirects to another site.
func TestConsole_TargetOfSignIn_StaysHere(t *testing.T) {
	c := oneConsole.parallel(t)
	for given, want := range map[string]string{
		"https://evil.example/console/": "/console/", "//evil.example/console/": "/console/", "/console/../v1/keys": "/console/", "/v1/keys": "/console/",
		`/console/\evil`: "/console/", "javascript:alert(1)": "/console/", "/console/explain?tenant=acme": "/console/explain?tenant=acme",
	} {
		got := c.browser(t).send("POST", "/console/login", url.Values{"key": {testKey}, "target": {given}})
		assert.Equal(t, want, got.header.Get("Location"), given)
	}
}

// pagesOf returns the paths of the pages about a tenant.
func pagesOf(tenant string) []string {
	at := "/console/tenants/" + tenant
	return []string{at, at + "/balances", at + "/journal", at + "/refusals", at + "/journal.csv", at + "/usage.csv", at + "/statements/credits", at + "/statements/credits/current", at + "/statements/credits/current/csv"}
}

func TestConsole_BoundKey_SeesItsTenantOnly(t *testing.T) {
	c := oneConsole.parallel(t)
	secret, _ := c.key(t, "globex", "admin")
	b := c.browser(t).signIn(secret)
	assert.EqualValues(t, "/console/tenants/globex", b.send("GET", "/console/", nil).header.Get("Location"),
		"the first page")
	assert.NotContains(t, plain(b.get(200, "/console/tenants", "globex")), "acme", "the list shows others")
	b.get(200, "/console/tenants?q=acme", "No tenant begins with acme")
	for _, path := range pagesOf("globex") {
		b.get(200, path)
	}
	for _, tenant := range []string{"acme", "nobody"} { // the answer does not reveal which tenants exist
		for _, path := range pagesOf(tenant) {
			assert.NotContains(t, b.get(403, path, "This key may not do that"), "invoice-7",
				"%s shows what the tenant has", path)
		}
	}
	b.get(200, "/console/explain?tenant=acme&meter=credits&amount=1", "This key may not do that")
	b.get(403, "/console/audit?tenant=acme", "This key may not do that")
	b.get(403, "/console/events?tenant=acme", "This key may not do that")
	for _, path := range []string{"/console/audit", "/console/events", "/console/keys"} {
		page := plain(b.get(200, path))
		assert.False(t, strings.Contains(page, "acme") || strings.Contains(page, "invoice-7"),
			"%s shows others: %s", path, page)
	}
	b.post(403, "/console/proof", url.Values{"token": {b.token()}, "tenant": {"acme"}}, "This key may not do that")
}

func TestConsole_Answers_CarryTheirProtection(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	for _, path := range []string{"/console/login", "/console/tenants", "/console/tenants/nobody", "/console/nowhere", "/console/tenants/acme/journal.csv", "/console/assets/none.js"} {
		h := b.send("GET", path, nil).header
		policy := h.Get("Content-Security-Policy")
		assert.True(t, strings.HasPrefix(policy, "default-src 'none'") && !strings.Contains(policy, "unsafe") &&
			strings.Contains(policy, "frame-ancestors 'none'"), "%s: Content-Security-Policy %q", path, policy)
		assert.True(t, h.Get("X-Content-Type-Options") == "nosniff" && h.Get("Referrer-Policy") == "same-origin" &&
			h.Get("Cache-Control") == "no-store", "%s: %v", path, h)
	}
	page := b.get(200, "/console/tenants/acme")
	for _, inline := range []string{" style=", "<style", " onclick=", "javascript:", "<script>"} {
		assert.NotContains(t, page, inline, "the page has %q, which its policy refuses", inline)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		h := b.send("GET", m[1], nil).header
		assert.Contains(t, h.Get("Cache-Control"), "immutable", "%s is not kept by browsers: %v", m[1], h)
	}
}

func TestConsole_FormsOfOthers_ChangeNothing(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	other := c.browser(t).signIn(testKey)
	for _, token := range []string{"", "x", other.token()} {
		b.post(403, "/console/logout", url.Values{"token": {token}}, "The form is not from this session")
	}
	good := url.Values{"token": {b.token()}}
	b.has(b.send("POST", "/console/logout", good, "Sec-Fetch-Site", "cross-site"), 403, "logout", "The form came from another site")
	b.has(b.send("POST", "/console/logout", good, "Origin", "https://evil.example"), 403, "logout", "The form came from another site")
	b.post(413, "/console/logout", url.Values{"token": {strings.Repeat("x", 70_000)}}, "The form is too large")
	b.get(200, "/console/tenants") // the session still exists
}

// hostile is a text that ends every HTML context into which a page could write it.
const hostile = `"'></title></textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>`

func TestConsole_Texts_StayTexts(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.do(t, 200, "PUT", "/v1/meters/credits", "", object{"unit": hostile[:40]})
	c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"plan": "team", "apply": "next_period", "reason": hostile, "metadata": object{"note": hostile, hostile: "key"}})
	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "g-"+"<script>alert(1)</script>", object{"meter": "credits", "amount": 5, "source": "promo", "reason": hostile})
	c.do(t, 200, "POST", "/v1/debits", `"><script>alert(1)</script>`, object{"tenant": "acme", "items": []object{{"meter": "credits", "amount": 1}}, "metadata": object{"m": hostile}})
	b := c.browser(t).signIn(testKey)
	paths := append(pagesOf("acme"), "/console/tenants?q="+url.QueryEscape(hostile), "/console/tenants/acme/journal?meter="+url.QueryEscape(hostile),
		"/console/tenants/acme/journal?from="+url.QueryEscape(hostile), "/console/explain?tenant=acme&meter=credits&amount="+url.QueryEscape(hostile),
		"/console/explain?tenant=acme&meter="+url.QueryEscape(hostile)+"&amount=1", "/console/tenants/"+url.PathEscape(hostile), "/console/"+url.PathEscape(hostile),
		"/console/tenants/acme?meter="+url.QueryEscape(hostile), "/console/audit", "/console/audit?action="+url.QueryEscape(hostile), "/console/events", "/console/events?type="+url.QueryEscape(hostile), "/console/catalogue", "/console/keys",
		"/console/proof?verification="+url.QueryEscape(hostile), "/console/tenants/acme/statements/"+url.PathEscape(hostile)+"/current")
	for _, path := range paths {
		got := b.send("GET", path, nil)
		if strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") {
			continue // this is a file, not a page
		}
		page := string(got.body)
		assert.False(t, strings.Contains(page, "<script>alert") || strings.Contains(page, "<img"),
			"%s runs a text: %s", path, page)
	}
	b.get(200, "/console/tenants/acme", "alert(1)") // the page shows it as text
	bad := b.post(400, "/console/login", url.Values{"key": {hostile}, "target": {hostile}, "kept.reason": {hostile}})
	assert.NotContains(t, bad, "<script>alert", "the sign-in page runs a text")
}

func TestConsole_Tenants_FoundByTheirBeginning(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	assert.NotContains(t, plain(b.get(200, "/console/tenants?q=acme", "acme", "acme-eu")), "globex", "found")
	b.get(200, "/console/tenants?q=Acme", "No tenant begins with Acme", "case-sensitive")
	b.get(400, "/console/tenants?q=a%20b", "The API does not accept this", "prefix")
	part := string(b.send("GET", "/console/tenants?q=acme-", nil, "Hx-Request", "true").body)
	assert.True(t, !strings.Contains(part, "<html") && strings.Contains(part, "acme-eu"), "htmx gets %s", part)
	part = string(b.send("GET", "/console/tenants?q=a%20b", nil, "Hx-Request", "true").body)
	assert.True(t, !strings.Contains(part, "<html") && strings.Contains(part, "The API does not accept this"),
		"htmx gets %s", part)
}

func TestConsole_Tenant_ShowsWhatTheAPIKnows(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	page := b.get(200, "/console/tenants/acme?meter=credits", "invoice-7", "top-up", "the plan's allowance", "render-1", "40 credits", "Next periods of credits", "Europe/Berlin")
	assert.Contains(t, page, `aria-label="credits: 0 credits used, 40 held, 560 remaining"`,
		"the bar does not say what it shows")
	b.get(200, "/console/tenants/acme/journal?meter=api_calls&kind=debit", "debit-1", "user-1", "2,500 calls", "bootstrap")
	b.get(200, "/console/tenants/acme/journal?meter=api_calls&from=2030-01-01", "There are no entries")
	b.get(400, "/console/tenants/acme/journal?from=yesterday", "This is not a time")
	sheet := b.get(200, "/console/tenants/acme/journal.csv?meter=api_calls")
	assert.Contains(t, sheet, "debit,api_calls,calls,2500,7500,", "the journal as CSV")
	sheet = b.get(200, "/console/tenants/acme/usage.csv?meter=api_calls")
	assert.True(t, strings.Contains(sheet, ",Europe/Berlin,api_calls,calls,2500,0,0,1") && strings.Count(sheet, "\n") == 32, "the use as CSV: %s", sheet)
	b.get(200, "/console/tenants/acme/statements/api_calls/current", "Statement of api_calls", "Granted", "+10,000", "−2,500", "Closing", "7,500", "The figures add up")
	b.get(200, "/console/tenants/acme/statements/api_calls", "starter")
	b.get(404, "/console/tenants/nobody", "There is no such tenant")
	b.get(404, "/console/nowhere", "There is no such page")
}

// TestConsole_Refusals_EachInWords answers: why was acme refused at that time?
func TestConsole_Refusals_EachInWords(t *testing.T) {
	c := oneConsole.parallel(t)
	c.do(t, 429, "POST", "/v1/debits", "too-much", object{"tenant": "acme", "subject": "user-7", "items": []object{{"meter": "api_calls", "amount": 8_000}}})
	b := c.browser(t).signIn(testKey)
	b.showsSoon("/console/tenants/acme/refusals", "Not enough api_calls: 8,000 calls needed, 7,500 left. Waiting helps.")
	b.get(200, "/console/tenants/acme/refusals", "user-7", "quota_exceeded", "Times are of Europe/Berlin")
	b.get(200, "/console/tenants/globex/refusals", "Nothing was refused in this time")
	b.get(400, "/console/tenants/acme/refusals?from=noon", "This is not a time")
	b.get(400, "/console/tenants/acme/refusals?day=today", "This is not a time")
	b.get(400, "/console/tenants/acme/refusals?at=2pm", "This is not a time of day", "14:05, in Europe/Berlin")
}

// The page shows the refusals of a minute in the tenant's zone. If no day is given, it shows the last such minute in
// the past.
func TestConsole_Refusals_OfAMinute(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	c.do(t, 402, "POST", "/v1/debits", "too-much", object{"tenant": "acme-eu", "items": []object{{"meter": "api_calls", "amount": 18_000}}})
	b.showsSoon("/console/tenants/acme-eu/refusals", "18,000 calls needed")
	page := b.get(200, "/console/tenants/acme-eu/refusals")
	link := regexp.MustCompile(`href="(/console/tenants/acme-eu/refusals\?at=(\d\d)%3A(\d\d)&amp;day=(\d{4}-\d\d-\d\d))">`).FindStringSubmatch(page)
	require.NotNil(t, link, "the counts lead to no minute: %s", plain(page))
	at, day := link[2]+":"+link[3], link[4]
	there := "from " + day + " " + at
	if at == "00:00" {
		there = "from " + day
	}
	b.get(200, unescaped(link[1]), there, "18,000 calls needed", "This is one minute.")
	b.get(200, "/console/tenants/acme-eu/refusals?at="+at, there, "18,000 calls needed", "the whole day")
	b.get(200, "/console/tenants/acme-eu/refusals?day="+day, "from "+day, "18,000 calls needed")
	minute := testenv.Must(t).Get(time.ParseInLocation("2006-01-02 15:04", day+" "+at, berlin(t)))
	// One hour later is in the future today, so the page shows yesterday. The minute of before has no refusal, and
	// the half hour around that minute has one.
	later, before := minute.Add(time.Hour), minute.Add(-time.Minute)
	b.get(200, "/console/tenants/acme-eu/refusals?at="+later.Format("15:04"), "from "+later.AddDate(0, 0, -1).Format("2006-01-02"), "Nothing was refused in this time")
	page = b.get(200, "/console/tenants/acme-eu/refusals?day="+before.Format(time.DateOnly)+"&at="+before.Format("15:04"), "Nothing was refused in this time")
	around := regexp.MustCompile(`href="([^"]+)">the half hour around it`).FindStringSubmatch(page)
	require.NotNil(t, around, "there is no way to the half hour around")
	b.get(200, unescaped(around[1]), "18,000 calls needed")
	csv := regexp.MustCompile(`href="([^"]+refusals\.csv[^"]+)"`).FindStringSubmatch(b.get(200, unescaped(link[1])))
	got := b.send("GET", unescaped(csv[1]), nil)
	assert.True(t, got.status == 200 && strings.Count(string(got.body), "credits_exhausted") == 1, "the file of the minute: %s", got)
}

// berlin returns the time zone of the tenants.
func berlin(t testing.TB) *time.Location {
	t.Helper()
	return testenv.Must(t).Get(time.LoadLocation("Europe/Berlin"))
}

func TestConsole_Records_WhatWasChangedAndProved(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	_, id := c.key(t, "globex", "read")
	c.do(t, 201, "PUT", "/v1/limits/burst", "", object{"per": []string{"tenant", "subject"}, "kind": "token_bucket", "rate": "5/s", "burst": 5, "mode": "shadow", "match": object{"route": "search"}})
	b := c.browser(t).signIn(testKey)
	b.get(200, "/console/audit?tenant=acme", "grant.create grant invoice-7", "invoice 7", "by bootstrap", "Before and after", `"amount": 500`)
	b.get(200, "/console/audit?action=key.revoke", "No change matches")
	b.get(400, "/console/audit?from=noon", "This is not a time")
	b.get(200, "/console/keys", id, "a read key", "globex", "active")
	b.get(200, "/console/catalogue", "starter", "10,000 calls", "overage up to 50", "burst", "shadow", "token bucket", "tenant, subject", "route search")
	b.showsSoon("/console/events?tenant=acme", "grant.created")
	b.get(200, "/console/proof", "No day is sealed yet")
	got := b.send("POST", "/console/proof", url.Values{"token": {b.token()}, "tenant": {"acme"}})
	at := got.header.Get("Location")
	require.True(t, got.status == 303 && strings.HasPrefix(at, "/console/proof?verification="),
		"%s leads to %q", got, at)
	b.showsSoon(at, "clean")
	b.get(200, at, "Differences 0")

	read, _ := c.key(t, "", "read")
	b.signIn(read)
	page := b.get(200, "/console/catalogue")
	assert.False(t, strings.Contains(page, "/console/audit") || strings.Contains(page, "/console/keys"),
		"the navigation offers pages that the key may not see")
	b.get(403, "/console/audit", "This key may not do that")
	b.get(403, "/console/keys", "This key may not do that")
	b.post(403, "/console/proof", url.Values{"token": {b.token()}}, "This key may not change anything")
}

func TestConsole_Explain_SaysWhichStepLimits(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.do(t, 201, "PUT", "/v1/limits/burst", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "5/s", "burst": 5, "match": object{"route": "search"}})
	b := c.browser(t).signIn(testKey)
	ask := func(query string, texts ...string) { b.get(200, "/console/explain?tenant=acme&"+query, texts...) }
	ask("meter=credits&amount=150", "Allowed: acme could use 150 credits of credits now.", "First grant", "60 credits", "Second grant", "From grant invoice-7 (top-up).", "90 credits", "410 credits of credits would remain")
	ask("meter=credits&amount=580", "Allowed", "Overage", "20 credits")
	ask("meter=credits&amount=900", "Denied", "900 credits are needed, and 560 of ")
	ask("meter=api_calls&amount=8000", "429 quota_exceeded", "It would succeed at", "CE")
	b.showsSoon("/console/explain?tenant=acme&meter=api_calls&amount=1&route=search", "Rate limit burst") // the instance has read the limit
	ask("meter=api_calls&amount=1&route=search", "Rate limit burst", "of 5 requests are left (token bucket)")
	ask("meter=none&amount=1", "There is nothing with this id", "does not exist")
	ask("meter=credits&amount=many", "The amount is not a whole number")
	zone := berlin(t)
	now := time.Now().In(zone)
	at := func(t time.Time) string { return "&at=" + t.Format("2006-01-02T15:04:05") }
	nextMonth := time.Date(now.Year(), now.Month()+1, 3, 12, 0, 0, 0, zone)
	ask("meter=api_calls&amount=8000"+at(nextMonth), "Allowed: acme could use 8000 calls of api_calls at "+nextMonth.Format("2006-01-02 15:04:05 MST"), "First grant", "2,000 calls of api_calls would remain", "Blocks and a suspension are those of now")
	ask("meter=api_calls&amount=10001"+at(nextMonth), "Denied: acme could not use 10001 calls of api_calls", "credits_exhausted")
	ask("meter=credits&amount=150"+at(now.Add(-time.Minute)), "Balance of credits", "Refused in the minute of", "Read why", "A refusal names the limit that denied it")
	ask("meter=credits&amount=150"+at(now.AddDate(2, 0, 0)), "must lie in the next 400 days")
	ask("meter=credits&amount=150&at=noon", "This is not a time")
	c.sellTokens(t)
	b.get(200, "/console/explain?tenant=ada&meter=tokens&amount=2845", "Overflow to coins",
		"2,345 tokens of tokens at 1 coins for 1,000 cost exactly 2.345, rounded up to 3.")
	c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"status": "suspended"})
	b.showsSoon("/console/explain?tenant=acme&meter=credits&amount=1", "403 tenant_suspended")

	read, _ := c.key(t, "", "read")
	b.signIn(read)
	ask("meter=credits&amount=1", "A check needs a key with the scope use or admin")
}

func TestConsole_Listen_OwnAddressOrOff(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "QUOTASVC_CONSOLE_LISTEN=127.0.0.1:0")
	assert.False(t, strings.HasPrefix(c.console, c.api), "the console is at the API's address: %s", c.console)
	b := c.browser(t).signIn(testKey)
	b.get(200, "/console/tenants", "acme")
	assert.EqualValues(t, "/console/", b.send("GET", "/", nil).header.Get("Location"), "its root leads to")
	b.send("GET", "/v1/tenants", nil)
	c.do(t, 404, "GET", "/console/login", "", nil)

	off := serve(t, append(backends(t), "QUOTASVC_CONSOLE_LISTEN=off"))
	off.do(t, 404, "GET", "/console/login", "", nil)
	_, _, stderr := tool(t, append(backends(t), "QUOTASVC_CONSOLE_LISTEN=nowhere"), "serve", "--validate")
	assert.Contains(t, stderr, "QUOTASVC_CONSOLE_LISTEN", "an address that is none")
}
