package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// spellingsOfSearch returns paths that many web servers treat as /search.
func spellingsOfSearch() []string {
	return []string{
		"/search", "//search", "/./search", "/%73earch", "/x/../search", "/search?q=1", "/search#x", "http://example.com/search",
		"/search/", "/SEARCH", "/search;x=1", "/search%20", "/search%00", "/search%2f", "/search%2F%20/", "/x%2f..%2fsearch", "/..;/search", "/x/..;y=1/Search;",
	}
}

// deniedBy sends a check of a gateway. It returns the name of the limit that denies the check, or the empty string if
// it passes.
func (s *service) deniedBy(gateway, uri string, headers ...string) string {
	s.t.Helper()
	a := s.do(s.ask(gateway, uri, append(headers, forwarded.HeaderMode, forwarded.ModeCheck)...))
	rule, _, _ := strings.Cut(strings.TrimPrefix(a.header.Get("RateLimit"), `"`), `"`)
	if passed := a.status == http.StatusOK; passed {
		return ""
	}
	return rule
}

func TestAuthorize_AnySpelling_MeetsRule(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day","match":{"route":"/search"}}`,
		`{"per":["tenant"],"kind":"token_bucket","rate":"1/day","match":{"route":"/Raw/x"},"normalize":[]}`,
		`{"per":["tenant"],"kind":"token_bucket","rate":"1/day","match":{"route":"/Tree/**"}}`)
	for _, uri := range []string{"/search", "/Raw/x", "/tree/a"} {
		s.do(s.ask("nginx", uri)).passes()
	}
	for _, gateway := range gatewayNames() {
		for _, uri := range spellingsOfSearch() {
			if gateway == "envoy" && !strings.HasPrefix(uri, "/") || strings.Contains(uri, "#") && gateway == "envoy" {
				continue // Envoy sends only paths
			}
			assert.Equal(t, "r0", s.deniedBy(gateway, uri), "%s: %s is denied by", gateway, uri)
		}
		for uri, want := range map[string]string{
			"/searches": "", "/search/x": "", "/search%21": "", "/Raw/x": "r1", "/raw/x": "", "/Raw/x/": "", "/Raw/x;a": "",
			"/tree": "r2", "/TREE/": "r2", "/tree;x/b": "r2", "/tree%2fb": "r2", "/treeb": "",
		} {
			assert.Equal(t, want, s.deniedBy(gateway, uri), "%s: %s is denied by", gateway, uri)
		}
	}
	check := func(route string) bool {
		var c client.CheckAnswer
		s.call("POST", "/v1/check", fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":1}],"route":%q}`, route)).want(200).into(&c)
		return c.Allowed
	}
	assert.True(t, !check("/search") && check("/Search") && check("/search/"),
		"the routes of a caller's own requests are compared as they are")
	s.call("PUT", "/v1/limits/r0", `{"per":["tenant"],"kind":"token_bucket","rate":"1/day","match":{"route":"/search"},"normalize":["case"]}`).want(200)
	s.eventually("the change is in force", func() bool { return !check("/Search") })
	assert.True(t, check("/search/") && s.deniedBy("nginx", "/search/") == "", "only case is normalized")
}

