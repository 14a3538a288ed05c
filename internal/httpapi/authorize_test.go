package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// gatewayNames returns the names of the supported gateways.
func gatewayNames() []string { return slices.Collect(maps.Keys(forwarded.Gateways())) }

// ask returns the request by which a gateway asks whether tenant acme may send GET uri.
func (s *service) ask(gateway, uri string, headers ...string) *http.Request {
	s.t.Helper()
	path := "/v1/authorize/" + gateway
	if gateway == forwarded.Envoy {
		path += uri
	}
	r := s.request("GET", path, nil, "X-Quota-Tenant", "acme", "X-Quota-Meter", "calls")
	r.Header.Del("Content-Type")
	switch gateway {
	case "nginx", "haproxy":
		r.Header.Set("X-Original-URI", uri)
		r.Header.Set("X-Original-Method", "GET")
	case "traefik":
		r.Header.Set("X-Forwarded-Uri", uri)
		r.Header.Set("X-Forwarded-Method", "GET")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// rules stores bodies as the limits r0, r1 and so on. It returns when the server enforces all of them.
func (s *service) rules(bodies ...string) {
	s.t.Helper()
	limits := func() int { return len(s.server.catalog.Snapshot().Limits) }
	for _, body := range bodies {
		n := limits()
		s.call("PUT", fmt.Sprintf("/v1/limits/r%d", n), body).want(201)
		s.eventually("the limit is in force", func() bool { return limits() > n })
	}
}

// passes fails the test unless the answer lets the request pass.
func (a *answer) passes() *answer {
	a.t.Helper()
	a.want(http.StatusOK)
	assert.Empty(a.t, a.body, "an answer to a gateway has a body: %s", a.body)
	return a
}

// refusedTo fails the test unless the answer is a refusal with this status and code, in the form that this gateway
// needs.
func (a *answer) refusedTo(gateway string, status int, code string) client.Problem {
	a.t.Helper()
	onWire, hidden := status, ""
	if gateway == "nginx" {
		hidden = fmt.Sprint(status)
		if status != http.StatusUnauthorized {
			onWire = http.StatusForbidden
		}
	}
	p := decoded[client.Problem](a)
	require.True(a.t, a.status == onWire && p.Status == status && string(p.Code) == code && a.header.Get(forwarded.HeaderStatus) == hidden,
		"%s: %d with %s %q, want %d for %d %s: %s", gateway, a.status, forwarded.HeaderStatus, a.header.Get(forwarded.HeaderStatus), onWire, status, code, a.body)
	if retry := a.header.Get(headerRetryAfter); (retry != "") != (status == 429 || status == 503) {
		a.t.Errorf("%s: Retry-After %q with %d", gateway, retry, status)
	}
	inHeader := a.header.Get(forwarded.HeaderProblem)
	assert.True(a.t, (inHeader != "") == (hidden != ""), "%s: %s is %q", gateway, forwarded.HeaderProblem, inHeader)
	if inHeader != "" {
		var same client.Problem
		if err := json.Unmarshal([]byte(inHeader), &same); err != nil || !reflect.DeepEqual(p, same) {
			a.t.Errorf("%s: the header has %s, the body %s (%v)", gateway, inHeader, a.body, err)
		}
	}
	return p
}

func TestAuthorize_Allowed_ChargesOnce(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"match":{"route":"/search"},"kind":"token_bucket","rate":"60/h"}`)
	left := int64(10)
	for _, gateway := range gatewayNames() {
		left -= 2
		a := s.do(s.ask(gateway, "/search?q=1", forwarded.HeaderAmount, "2", forwarded.HeaderSubject, "user")).passes()
		if got := a.number(headerQuotaRemaining); got != left || a.number(headerQuotaLimit) != 10 || a.number(headerQuotaReset) < 1 {
			t.Errorf("%s: %d remain, want %d: %v", gateway, got, left, a.header)
		}
		if !strings.HasPrefix(a.header.Get("RateLimit"), `"r0";r=`) || !strings.HasPrefix(a.header.Get("RateLimit-Policy"), `"r0";q=60`) {
			t.Errorf("%s: the limit of the route did not apply: %v", gateway, a.header)
		}
		var operation client.Operation
		s.call("GET", "/v1/tenants/acme/operations/"+a.header.Get(forwarded.HeaderOperation), "").want(200).into(&operation)
		assert.True(t, len(operation.Entries) == 1 && operation.Entries[0].Amount == 2 &&
			operation.Entries[0].OperationSubject == "user", "%s: %+v", gateway, operation)
	}
	assert.Equal(t, left, s.remaining("acme", "calls"), "are left")
}

func TestAuthorize_Refusal_HasFormOfGateway(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/paused", `{"allowances":[{"meter":"calls","amount":10,"every":"year","anchor":"calendar"}]}`).want(201)
	s.call("PUT", "/v1/tenants/away", `{"plan":"paused","status":"suspended"}`).want(201)
	s.rules(`{"per":["tenant"],"match":{"route":"/slow"},"kind":"token_bucket","rate":"1/day"}`)
	s.do(s.ask("traefik", "/slow")).passes()
	s.do(s.ask("traefik", "/used", headerIdempotencyKey, "used")).passes()
	for _, gateway := range gatewayNames() {
		for _, mode := range []string{forwarded.ModeConsume, forwarded.ModeCheck} {
			for _, c := range []struct {
				uri     string
				headers []string
				status  int
				code    string
			}{
				{"/slow", nil, 429, "rate_limited"},
				{"/", []string{forwarded.HeaderAmount, "10"}, 429, "quota_exceeded"},
				{"/", []string{forwarded.HeaderMeter, "credits"}, 402, "credits_exhausted"},
				{"/", []string{forwarded.HeaderMeter, "other"}, 403, "meter_not_in_plan"},
				{"/", []string{forwarded.HeaderTenant, "away"}, 403, "tenant_suspended"},
				{"/", []string{forwarded.HeaderTenant, "nobody"}, 404, "tenant_not_found"},
				{"/", []string{forwarded.HeaderTenant, "a b"}, 400, "invalid_argument"},
				{"/", []string{"Authorization", "Bearer " + testKey + "x"}, 401, "unauthenticated"},
			} {
				a := s.do(s.ask(gateway, c.uri, append(c.headers, forwarded.HeaderMode, mode)...))
				p := a.refusedTo(gateway, c.status, c.code)
				switch c.code {
				case "rate_limited":
					assert.True(t, strings.HasPrefix(a.header.Get("RateLimit"), `"r0";r=0`) && len(p.ViolatedPolicies) == 1 &&
						a.number(headerQuotaRemaining) == 8, "%s, %s: %v %s", gateway, mode, a.header, a.body)
				case "quota_exceeded":
					assert.True(t, p.Required != nil && *p.Required == 10 && p.Available != nil && *p.Available == 8 && p.ResetAt != nil && a.number(headerQuotaRemaining) == 8 &&
						a.number(headerRetryAfter) >= 1, "%s, %s: %v %s", gateway, mode, a.header, a.body)
				}
			}
		}
		s.do(s.ask(gateway, "/other", headerIdempotencyKey, "used")).refusedTo(gateway, 422, "idempotency_key_reused")
	}
	assert.EqualValues(t, 8, s.remaining("acme", "calls"), "are left, want 8: a refusal was charged")
}

func TestAuthorize_ModeCheck_ChargesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day"}`)
	before := s.state()
	for range 3 {
		for _, gateway := range gatewayNames() {
			a := s.do(s.ask(gateway, "/", forwarded.HeaderMode, forwarded.ModeCheck)).passes()
			if a.number(headerQuotaRemaining) != 10 || !strings.HasPrefix(a.header.Get("RateLimit"), `"r0";r=1`) || a.header.Get(forwarded.HeaderOperation) != "" ||
				a.header.Get(headerQuotaSource) == "" {
				t.Errorf("%s: %v", gateway, a.header)
			}
		}
	}
	assert.Equal(t, before, s.state())
}

