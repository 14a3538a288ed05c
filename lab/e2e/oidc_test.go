package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// providerOf returns the environment of an instance that uses an identity provider, and the provider's port. The
// provider need not run yet.
func providerOf(t *testing.T, more ...string) (port string, env []string) {
	t.Helper()
	programOf(t, "oidc-provider")
	port = portOf(t)
	return port, append([]string{
		"QUOTASVC_OIDC_ISSUER=http://localhost:" + port + "/", "QUOTASVC_OIDC_CLIENT_ID=web", "QUOTASVC_OIDC_CLIENT_SECRET=secret", "QUOTASVC_OIDC_NAME=Acme ID",
		"QUOTASVC_OIDC_RIGHTS=email=ada@example.com->admin,email=bob@example.com->read@globex,preferred_username=eve->read@nobody",
	}, more...)
}

// startProvider starts a real identity provider, whose only client is the console.
func startProvider(t *testing.T, port, console string) {
	t.Helper()
	type user struct {
		ID, Username, Password, FirstName, LastName, Email, PreferredLanguage string
		EmailVerified                                                         bool
	}
	users := map[string]user{
		"ada":     {ID: "ada", Username: "ada", Password: "pw-ada", FirstName: "Ada", LastName: "Byron", Email: "ada@example.com", EmailVerified: true, PreferredLanguage: "en"},
		"bob":     {ID: "bob", Username: "bob", Password: "pw-bob", FirstName: "Bob", LastName: "<script>alert(1)</script>", Email: "bob@example.com", EmailVerified: true, PreferredLanguage: "en"},
		"mallory": {ID: "mallory", Username: "mallory", Password: "pw-mallory", FirstName: "M", LastName: "M", Email: "ada@example.com", PreferredLanguage: "en"}, // not verified
	}
	file := write(t, "users.json", encode(t, users))
	var log bytes.Buffer
	cmd := exec.Command(programOf(t, "oidc-provider")) //nolint:gosec // the provider
	cmd.Env = append(os.Environ(), "PORT="+port, "USERS_FILE="+file, "REDIRECT_URI="+console+"oidc/callback")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the provider says: %s", log.Bytes()[max(0, log.Len()-5000):])
		}
	})
	testenv.Eventually(t, func() bool {
		resp, err := http.Get("http://localhost:" + port + "/.well-known/openid-configuration")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}, "the provider answers")
}

var (
	onwards   = regexp.MustCompile(`content="0;url=([^"]+)"`)
	requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)
)

// atProvider signs in at the identity provider, and returns the path to which the provider redirects. The sign-in
// begins with a form that contains the given fields.
func (b *browser) atProvider(user string, fields url.Values) string {
	b.t.Helper()
	page := b.post(200, "/console/oidc/start", fields, "Signing in with Acme ID")
	jar, err := cookiejar.New(nil)
	require.NoError(b.t, err)
	provider := &http.Client{Jar: jar, Timeout: testenv.Patience, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), b.at) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	read := func(resp *http.Response, err error) (string, *http.Response) {
		b.t.Helper()
		require.NoError(b.t, err)
		defer resp.Body.Close()
		return string(testenv.Must(b.t).Get(io.ReadAll(resp.Body))), resp
	}
	to := unescaped(onwards.FindStringSubmatch(page)[1])
	q := urlOf(b.t, to).Query()
	assert.True(b.t, q.Get("code_challenge_method") == "S256" && q.Get("nonce") != "" && q.Get("state") != "",
		"asked by %s", to)
	form, resp := read(provider.Get(to)) //nolint:bodyclose // read closes it
	login := resp.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String()
	_, resp = read(provider.PostForm(login, url.Values{"id": {requestID.FindStringSubmatch(form)[1]}, "username": {user}, "password": {"pw-" + user}})) //nolint:bodyclose // read closes it
	back := resp.Header.Get("Location")
	require.True(b.t, strings.HasPrefix(back, b.at+"/console/oidc/callback?"), "the provider leads to %q", back)
	return strings.TrimPrefix(back, b.at)
}

