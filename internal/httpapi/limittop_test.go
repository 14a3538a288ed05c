package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

func (s *service) top(rule, query string) client.LimitTop {
	s.t.Helper()
	got := decoded[client.LimitTop](s.call("GET", "/v1/limits/"+rule+"/top"+query, "").want(200))
	assert.True(s.t, got.Rule == rule && !got.Incomplete, got)
	return got
}

func TestLimitTop_FullestFirst_AsInForce(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"10/day"}`, `{"per":["tenant","subject"],"kind":"sliding_log","rate":"4/day"}`,
		`{"per":["ip"],"kind":"fixed_window","rate":"2/day","ip_prefix":{"v4":24}}`,
		`{"per":["tenant","route"],"kind":"leaky_bucket","rate":"100/day","match":{"route":"/v1/**"}}`, `{"per":["tenant"],"kind":"concurrency","burst":3}`,
		`{"per":["global"],"kind":"sliding_window","rate":"50/day"}`)
	got := s.top("r0", "")
	assert.True(t, got.Items != nil && len(got.Items) <= 0, "%+v: nothing is used", got)
	charge := func(tenant, more string, cost int) {
		s.call("POST", "/v1/limits/charge", fmt.Sprintf(`{"tenant":%q,"cost":%d%s}`, tenant, cost, more)).want(200)
	}
	for i, tenant := range []string{"small", "large", "other"} {
		s.call("PUT", "/v1/tenants/"+tenant, `{"plan":"basic"}`).want(201)
		charge(tenant, `,"rules":["r0"]`, 4+i)
	}
	s.call("PUT", "/v1/limits/r0/overrides/small", `{"rate":"5/day"}`).want(201)
	s.call("PUT", "/v1/limits/r0/overrides/large", `{"rate":"1000/day"}`).want(201)
	want := []client.LimitTopItem{{Tenant: "small", Used: 4, Limit: 5}, {Tenant: "other", Used: 6, Limit: 10}, {Tenant: "large", Used: 5, Limit: 1000}}
	for limit := 1; limit <= 3; limit++ {
		assert.Equal(t, want[:limit], s.top("r0", fmt.Sprint("?limit=", limit)).Items)
	}

	charge("small", `,"subject":"u","rules":["r1"]`, 3)
	charge("small", `,"subject":"never.refused","rules":["r1"]`, 1)
	wantOf := []client.LimitTopItem{{Tenant: "small", Subject: "u", Used: 3, Limit: 4}, {Tenant: "small", Subject: "never.refused", Used: 1, Limit: 4}}
	assert.Equal(t, wantOf, s.top("r1", "").Items)
	s.call("PUT", "/v1/limits/r1/overrides/small/never.refused", `{"rate":"1/day"}`).want(201)
	assert.Equal(t, []client.LimitTopItem{{Tenant: "small", Subject: "never.refused", Used: 1, Limit: 1}}, s.top("r1", "?limit=1").Items)

	charge("other", `,"ip":"192.0.2.7","rules":["r2"]`, 2)
	s.call("POST", "/v1/limits/charge", `{"tenant":"small","ip":"192.0.2.9","rules":["r2"]}`).want(429)
	assert.Equal(t, []client.LimitTopItem{{IP: "192.0.2.0/24", Used: 2, Limit: 2}}, s.top("r2", "").Items)
	charge("other", `,"route":"/v1/x","rules":["r3"]`, 50)
	assert.Equal(t, []client.LimitTopItem{{Tenant: "other", Route: "/v1/**", Used: 50, Limit: 100}}, s.top("r3", "").Items)
	s.send("/v1/leases", "l", `{"rule":"r4","tenant":"acme"}`).want(201)
	assert.Equal(t, []client.LimitTopItem{{Tenant: "acme", Used: 1, Limit: 3}}, s.top("r4", "").Items)
	charge("other", `,"rules":["r5"]`, 9)
	assert.Equal(t, []client.LimitTopItem{{Used: 9, Limit: 50}}, s.top("r5", "").Items)
}

func TestLimitTop_Requests_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"10/day"}`)
	for query, field := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=": "limit", "tenant=acme": "tenant"} {
		s.call("GET", "/v1/limits/r0/top?"+query, "").refused(field)
	}
	s.top("r0", "?limit=100")
	for _, rule := range []string{"r1", "R0", "r", "r0.", strings.Repeat("r", 128)} {
		s.call("GET", "/v1/limits/"+rule+"/top", "").problem(404, "not_found")
	}
	for _, rule := range []string{"*", "r%3F", "r%2A", "%5Br%5D0", "r0%7D"} {
		a := s.call("GET", "/v1/limits/"+rule+"/top", "")
		assert.False(t, a.status != 400 && a.status != 404, "%s: %d %s", rule, a.status, a.body)
	}
	s.as(s.newKey(`{"name":"bound","scopes":["read"],"tenant":"acme"}`), "GET", "/v1/limits/r0/top", "").problem(403, "forbidden")
	s.as(s.newKey(`{"name":"user","scopes":["use"]}`), "GET", "/v1/limits/r0/top", "").problem(403, "forbidden")
	s.as(s.newKey(`{"name":"reader","scopes":["read"]}`), "GET", "/v1/limits/r0/top", "").want(200)
}
