package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// tokens returns the tokens that are left of a rule, by the RateLimit header.
func (a *answer) tokens(rule string) string {
	a.t.Helper()
	_, left, _ := strings.Cut(a.header.Get("RateLimit"), fmt.Sprintf("%q;r=", rule))
	left, _, _ = strings.Cut(left, ";")
	left, _, _ = strings.Cut(left, ",")
	return left
}

// A gateway asks again for the same request: nginx does so after an internal redirect, with another route. Its id
// charges each rule once, whatever the rule counts.
func TestAuthorize_ID_ChargesLimitsOnce(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(
		`{"per":["tenant","route"],"kind":"token_bucket","rate":"20/day","counts":"successes"}`,
		`{"per":["tenant"],"kind":"token_bucket","rate":"20/day","counts":"attempts"}`,
		`{"per":["tenant"],"kind":"token_bucket","rate":"20/day","match":{"route":"/static/index.html"}}`,
	)
	for i, gateway := range gatewayNames() {
		for _, c := range []struct {
			header, mode string
			units        int64 // that four requests use
		}{
			{headerIdempotencyKey, forwarded.ModeConsume, 1},
			{headerIdempotencyKey, forwarded.ModeLimit, 0},
			{headerRequestID, forwarded.ModeLimit, 0},
		} {
			id, before := fmt.Sprint(gateway, c.header, c.mode), s.remaining("acme", "calls")
			first := s.do(s.ask(gateway, "/static/", forwarded.HeaderMode, c.mode, c.header, id)).passes()
			for _, route := range []string{"/static/", "/static/index.html", "/static/index.html"} {
				again := s.do(s.ask(gateway, "/static/",
					forwarded.HeaderMode, c.mode, c.header, id, forwarded.HeaderRoute, route)).passes()
				assert.Equal(t, first.tokens("r1"), again.tokens("r1"), "%s, %s on %s", id, c.mode, route)
				operation := first.header.Get(forwarded.HeaderOperation)
				assert.Equal(t, operation, again.header.Get(forwarded.HeaderOperation), id)
				if route != "/static/" {
					assert.Equal(t, "20", again.tokens("r0"), "%s: the rule was charged on another route", id)
				}
			}
			assert.Equal(t, before-c.units, s.remaining("acme", "calls"), "%s: units are left", id)
		}
		a := s.do(s.ask(gateway, "/static/index.html", forwarded.HeaderMode, forwarded.ModeCheck)).passes()
		used := 3 * (i + 1)
		assert.Equal(t, fmt.Sprint(20-used), a.tokens("r1"), gateway)
		assert.Equal(t, fmt.Sprint(20-used), a.tokens("r2"), "%s: another rule is charged once as well", gateway)
	}
}

// What is refused costs nothing and is not remembered, by whatever it was refused.
func TestAuthorize_ID_RefusedIsFree(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"2/day"}`)
	for _, tenant := range []string{"other", "third"} {
		s.call("PUT", "/v1/tenants/"+tenant, `{"plan":"basic"}`).want(201)
	}
	limit := func(id string, more ...string) *answer {
		more = append(more, forwarded.HeaderMode, forwarded.ModeLimit, headerRequestID, id)
		return s.do(s.ask("traefik", "/", more...))
	}
	limit("a", forwarded.HeaderAmount, "2").passes()
	limit("b").refusedTo("traefik", 429, "rate_limited")
	limit("a").passes()
	elsewhere := limit("b", forwarded.HeaderTenant, "other", forwarded.HeaderAmount, "2").passes()
	assert.Equal(t, "0", elsewhere.tokens("r0"))
	limit("a", forwarded.HeaderTenant, "other").refusedTo("traefik", 429, "rate_limited")
	s.call("POST", "/v1/limits/r0/reset", `{"tenant":"acme"}`).want(200)
	s.eventually("the refused id is charged", func() bool {
		return limit("b", forwarded.HeaderAmount, "2").status == 200
	})
	limit("c").refusedTo("traefik", 429, "rate_limited")

	// The ledger refuses, and the tokens come back.
	consume := func(amount, id string) *answer {
		return s.do(s.ask("traefik", "/",
			forwarded.HeaderTenant, "third", forwarded.HeaderAmount, amount, headerIdempotencyKey, id))
	}
	s.debit("most", "third", "calls", 8).want(200)
	consume("5", "d").refusedTo("traefik", 429, "quota_exceeded")
	assert.Equal(t, "1", consume("1", "e").passes().tokens("r0"))
	assert.Equal(t, "0", consume("1", "d").passes().tokens("r0"), "the id that was refused is charged")
	consume("1", "d").passes()
	consume("1", "f").refusedTo("traefik", 429, "rate_limited")
}

// Ids that are not exactly one header of visible ASCII identify nothing: each request is charged.
func TestAuthorize_BadRequestID_IdentifiesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"100/day"}`)
	left := 100
	for what, ids := range map[string][]string{
		"none": nil, "empty": {""}, "two": {"a", "a"}, "a space": {"a b"}, "not ASCII": {"\u00e9"},
		"too long": {strings.Repeat("x", requestIDMax+1)},
	} {
		for range 2 {
			r := s.ask("nginx", "/", forwarded.HeaderMode, forwarded.ModeLimit)
			r.Header[headerRequestID] = ids
			left--
			assert.Equal(t, fmt.Sprint(left), s.do(r).passes().tokens("r0"), what)
		}
	}
}

