package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The same request about a tenant with a plain id and about one with an id of another system has the same status, at
// each route and with a key that is bound to the tenant.
func TestRoutes_TenantsOfOtherSystems_WorkAsPlainOnes(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/limits/slots", `{"per":["tenant"],"kind":"concurrency","burst":50}`).want(201)
	s.call("PUT", "/v1/limits/by-subject", `{"per":["subject"],"kind":"token_bucket","rate":"5/s"}`).want(201)
	s.eventually("the rules are known", func() bool { return len(s.server.catalog.Snapshot().Limits) == 2 })
	statuses := func(tenant string) map[string]int {
		requests, got := trials(tenant, s.furnish(tenant)), map[string]int{}
		admin := s.newKey(fmt.Sprintf(`{"name":"bound","scopes":["admin"],"tenant":%q}`, tenant))
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			if strings.Contains(name, ":bits") || strings.Contains(name, "/v1/verifications") {
				continue // no tenant; one verification runs at a time
			}
			method, _, _ := strings.Cut(name, " ")
			method = strings.Replace(method, methodAny, "GET", 1)
			r := requests[name]
			got[name] = s.as(admin, method, r.path, r.body, r.header...).status
		}
		return got
	}
	want := statuses("plain")
	for _, tenant := range []string{"auth0|5f7c8e", "a/b", "{a}{b}", "}x", "-x", "*"} {
		assert.Equal(t, want, statuses(tenant), "statuses of requests about %s", tenant)
	}
	list := decoded[client.TenantList](s.call("GET", "/v1/tenants?prefix="+url.QueryEscape("auth0|"), "").want(200))
	assert.True(t, len(list.Items) == 1 && list.Items[0].Tenant == "auth0|5f7c8e", "by prefix: %+v", list.Items)
	s.verifyClean()
}