// A client or a gateway may repeat an X-Request-Id. Nevertheless each request is debited. Limits are charged once.
func TestAuthorize_OnlyIdempotencyKeyDeduplicates(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"100/day"}`)
	tokens := func(a *answer) string { return a.tokens("r0") }
	for i := range int64(3) {
		a := s.do(s.ask("traefik", "/", headerRequestID, "same")).passes()
		assert.True(t, a.number(headerQuotaRemaining) == 9-i && a.header.Get(headerReplayed) == "" && tokens(a) == "99",
			"request %d with one X-Request-Id: %v", i, a.header)
	}
	for i, long := range []string{"key", strings.Repeat("k", 255)} {
		for j := range 3 {
			a := s.do(s.ask("traefik", "/a?b", headerIdempotencyKey, long)).passes()
			assert.True(t, a.number(headerQuotaRemaining) == 6-int64(i) &&
				(a.header.Get(headerReplayed) == "true") == (j > 0), "key %d, request %d: %v", i, j, a.header)
			assert.Equal(t, fmt.Sprint(98-i), tokens(a), "key %d, request %d", i, j)
		}
	}
	for _, other := range [][]string{
		{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Uri", "/a?c"}, {"X-Forwarded-Method", "POST"}, {forwarded.HeaderAmount, "2"}, {forwarded.HeaderSubject, "u"},
	} {
		s.do(s.ask("traefik", "/a?b", append(other, headerIdempotencyKey, "key")...)).refusedTo("traefik", 422, "idempotency_key_reused")
	}
	s.debit("key", "acme", "calls", 1).want(200) // a backend with the same key has another operation: no replay
}

// A header that the gateway itself sets takes precedence over a header that it passes on from the client.
func TestAuthorize_RouteIsFromGateway(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, route := range []string{"/search", "/cheap", "search of users"} {
		s.rules(fmt.Sprintf(`{"per":["tenant"],"match":{"route":%q},"kind":"token_bucket","rate":"1000/s"}`, route))
	}
	rule := func(r *http.Request) string {
		t.Helper()
		a := s.do(r).passes()
		name, _, _ := strings.Cut(strings.TrimPrefix(a.header.Get("RateLimit"), `"`), `"`)
		return name
	}
	check := func(gateway, uri string, headers ...string) *http.Request {
		return s.ask(gateway, uri, append(headers, forwarded.HeaderMode, forwarded.ModeCheck)...)
	}
	for what, c := range map[string]struct {
		r    *http.Request
		want string
	}{
		"nginx":                        {check("nginx", "/search?x"), "r0"},
		"nginx, a forged other name":   {check("nginx", "/search", "X-Forwarded-Uri", "/cheap"), "r0"},
		"nginx, the other name":        {check("nginx", "", "X-Forwarded-Uri", "/cheap"), "r1"},
		"haproxy, a forged other name": {check("haproxy", "/search", "X-Forwarded-Uri", "/cheap"), "r0"},
		"traefik, a forged other name": {check("traefik", "/search", "X-Original-URI", "/cheap"), "r0"},
		"traefik, the other name":      {check("traefik", "", "X-Original-URI", "/cheap"), "r1"},
		"envoy, forged names":          {check("envoy", "/search", "X-Original-URI", "/cheap", "X-Forwarded-Uri", "/cheap"), "r0"},
		"envoy, a query":               {check("envoy", "/search?limit=/cheap&x"), "r0"},
		"envoy, escaped":               {check("envoy", "/%73earch"), "r0"},
		"envoy, dots":                  {check("envoy", "/x/../../search"), "r0"},
		"envoy, another endpoint":      {check("envoy", "/../../check"), ""},
		"envoy, the root":              {check("envoy", "/"), ""},
		"envoy, nothing":               {check("envoy", ""), ""},
		"another spelling":             {check("nginx", "//./%73earch"), "r0"},
		"a name":                       {check("nginx", "/cheap", forwarded.HeaderRoute, "search of users"), "r2"},
		"nothing":                      {check("nginx", ""), ""},
	} {
		assert.Equal(t, c.want, rule(c.r), what)
	}
}

// Clients must not choose the address by which they are limited or blocked.
func TestAuthorize_ForgedAddress_NoEffect(t *testing.T) {
	t.Parallel()
	trusted := func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
	for what, c := range map[string]struct {
		change  []func(*Config)
		hops    func(client string) string
		apart   bool // each of two clients has its own bucket
		blocked bool // 203.0.113.1 is refused
	}{
		"the gateway is not trusted":      {nil, func(client string) string { return client }, false, false},
		"the gateway is trusted":          {[]func(*Config){trusted}, func(client string) string { return client }, true, true},
		"a client forges a hop before it": {[]func(*Config){trusted}, func(client string) string { return client + ", 203.0.113.77" }, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newService(t, c.change...).catalogue()
			s.rules(`{"per":["ip"],"kind":"token_bucket","rate":"1/day"}`)
			from := func(client string) *answer {
				return s.do(s.ask("traefik", "/", "X-Forwarded-For", c.hops(client)))
			}
			from("198.51.100.1").passes()
			from("198.51.100.1").refusedTo("traefik", 429, "rate_limited")
			if c.apart {
				from("198.51.100.2").passes()
			} else {
				from("198.51.100.2").refusedTo("traefik", 429, "rate_limited")
			}
			s.call("PUT", "/v1/blocks/ip/203.0.113.1", `{}`).want(201)
			code := func() string {
				r := s.ask("nginx", "/", "X-Forwarded-For", c.hops("203.0.113.1"))
				var p client.Problem
				if a := s.do(r); a.status != 200 {
					a.into(&p)
				}
				return string(p.Code)
			}
			if c.blocked {
				s.eventually("the block is in force", func() bool { return code() == "forbidden" })
				s.do(s.ask("nginx", "/", "X-Forwarded-For", "203.0.113.1", forwarded.HeaderMode, forwarded.ModeCheck)).refusedTo("nginx", 403, "forbidden")
			} else {
				s.eventually("the block is known", func() bool {
					known, _ := s.server.catalog.Blocks().Find("acme", "", netip.MustParseAddr("203.0.113.1"), time.Now())
					return known != nil
				})
				assert.EqualValues(t, "rate_limited", code())
			}
		})
	}
}

func TestAuthorize_AnyMethod_NoBody(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, gateway := range gatewayNames() {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "X-OTHER"} {
			r := s.request(method, "/v1/authorize/"+gateway, strings.NewReader(`{"not":"read"`), forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", forwarded.HeaderMode, forwarded.ModeCheck)
			s.do(r).passes()
		}
	}
	for _, path := range []string{"/v1/authorize", "/v1/authorize/", "/v1/authorize/apache", "/v1/authorize/nginx/x", "/v1/authorize/Envoy", "/v1/authorize/envoyx"} {
		r := s.request("GET", path, nil)
		a := s.do(r)
		a.problem(404, "not_found")
		assert.Empty(t, a.header.Get(forwarded.HeaderStatus), "%s: %v", path, a.header)
	}
}

func TestAuthorize_NamesEveryHeaderAtFault(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	for _, c := range []struct {
		header, value string
	}{
		{forwarded.HeaderTenant, ""},
		{forwarded.HeaderTenant, "a%b"},
		{forwarded.HeaderTenant, strings.Repeat("t", 256)},
		{forwarded.HeaderMeter, ""},
		{forwarded.HeaderMeter, "{x}"},
		{forwarded.HeaderAmount, "0"},
		{forwarded.HeaderAmount, "-1"},
		{forwarded.HeaderAmount, "1.5"},
		{forwarded.HeaderAmount, "1e3"},
		{forwarded.HeaderAmount, "9007199254740992"},
		{forwarded.HeaderAmount, "99999999999999999999"},
		{forwarded.HeaderAmount, "NaN"},
		{forwarded.HeaderAmount, "1,2"},
		{forwarded.HeaderSubject, "a b"},
		{forwarded.HeaderRoute, "caf\u00e9"},
		{forwarded.HeaderRoute, strings.Repeat("r", 257)},
		{forwarded.HeaderMode, "free"},
		{forwarded.HeaderMode, "CHECK"},
		{headerIdempotencyKey, "a b"},
		{headerIdempotencyKey, strings.Repeat("k", 256)},
		{"X-Quota-Amout", "5"},
		{"X-Forwarded-Uri", "/" + strings.Repeat("u", 8192)},
	} {
		r := s.ask("traefik", "/", c.header, c.value)
		s.do(r).refused(c.header)
	}
	for _, header := range []string{forwarded.HeaderTenant, forwarded.HeaderMeter, forwarded.HeaderAmount, forwarded.HeaderMode, headerIdempotencyKey, "X-Forwarded-Uri"} {
		r := s.ask("traefik", "/")
		r.Header[http.CanonicalHeaderKey(header)] = []string{"check", "check"}
		s.do(r).refused(header)
	}
	s.do(s.ask(forwarded.Envoy, "/"+strings.Repeat("u", 8192))).refused("path")
	s.do(s.ask("traefik", "/", forwarded.HeaderTenant, "", forwarded.HeaderMeter, "", forwarded.HeaderAmount, "x")).refused(forwarded.HeaderMeter)
	r := s.ask("traefik", "/")
	r.URL.RawQuery = "limit=1"
	s.do(r).refused("limit")
	assert.Equal(t, before, s.state())
	// Valid requests: values at their bounds, empty headers, and headers that belong to answers.
	for _, headers := range [][]string{
		{"X-Forwarded-Uri", "/" + strings.Repeat("u", 8191)},
		{forwarded.HeaderAmount, "", forwarded.HeaderSubject, "", forwarded.HeaderRoute, "", forwarded.HeaderMode, "", headerIdempotencyKey, ""},
		{headerQuotaRemaining, "7", forwarded.HeaderOperation, "gw-1"},
	} {
		s.do(s.ask("traefik", "/", headers...)).passes()
	}
}

// For any header that a gateway passes on from a client, the answer is a decision or names the fault.
func TestAuthorize_AnyHeader_Never5xx(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	hostile := []string{
		"{acme}", "acme}{", "'; DROP TABLE balances; --", "../../../etc/passwd", "%00", "%0d%0aX-Quota-Mode:%20check", "\xff\xfe", "\u202e", "NULL", "-0",
		"18446744073709551616", strings.Repeat("a", 16<<10), strings.Repeat("%2e%2e/", 1000), strings.Repeat("/", 8000), "\"", "a,b", "a\tb", "https://", "://", "*",
	}
	names := []string{
		forwarded.HeaderTenant, forwarded.HeaderMeter, forwarded.HeaderAmount, forwarded.HeaderSubject, forwarded.HeaderRoute, forwarded.HeaderMode, headerIdempotencyKey,
		"X-Original-URI", "X-Original-Method", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-For", "X-Real-IP", headerRequestID,
	}
	for _, gateway := range gatewayNames() {
		for _, name := range names {
			for _, value := range hostile {
				r := s.ask(gateway, "/", forwarded.HeaderMode, forwarded.ModeCheck, name, value)
				a := s.do(r)
				if hidden := a.header.Get(forwarded.HeaderStatus); a.status >= 500 || strings.HasPrefix(hidden, "5") {
					t.Errorf("%s: %s %.40q: %d %s: %s", gateway, name, value, a.status, hidden, a.body)
				}
			}
		}
	}
}

// The Authorization header that a gateway sends may be its client's.
func TestAuthorize_QuotaKeyBesideClientsAuthorization(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, gateway := range gatewayNames() {
		s.do(s.ask(gateway, "/", "Authorization", "Bearer the-clients", forwarded.HeaderKey, testKey)).passes()
		s.do(s.ask(gateway, "/", forwarded.HeaderKey, testKey+"x")).refusedTo(gateway, 401, "unauthenticated")
		r := s.ask(gateway, "/", forwarded.HeaderKey, testKey)
		r.Header.Del("Authorization")
		s.do(r).passes()
	}
	s.call("GET", "/v1/meters", "", "Authorization", "", forwarded.HeaderKey, testKey).problem(401, "unauthenticated")
}
