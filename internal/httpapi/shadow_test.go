package httpapi

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// shadowOf returns how many requests a limit in shadow mode would have denied in the last hour. It checks that the
// numbers for the day and the week are the same, because a test is shorter than an hour.
func (s *service) shadowOf(rule string) client.LimitShadowSpan {
	s.t.Helper()
	s.check(s.denials.Flush(s.t.Context()))
	got := decoded[client.LimitShadow](s.call("GET", "/v1/limits/"+rule+"/shadow", "").want(200))
	require.True(s.t, len(got.Spans) == 3 && got.Rule == rule, got)
	hour := got.Spans[0]
	for i, name := range []string{"hour", "day", "week"} {
		span := got.Spans[i]
		assert.True(s.t, span.Span == name && span.To.Equal(hour.To) &&
			span.To.Sub(span.From) == []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}[i], span)
		span.Span, span.From, span.To = hour.Span, hour.From, hour.To
		assert.Equal(s.t, hour, span, "%s differs from the hour", name)
	}
	return hour
}

// wantShadow fails the test unless the limit in shadow mode would have denied these requests.
func (s *service) wantShadow(rule string, want client.LimitShadowSpan) {
	s.t.Helper()
	got := s.shadowOf(rule)
	got.Span, got.From, got.To = want.Span, want.From, want.To
	if want.Top == nil {
		want.Top = []client.LimitShadowTenant{}
	}
	if want.Limits == nil {
		want.Limits = []client.LimitShadowLimit{}
	}
	assert.Equal(s.t, want, got, rule)
}