// preflight returns the request by which a gateway asks about a preflight of a browser.
func (s *service) preflight(gateway string, headers ...string) *http.Request {
	browsers := []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST"}
	r := s.ask(gateway, "/search", append(browsers, headers...)...)
	switch gateway {
	case forwarded.Envoy:
		r.Method = http.MethodOptions
	case "traefik":
		r.Header.Set("X-Forwarded-Method", http.MethodOptions)
	default:
		r.Header.Set("X-Original-Method", http.MethodOptions)
	}
	return r
}

func TestAuthorize_Preflight_PassesUncharged(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day"}`)
	before := s.state()
	for _, gateway := range gatewayNames() {
		for range 2 {
			s.do(s.preflight(gateway)).passes()
			anonymous := s.preflight(gateway)
			anonymous.Header.Del(forwarded.HeaderTenant)
			anonymous.Header.Del(forwarded.HeaderMeter)
			s.do(anonymous).passes()
		}
		s.do(s.preflight(gateway, "Authorization", "Bearer nobodys")).refusedTo(gateway, 401, "unauthenticated")
	}
	assert.Equal(t, before, s.state())
}

// A request is a preflight only if the gateway itself says that its method is OPTIONS, and only with both headers.
func TestAuthorize_Preflight_OpensNoDoor(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day"}`)
	s.do(s.ask("nginx", "/")).passes()
	for _, gateway := range gatewayNames() {
		get := s.preflight(gateway, "X-Forwarded-Method", "OPTIONS", "X-Original-Method", "OPTIONS")
		var own string
		switch gateway {
		case forwarded.Envoy:
			get.Method = http.MethodGet
		case "traefik":
			own = "X-Forwarded-Method"
		default:
			own = "X-Original-Method"
		}
		if own != "" {
			get.Header.Set(own, "GET")
			s.do(get).refusedTo(gateway, 429, "rate_limited")
			get.Header.Del(own) // only the header that a client may have sent is left
			s.do(get).refusedTo(gateway, 429, "rate_limited")
			get.Header[own] = []string{"OPTIONS", "GET"}
			assert.Contains(t, s.do(get).refusedTo(gateway, 400, "invalid_argument").Detail, own)
		} else {
			s.do(get).refusedTo(gateway, 429, "rate_limited")
		}
		for _, header := range []string{"Origin", "Access-Control-Request-Method"} {
			r := s.preflight(gateway)
			r.Header.Del(header)
			s.do(r).refusedTo(gateway, 429, "rate_limited")
		}
	}
}

