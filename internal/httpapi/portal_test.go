package httpapi

import (
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/client"
)

// TestPortalSession_LinksBeginWhereBrowsersFindTheService: a link begins with the configured base. If no base is
// configured, it begins with the base of the request's URL.
func TestPortalSession_LinksBeginWhereBrowsersFindTheService(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue()
	var made client.PortalSession
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","expires_in_seconds":604800}`).want(201).into(&made)
	if !strings.HasPrefix(made.URL, s.url+"/portal/") {
		t.Errorf("the link is %s, asked at %s", made.URL, s.url)
	}
	s.server.cfg.LinkBase = "https://quota.example.com"
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme"}`).want(201).into(&made)
	if !strings.HasPrefix(made.URL, "https://quota.example.com/portal/") {
		t.Errorf("the link is %s", made.URL)
	}
	s.call("POST", "/v1/portal-sessions", `{"tenant":"nobody"}`).want(404)
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","return_url":"javascript:alert(1)"}`).refused("return_url")
	s.call("DELETE", "/v1/tenants/nobody/portal-sessions", "").want(404)
	s.call("DELETE", "/v1/tenants/acme/portal-sessions", "").want(204)
	if lines := s.log.all(); strings.Contains(strings.Join(lines, " "), made.URL[len(made.URL)-20:]) {
		t.Error("the log has the secret")
	}
}