// TestLimitShadow_EachRequest_CountedByWhatBecameOfIt: the denials of a limit in shadow mode are counted by the
// outcome of the request. A check or a dry run is not counted, and a denial in shadow mode is not listed as a denial.
func TestLimitShadow_EachRequest_CountedByWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	bucket := func(rate, route, mode string) string {
		return fmt.Sprintf(`{"per":["tenant"],"kind":"token_bucket","rate":%q,"match":{"route":%q},"mode":%q}`, rate, route, mode)
	}
	s.limit("live", bucket("3/day", "/r", "enforce"))
	s.limit("strict", bucket("1/day", "/r", "shadow"))
	s.limit("lax", bucket("1000/day", "/r", "shadow"))
	s.limit("quiet", bucket("1/day", "/q", "shadow"))
	s.limit("jobs", `{"per":["tenant"],"kind":"concurrency","burst":1,"mode":"shadow"}`)
	demand := func(tenant string, amount int, route, more string) string {
		return fmt.Sprintf(`{"tenant":%q,"items":[{"meter":"calls","amount":%d}],"route":%q%s}`, tenant, amount, route, more)
	}
	for i, status := range []int{200, 200, 200, 429, 429} { // strict would deny four of them; live denies two
		s.send("/v1/consume", fmt.Sprint("r", i), demand("acme", 1, "/r", "")).want(status)
	}
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/r"}`).want(429)
	for i := range 2 {
		s.call("POST", "/v1/limits/charge", `{"tenant":"other","route":"/r"}`).want(200)
		s.send("/v1/consume", fmt.Sprint("q", i), demand("acme", 1, "/q", "")).want(200)
	}
	gateway := []string{forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", "X-Forwarded-Uri", "/q"}
	s.call("GET", "/v1/authorize/traefik", "", gateway...).want(200)
	s.send("/v1/consume", "much", demand("acme", 100, "/q", "")).want(402)
	for i := range 3 {
		s.send("/v1/leases", fmt.Sprint("l", i), `{"rule":"jobs","tenant":"acme"}`).want(201)
	}
	// None of the following requests is counted as a denial of a limit in shadow mode.
	s.call("POST", "/v1/check", demand("acme", 1, "/r", "")).want(200)
	s.call("POST", "/v1/check", demand("acme", 1, "/q", "")).want(200)
	s.call("GET", "/v1/authorize/traefik", "", append(gateway, "X-Quota-Mode", "check")...).want(200)
	s.send("/v1/consume", "dry", demand("acme", 1, "/r", `,"dry_run":true`)).want(429)
	s.send("/v1/consume", "dry", demand("acme", 1, "/q", `,"dry_run":true`)).want(200)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/q","dry_run":true}`).want(200)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/q","after_the_fact":true}`).want(200)
	s.send("/v1/consume", "bad", demand("acme", 0, "/q", "")).want(400)
	s.send("/v1/consume", "nobody", demand("nobody", 1, "/q", "")).want(404)
	s.send("/v1/leases", "l9", `{"rule":"jobs","tenant":"acme","dry_run":true}`)
	s.call("POST", "/v1/check", demand("acme", 1, "/q", "")).want(200)

	live := func(deny, pass int64) []client.LimitShadowLimit {
		return []client.LimitShadowLimit{{Rule: "live", Denied: 3, WouldDeny: deny, WouldPass: pass}}
	}
	s.wantShadow("strict", client.LimitShadowSpan{WouldDeny: 3, Tenants: 2, Top: []client.LimitShadowTenant{{Tenant: "acme", WouldDeny: 2}, {Tenant: "other", WouldDeny: 1}}, Limits: live(3, 0)})
	s.wantShadow("lax", client.LimitShadowSpan{Limits: live(0, 3)})
	s.wantShadow("quiet", client.LimitShadowSpan{WouldDeny: 2, Tenants: 1, Top: []client.LimitShadowTenant{{Tenant: "acme", WouldDeny: 2}}, WouldDenyRefused: 1})
	s.wantShadow("jobs", client.LimitShadowSpan{WouldDeny: 2, Tenants: 1, Top: []client.LimitShadowTenant{{Tenant: "acme", WouldDeny: 2}}})
	s.wantShadow("live", client.LimitShadowSpan{})

	// The list of denials is unchanged, because limits in shadow mode deny nothing.
	list := s.denialsOf("acme", "")
	counts := map[string]int64{}
	for _, c := range list.Counts {
		counts[string(c.Code)+" "+c.Rule] += c.N
	}
	assert.Equal(t, map[string]int64{"rate_limited live": 3, "credits_exhausted ": 1}, counts)
	assert.Len(t, list.Items, 4, "denials")
	list = s.denialsOf("other", "")
	assert.Zero(t, len(list.Items)+len(list.Counts), list)
	// The counts are kept after the limit was deleted.
	s.call("DELETE", "/v1/limits/strict", "").want(204)
	got := s.shadowOf("strict")
	assert.True(t, got.WouldDeny == 3, got)
}

// If an exemption exempts a tenant from limits, limits in shadow mode count no denials of this tenant.
func TestLimitShadow_Exempt_NotCounted(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limit("watch", `{"per":["tenant"],"kind":"token_bucket","rate":"1/day","mode":"shadow"}`)
	s.limit("jobs", `{"per":["tenant"],"kind":"concurrency","burst":1,"mode":"shadow"}`)
	s.call("PUT", "/v1/blocks/tenant/acme", `{"action":"allow"}`).want(201)
	s.eventually("the block is known", func() bool {
		_, exempt := s.server.catalog.Blocks().Find("acme", "", netip.Addr{}, time.Now())
		return exempt
	})
	for i := range 3 {
		s.debit(fmt.Sprint("d", i), "acme", "calls", 1).want(200)
		s.call("POST", "/v1/limits/charge", `{"tenant":"acme"}`).want(200)
		s.send("/v1/leases", fmt.Sprint("l", i), `{"rule":"jobs","tenant":"acme"}`).want(201)
	}
	s.wantShadow("watch", client.LimitShadowSpan{})
	s.wantShadow("jobs", client.LimitShadowSpan{})
}

func TestLimitShadow_Requests_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/pro", `{"allowances":[],"limits":[{"rule":"own","per":["tenant"],"kind":"token_bucket","rate":"8/s","mode":"shadow"}]}`).want(201)
	s.limit("r0", `{"per":["tenant"],"kind":"token_bucket","rate":"10/day"}`)
	s.eventually("the plan is in the snapshot", func() bool { return s.server.catalog.Snapshot().Plans["pro"] != nil })
	s.wantShadow("r0", client.LimitShadowSpan{})
	s.wantShadow("own", client.LimitShadowSpan{})
	for _, rule := range []string{"r1", "R0", strings.Repeat("r", 128)} {
		s.call("GET", "/v1/limits/"+rule+"/shadow", "").problem(404, "not_found")
	}
	s.call("GET", "/v1/limits/r%3F/shadow", "").refused("rule")
	s.call("GET", "/v1/limits/r0/shadow?limit=1", "").refused("limit")
	s.as(s.newKey(`{"name":"bound","scopes":["read"],"tenant":"acme"}`), "GET", "/v1/limits/r0/shadow", "").problem(403, "forbidden")
	s.as(s.newKey(`{"name":"user","scopes":["use"]}`), "GET", "/v1/limits/r0/shadow", "").problem(403, "forbidden")
	s.as(s.newKey(`{"name":"reader","scopes":["read"]}`), "GET", "/v1/limits/r0/shadow", "").want(200)
}