// Subjects, grants and holds with ids of other systems, by each request that names them. Each has units, caps, rates
// and blocks of its own.
func TestNames_SubjectsGrantsHolds_AtEveryDoor(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/meters/seats", `{"unit":"seat","kind":"gauge"}`).want(201)
	s.call("PUT", "/v1/plans/capped", `{"allowances":[{"meter":"seats","amount":500,"per_subject":5},
		{"meter":"calls","amount":10000,"every":"year","anchor":"calendar","per_subject":10}]}`).want(201)
	s.call("PUT", "/v1/tenants/team", `{"plan":"capped"}`).want(201)
	s.limit("by-subject", `{"per":["subject"],"kind":"token_bucket","rate":"1/h","burst":3}`)
	s.limit("slots", `{"per":["subject"],"kind":"concurrency","burst":1}`)
	for i, id := range testenv.OwnNames() {
		key := func(what string) []string { return []string{headerIdempotencyKey, fmt.Sprint(what, i)} }
		escaped, asked := url.PathEscape(id), "?subject="+url.QueryEscape(id)
		named := fmt.Sprintf(`"tenant":"team","subject":%q`, id)
		demand := `{` + named + `,"items":[{"meter":"calls","amount":1}]}`
		s.call("POST", "/v1/debits", demand, key("debit")...).want(200)
		s.call("POST", "/v1/check", demand).want(200)
		s.call("POST", "/v1/consume", demand, key("consume")...).want(200)
		for _, gateway := range gatewayNames() {
			a := s.do(s.ask(gateway, "/", forwarded.HeaderTenant, "team", forwarded.HeaderSubject, id,
				forwarded.HeaderMode, forwarded.ModeCheck))
			assert.True(t, a.status == http.StatusOK, "%s at %s: %d %s", id, gateway, a.status, a.body)
		}
		s.call("POST", "/v1/limits/charge", `{`+named+`}`).want(200)
		s.call("POST", "/v1/limits/charge", `{`+named+`}`).want(200)
		s.call("POST", "/v1/limits/charge", `{`+named+`}`).problem(429, "rate_limited") // its own bucket has 3 tokens
		s.call("GET", "/v1/limits/by-subject/state"+asked+"&tenant=team", "").want(200)
		s.call("POST", "/v1/limits/by-subject/reset", `{`+named+`}`).want(200, 204)
		s.call("POST", "/v1/limits/charge", `{`+named+`}`).want(200)
		override := "/v1/limits/by-subject/overrides/team/" + escaped
		s.call("PUT", override, `{"rate":"9/s"}`).want(201)
		o := decoded[client.LimitOverride](s.call("GET", override, "").want(200))
		assert.Equal(t, id, o.Subject, "the subject of the override")
		s.call("DELETE", override, "").want(204)
		s.call("POST", "/v1/leases", `{`+named+`,"rule":"slots"}`).want(201)
		s.call("POST", "/v1/leases", `{`+named+`,"rule":"slots"}`).problem(429, "rate_limited")

		var b client.Balance
		s.call("GET", "/v1/tenants/team/balances/calls"+asked, "").want(200).into(&b)
		assert.True(t, b.Subject == id && b.Used == 2 && b.Remaining == 8, "balance of %s: %+v", id, b)
		s.call("GET", "/v1/tenants/team/balances"+asked, "").want(200)
		s.call("GET", "/v1/tenants/team/statements/calls/current"+asked, "", "Accept", typeCSV).want(200)
		entries := decoded[client.EntryList](s.call("GET", "/v1/tenants/team/entries"+asked, "").want(200))
		assert.True(t, len(entries.Items) > 0, "entries of %s", id)
		s.call("PUT", "/v1/tenants/team/gauges/seats"+asked, `{"value":1}`, key("gauge")...).want(200)
		s.call("GET", "/v1/tenants/team/gauges/seats/entries"+asked, "").want(200)

		s.changeGrant(id, key)
		hold := fmt.Sprintf(`{%s,"hold_id":%q,"items":[{"meter":"calls","amount":2}]}`, named, id)
		s.call("POST", "/v1/holds", hold, key("hold")...).want(201)
		got := decoded[client.Hold](s.call("GET", "/v1/tenants/team/holds/"+escaped, "").want(200))
		assert.True(t, got.HoldID == id && got.Subject == id, "the hold: %+v", got)
		path, part := "/v1/holds/"+escaped, `{"tenant":"team","items":[{"meter":"calls","amount":1}]}`
		s.call("POST", path+"/extend", `{"tenant":"team","ttl_seconds":60}`, key("longer")...).want(200)
		s.call("POST", path+"/capture", part, key("capture")...).want(200)
		s.call("POST", path+"/release", `{"tenant":"team"}`, key("release")...).want(200)

		s.call("PUT", "/v1/blocks/subject/"+escaped, `{"tenant":"team"}`).want(201)
		s.eventually("the block is in force", func() bool {
			return s.call("POST", "/v1/consume", demand, key("blocked")...).status == http.StatusForbidden
		})
		s.call("GET", "/v1/blocks/subject/"+escaped+"?tenant=team", "").want(200)
		s.call("DELETE", "/v1/blocks/subject/"+escaped+"?tenant=team", "").want(204)
	}
	holds := decoded[client.HoldList](s.call("GET", "/v1/tenants/team/holds?limit=1", "").want(200))
	assert.True(t, len(holds.Items) == 1 && holds.NextCursor != nil, "a page of holds: %+v", holds)
	s.verifyClean()
}

// changeGrant issues a grant with this id to the subject with this id, extends and voids it, and adjusts the balance.
func (s *service) changeGrant(id string, key func(what string) []string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"meter":"calls","amount":1,"source":"promo","grant_id":%q,"subject":%q,"expires_at":%q}`,
		id, id, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	grants := "/v1/tenants/team/grants"
	s.call("POST", grants, body, key("grant")...).want(201)
	grants += "/" + url.PathEscape(id)
	s.call("POST", grants+"/extend", `{"expires_at":null,"reason":"r"}`, key("extend")...).want(200)
	s.call("POST", grants+"/void", `{"reason":"r"}`, key("void")...).want(200)
	body = fmt.Sprintf(`{"meter":"calls","subject":%q,"amount":1,"reason":"r"}`, id)
	s.call("POST", "/v1/tenants/team/adjustments", body, key("up")...).want(200, 201)
}