func TestAuthorize_Answers_ExposeTheirHeaders(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"1/day"}`)
	for i, status := range []int{200, 429} {
		a := s.do(s.ask("traefik", "/")).want(status)
		exposed := strings.Split(a.header.Get("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{
			headerRetryAfter, "RateLimit", "RateLimit-Policy", headerQuotaLimit, headerQuotaRemaining, headerQuotaReset,
		} {
			assert.Contains(t, exposed, name, i)
		}
	}
	assert.Empty(t, s.call("GET", "/v1/meters", "").header.Get("Access-Control-Expose-Headers"), "at other paths")
}

func TestAuthorize_ModeLease_HeldUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"concurrency","burst":2,"match":{"route":"/export"}}`)
	before := s.remaining("acme", "calls")
	for _, gateway := range gatewayNames() {
		lease := func(headers ...string) *answer {
			mode := []string{forwarded.HeaderMode, forwarded.ModeLease, forwarded.HeaderRule, "r0"}
			r := s.ask(gateway, "//export", append(mode, headers...)...)
			r.Header.Del(forwarded.HeaderMeter)
			return s.do(r)
		}
		first := lease(headerIdempotencyKey, "one").passes()
		id := first.header.Get(forwarded.HeaderLease)
		require.NotEmpty(t, id, gateway)
		for _, header := range []string{headerIdempotencyKey, headerRequestID} {
			same := lease(header, "one").passes().header.Get(forwarded.HeaderLease)
			assert.Equal(t, id, same, "%s: the same request", gateway)
		}
		other := lease().passes().header.Get(forwarded.HeaderLease)
		assert.NotEqual(t, id, other, gateway)
		denied := lease()
		denied.refusedTo(gateway, 429, "rate_limited")
		denied.lacks(forwarded.HeaderLease)
		assert.True(t, strings.HasPrefix(denied.header.Get("RateLimit"), `"r0";r=0`), "%v", denied.header)
		gatewayKey := s.newKey(fmt.Sprintf(`{"name":%q,"scopes":["use"],"tenant":"acme"}`, gateway))
		for _, id := range []string{id, other} {
			s.as(gatewayKey, "DELETE", "/v1/leases/"+id, "").want(204)
		}
		next := lease(headerIdempotencyKey, "one").passes().header.Get(forwarded.HeaderLease)
		s.call("DELETE", "/v1/leases/"+next, "").want(204)
		for _, bad := range []*answer{
			lease(forwarded.HeaderRule, ""), lease(forwarded.HeaderRule, "no such"),
			s.do(s.ask(gateway, "/", forwarded.HeaderRule, "r0")),
		} {
			assert.Contains(t, bad.refusedTo(gateway, 400, "invalid_argument").Detail, forwarded.HeaderRule)
		}
		lease(forwarded.HeaderRule, "r9").refusedTo(gateway, 404, "not_found")
		lease(forwarded.HeaderTenant, "nobody").refusedTo(gateway, 404, "tenant_not_found")
	}
	assert.Equal(t, before, s.remaining("acme", "calls"), "units are left")
	var lease client.LeaseAnswer
	dry := s.call("POST", "/v1/leases", `{"rule":"r0","tenant":"acme","route":"/export","dry_run":true}`)
	dry.want(200).into(&lease)
	require.NotNil(t, lease.Remaining)
	assert.EqualValues(t, 2, *lease.Remaining)
}

// A refund of its charge frees an id, as a refusal does. A settlement with another cost does not.
func TestAuthorize_ID_RefundedIsChargedAgain(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"20/day"}`)
	s.call("PUT", "/v1/tenants/globex", `{"plan":"basic"}`).want(201)
	ask := func(id, tenant string) *answer {
		return s.do(s.ask("nginx", "/", forwarded.HeaderMode, forwarded.ModeLimit, forwarded.HeaderTenant, tenant,
			headerIdempotencyKey, id)).passes()
	}
	for id, c := range map[string]struct{ tenant, cost, left string }{
		"refunded": {"acme", "0", "19"}, "settled": {"globex", "3", "17"},
	} {
		charge := ask(id, c.tenant).header.Get(forwarded.HeaderCharge)
		body := fmt.Sprintf(`{"charge_id":%q,"cost":%s}`, charge, c.cost)
		done := s.call("POST", "/v1/limits/charge/settle", body).want(200)
		assert.True(t, decoded[client.ChargeSettleAnswer](done).Settled, id)
		for range 2 {
			assert.Equal(t, c.left, ask(id, c.tenant).tokens("r0"), id)
		}
	}
}