func TestRouteKey_Pattern_OneBucket(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant","route"],"kind":"token_bucket","rate":"3/day","match":{"route":"/v1/**"}}`,
		`{"per":["tenant","route"],"kind":"token_bucket","rate":"1/day","match":{"route":"/path/**"},"route_key":"path"}`)
	passed := 0
	for i := range 50 {
		if s.do(s.ask("traefik", fmt.Sprintf("/v1/search;%d", i))).status == 200 {
			passed++
		}
	}
	assert.Equal(t, 3, passed, "of 50 passed")
	for uri, status := range map[string]int{"/path/a": 200, "/path/b": 200} {
		a := s.do(s.ask("traefik", uri))
		assert.True(t, a.status == status, "%s: %d", uri, a.status)
		a = s.do(s.ask("traefik", strings.ToUpper(uri)+"/;x"))
		assert.True(t, a.status == 429, "another spelling of %s: %d", uri, a.status)
	}
	// All routes that match a limit's pattern share one bucket, so each of these routes names the bucket in a reset.
	// A route that does not match is refused.
	s.call("POST", "/v1/limits/r0/reset", `{"tenant":"acme","route":"/other"}`).refused("route")
	s.call("POST", "/v1/limits/r0/reset", `{"tenant":"acme","route":"/v1/any"}`).want(200)
	s.do(s.ask("traefik", "/v1/search")).passes()
	s.call("POST", "/v1/limits/r0/reset", `{"tenant":"acme"}`).want(200)
	for range 3 {
		s.do(s.ask("traefik", "/v1/search")).passes()
	}
	s.call("PUT", "/v1/limits/r0", `{"per":["tenant","route"],"kind":"token_bucket","rate":"3/day","match":{"route":"/v1/s**"}}`).want(200)
	s.eventually("the new pattern has a bucket of its own", func() bool { return s.deniedBy("traefik", "/v1/search") == "" })
}

func TestMatchMethod_OnlyItsRequests(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day","match":{"method":"POST"}}`)
	body := func(method string) string {
		return `{"tenant":"acme","items":[{"meter":"calls","amount":1}]` + method + `}`
	}
	s.send("/v1/consume", "k1", body(`,"method":"POST"`)).want(200)
	s.send("/v1/consume", "k2", body(`,"method":"POST"`)).problem(429, "rate_limited")
	s.send("/v1/consume", "k3", body(`,"method":"GET"`)).want(200)
	s.send("/v1/consume", "k4", body(``)).want(200)
	for _, method := range []string{"post", "", "P OST", strings.Repeat("X", 33)} {
		s.call("POST", "/v1/check", body(fmt.Sprintf(`,"method":%q`, method))).refused("method")
	}
	for _, gateway := range gatewayNames() {
		header := map[string]string{"traefik": "X-Forwarded-Method"}[gateway]
		if header == "" {
			header = "X-Original-Method"
		}
		for method, want := range map[string]string{"POST": "r0", "post": "r0", "GET": ""} {
			r := s.ask(gateway, "/", header, method, forwarded.HeaderMode, forwarded.ModeCheck)
			if gateway == forwarded.Envoy {
				r.Method = method
			}
			assert.Equal(t, want == "", s.do(r).status == http.StatusOK, "%s: %s passes", gateway, method)
		}
	}
	s.call("PUT", "/v1/limits/jobs", `{"per":["tenant"],"kind":"concurrency","burst":1,"match":{"method":"POST"}}`).refused("match.method")
}

func TestAddresses_EmbeddedIPv4_OwnBucket(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	s.catalogue()
	s.send("/v1/tenants/acme/grants", "more", `{"meter":"calls","amount":1000,"source":"topup"}`).want(201)
	s.rules(`{"per":["ip"],"kind":"token_bucket","rate":"1/day"}`,
		`{"per":["ip"],"kind":"token_bucket","rate":"3/day","match":{"route":"/v1/wide"},"ip_prefix":{"v4":24,"v6":48}}`)
	status := func(ip, route string) int {
		return s.do(s.ask("nginx", route, "X-Forwarded-For", ip)).status
	}
	for _, ip := range []string{"64:ff9b::198.51.100.1", "64:ff9b::198.51.100.2", "::198.51.100.3", "198.51.100.4", "2001:db8::1", "64:ff9b:1::198.51.100.5"} {
		assert.Equal(t, 200, status(ip, "/"), ip)
	}
	for _, ip := range []string{
		"198.51.100.1", "::ffff:198.51.100.1", "64:ff9b::198.51.100.1", "::198.51.100.1", "64:ff9b::198.51.100.4", "2001:db8::2", "64:ff9b:1::198.51.100.6",
	} {
		assert.Equal(t, 403, status(ip, "/"), "%s is denied with its other spelling", ip)
	}
	for i, ip := range []string{"203.0.113.1", "203.0.113.2", "64:ff9b::203.0.113.3", "203.0.113.4"} {
		assert.Equal(t, i < 3, status(ip, "/v1/wide") == 200, ip)
	}
	for i, ip := range []string{"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"} {
		assert.Equal(t, i < 3, status(ip, "/v1/wide") == 200, ip)
	}
	s.call("PUT", "/v1/blocks/ip/192.0.2.7", `{"action":"block"}`).want(201)
	blocked := func(ip string) bool {
		a := s.do(s.ask("haproxy", "/", "X-Forwarded-For", ip))
		return a.status == 403 && strings.Contains(string(a.body), "blocked")
	}
	s.eventually("the block is in force", func() bool { return blocked("192.0.2.7") })
	assert.True(t, blocked("64:ff9b::192.0.2.7") && !blocked("64:ff9b::192.0.2.8"),
		"a block sees the address inside one of NAT64")
}

// If normalize is an empty list, gateways' paths are not normalized. An absent list means the default. Every read of
// the limit returns the empty list.
func TestLimit_NormalizeNothing_ComesBack(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const limit = `{"per":["tenant"],"kind":"token_bucket","rate":"1/day","normalize":[]`
	says := func(a *answer) {
		t.Helper()
		assert.Contains(t, string(a.body), `"normalize":[]`, "%s", a.body)
	}
	says(s.call("PUT", "/v1/limits/raw", limit+`}`).want(201))
	says(s.call("GET", "/v1/limits/raw", "").want(200))
	says(s.call("GET", "/v1/limits", "").want(200))
	says(s.call("GET", "/v1/catalog", "").want(200))
	s.call("DELETE", "/v1/limits/raw", "").want(204)
	says(s.call("PUT", "/v1/plans/own", `{"allowances":[],"limits":[`+limit+`,"rule":"raw"}]}`).want(201))
	says(s.call("GET", "/v1/plans/own", "").want(200))
	says(s.call("GET", "/v1/catalog", "").want(200))
	s.call("POST", "/v1/catalog", `{"limits":{"applied":`+limit+`}}}`).want(200)
	says(s.call("GET", "/v1/limits/applied", "").want(200))
}