// TestOIDC_RealProvider_RightsByClaims: the service starts while the provider is down. Users get the rights that
// their claims give them. A user without such a claim cannot sign in.
func TestOIDC_RealProvider_RightsByClaims(t *testing.T) {
	t.Parallel()
	port, env := providerOf(t)
	c := newConsole(t, env...)
	b := c.browser(t)
	b.get(200, "/console/login", "Sign in with Acme ID")
	b.post(503, "/console/oidc/start", url.Values{}, "The identity provider gave a wrong answer", "API key")
	startProvider(t, port, c.console)
	testenv.Eventually(t, func() bool { return b.send("POST", "/console/oidc/start", url.Values{}).status == 200 }, "the provider is asked again")

	back := b.atProvider("ada", url.Values{"target": {"/console/audit"}})
	stranger := c.browser(t)
	stranger.get(400, back, "began in another browser")
	done := b.get(200, back, "Signed in")
	assert.EqualValues(t, "/console/audit", onwards.FindStringSubmatch(done)[1], "it leads to")
	b.get(400, back, "Begin again") // a code can only be used once
	b.get(200, "/console/audit", "Ada Byron admin")
	const topUp = "/console/tenants/acme/correct/top-up"
	b.post(200, topUp, stepped(b.formOf(topUp, "meter", "credits", "amount", "5", "reason", "goodwill"), "apply"), "Done.")
	b.get(200, "/console/audit?tenant=acme&action=grant.create", "goodwill", "by Ada Byron ( oidc:ada )")
	b.get(200, "/console/audit?actor=oidc:ada", "goodwill")

	bob := c.browser(t)
	bob.get(200, bob.atProvider("bob", url.Values{}), "Signed in")
	assert.NotContains(t, bob.get(200, "/console/tenants/globex", "read, globex only"), "<script>alert",
		"a name runs")
	bob.get(403, "/console/tenants/acme", "This key may not do that")
	mallory := c.browser(t)
	mallory.get(403, mallory.atProvider("mallory", url.Values{}), "Your account is known, but has no rights here")
	mallory.get(401, "/console/tenants", "Sign in to quotasvc")

	out := b.post(200, "/console/logout", url.Values{"token": {b.token()}}, "Signed out")
	to := unescaped(onwards.FindStringSubmatch(out)[1])
	assert.True(t, strings.HasPrefix(to, "http://localhost:"+port+"/") && strings.Contains(to, "client_id=web"), "signing out leads to %s", to)
	b.get(401, "/console/tenants", "Sign in to quotasvc")

	for query, says := range map[string]string{"error=access_denied": "did not let you in (access denied)", "error=%3Cscript%3E": "did not let you in.", "code=wrong": "did not accept the code"} {
		again := c.browser(t)
		sent := unescaped(onwards.FindStringSubmatch(again.post(200, "/console/oidc/start", url.Values{}))[1])
		again.get(401, "/console/oidc/callback?"+query+"&state="+urlOf(t, sent).Query().Get("state"), says)
	}
	again := c.browser(t)
	again.post(200, "/console/oidc/start", url.Values{})
	again.get(400, "/console/oidc/callback?code=x&state=other", "answer belongs to another sign-in")
	for _, wrong := range [][]string{{"QUOTASVC_OIDC_ISSUER=http://id.example.com"}, {"QUOTASVC_OIDC_RIGHTS=groups=x->write"}, {"QUOTASVC_OIDC_CLIENT_SECRET="}, {"QUOTASVC_OIDC_SESSION=13h"}, {"QUOTASVC_OIDC_ISSUER="}} {
		code, _, stderr := tool(t, append(append(backends(t), env...), wrong...), "serve", "--validate")
		assert.True(t, code != 0 && strings.Contains(stderr, "oidc-"), "%s: %d %s", wrong, code, stderr)
	}
}

// TestOIDC_InChromium_EndToEnd: the sign-in works in a real browser, with a real provider on another site. If the
// session ends before a form is sent, the form is shown again after the sign-in.
func TestOIDC_InChromium_EndToEnd(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	port, env := providerOf(t)
	c := newConsole(t, env...)
	startProvider(t, port, c.console)
	b := newChromium(t, c)
	atProvider := func() {
		t.Helper()
		b.loaded(`location.hostname === "localhost" && document.querySelector("#username")`)
		b.do(chromedp.SendKeys(chromedp.CSS("#username"), "ada"), chromedp.SendKeys(chromedp.CSS("#password"), "pw-ada"))
		b.clickAt(`//button[@type="submit"]`)
	}
	b.open("/console/tenants/acme?meter=credits")
	b.click("Sign in with Acme ID")
	atProvider()
	b.shows("Ada Byron")
	b.until(`location.pathname === "/console/tenants/acme"`)
	b.click("Top up")
	b.fill("amount", "77")
	b.fill("reason", "kept on the way")
	_, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}) // the session ends
	require.NoError(t, err)
	b.click("Preview")
	b.shows("Your input is kept")
	b.click("Sign in with Acme ID")
	b.until(`location.hostname === "localhost" && document.querySelector("#username") || document.querySelector("[name=amount]")`)
	if result(b, chromedp.Evaluate[bool](`location.hostname === "localhost"`)) {
		atProvider()
	}
	b.until(`document.querySelector("[name=reason]") && document.querySelector("[name=reason]").value === "kept on the way" && document.querySelector("[name=amount]").value === "77"`)
	b.click("Preview")
	b.shows("560 credits 637 credits")
	b.click("Top up")
	b.shows("Done.")
	b.mu.Lock()
	for _, w := range b.wrong {
		if !strings.Contains(w, "localhost:"+port) && !strings.Contains(w, "401") { // the provider's own pages; the session that ended
			t.Error(w)
		}
	}
	b.mu.Unlock()
}
