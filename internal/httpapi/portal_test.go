package httpapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// TestPortalSession_LinksBeginWhereBrowsersFindTheService: a link begins with the configured base. If no base is
// configured, it begins with the base of the request's URL.
func TestPortalSession_LinksBeginWhereBrowsersFindTheService(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	var made client.PortalSession
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","expires_in_seconds":604800}`).want(201).into(&made)
	assert.True(t, strings.HasPrefix(made.URL, s.url+"/portal/"), "the link is %s, asked at %s", made.URL, s.url)
	s.server.cfg.LinkBase = "https://quota.example.com"
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme"}`).want(201).into(&made)
	assert.True(t, strings.HasPrefix(made.URL, "https://quota.example.com/portal/"), "the link is %s", made.URL)
	s.call("POST", "/v1/portal-sessions", `{"tenant":"nobody"}`).want(404)
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","return_url":"javascript:alert(1)"}`).refused("return_url")
	s.call("DELETE", "/v1/tenants/nobody/portal-sessions", "").want(404)
	s.call("DELETE", "/v1/tenants/acme/portal-sessions", "").want(204)
	assert.NotContains(t, strings.Join(s.log.all(), " "), made.URL[len(made.URL)-20:], "the log has the secret")
}
