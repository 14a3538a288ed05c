package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestPortal_InChromium_ReadsAndEnds(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t, "QUOTASVC_PORTAL_THEME=accent=#0a6b43,accent-dark=#5fd3a1", "QUOTASVC_PORTAL_NAME=Acme Cloud")
	b := newChromium(t, c)
	script := axe(t)
	link := c.link(t, "acme", object{"return_url": "https://app.example/billing"})
	b.open(link)
	b.shows("Usage of acme")
	at := result(b, chromedp.Location())
	assert.NotContains(t, at, "open", "the address has the secret")
	assert.LessOrEqual(t, result(b, chromedp.Evaluate[int]("history.length")), 2, "entries of the history")
	path := strings.TrimPrefix(at, b.at)
	for _, page := range []string{path, path + "?meter=credits", path + "statements/api_calls", path + "statements/api_calls/current"} {
		b.open(page)
		b.accessible(script)
	}
	b.dark("dark")
	b.do(chromedp.EmulateViewport(360, 740))
	b.open(path)
	assert.False(t, result(b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth")),
		"the page is wider than a phone")
	accent := result(b, chromedp.Evaluate[string](`getComputedStyle(document.querySelector("main a")).color`))
	assert.Equal(t, "rgb(95, 211, 161)", accent) // the link colour of the dark scheme
	b.do(chromedp.EmulateViewport(1100, 800))
	b.click("Statement so far")
	b.shows("Statement of")
	b.clean()
	c.do(t, 204, "DELETE", "/v1/tenants/acme/portal-sessions", "", nil)
	b.open(path)
	b.shows("This link has ended")
}

// TestPortal_InChromium_FromAnotherSite: a link on a page of another site opens the portal. The browser sends no
// cookie with a request that another site starts.
func TestPortal_InChromium_FromAnotherSite(t *testing.T) {
	oneConsole.join(t)
	oneChromium.join(t)
	t.Parallel()
	c := oneConsole.get(t)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><title>shop</title><link rel="icon" href="data:,"><main><a href="%s%s">usage</a></main>`, strings.TrimSuffix(c.console, "/console/"), c.link(t, "acme", nil))
	}))
	t.Cleanup(shop.Close)
	b := newChromium(t, c)
	b.at = strings.Replace(shop.URL, "127.0.0.1", "localhost", 1)
	b.open("/")
	b.click("usage")
	b.shows("Usage of acme")
	assert.NotContains(t, result(b, chromedp.Location()), "open", "the address has the secret")
	b.clean()
}

// TestPortal_InChromium_EmbeddedWhereAllowed: over TLS, the page opens in a frame of an allowed site, and in no frame
// of another site.
func TestPortal_InChromium_EmbeddedWhereAllowed(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	var target atomic.Pointer[url.URL]
	var frame atomic.Value
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // ends TLS, as in a cluster
		r.Header.Set("X-Forwarded-Proto", "https")
		httputil.NewSingleHostReverseProxy(target.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><title>shop</title><link rel="icon" href="data:,"><main>shop<iframe title="usage" width="800" height="600" src=%q></iframe></main>`, frame.Load())
	})
	shop, stranger := httptest.NewServer(page), httptest.NewServer(page)
	t.Cleanup(shop.Close)
	t.Cleanup(stranger.Close)
	elsewhere := func(s *httptest.Server) string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) } // another site
	c := newConsole(t, "QUOTASVC_PORTAL_FRAME_ANCESTORS="+elsewhere(shop), "QUOTASVC_PORTAL_URL="+proxy.URL)
	target.Store(urlOf(t, strings.TrimSuffix(c.console, "/console/")))
	frame.Store(proxy.URL + c.link(t, "acme", nil))

	b := newChromium(t, c)
	_, err := chromedp.Call(b.ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	require.NoError(t, err)
	b.at = elsewhere(stranger)
	b.open("/")
	b.until(`frames.length === 1`)
	b.complains("frame-ancestors")
	b.at = elsewhere(shop)
	b.open("/")
	c.logged(`"route":"GET /portal/{link}/{$}","status":200`, 1)
	b.clean()
}

// complains waits until a page reports an error that contains a text. Then it clears the list of reported errors.
func (b *tab) complains(text string) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		there := strings.Contains(strings.Join(b.wrong, "\n"), text)
		if there {
			b.wrong = nil
		}
		return there
	}, "a complaint about ", text)
}
