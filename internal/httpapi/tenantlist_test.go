package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

// wantTenants fails the test unless a list has these tenants, each in the form id:meter:used/remaining.
func (s *service) wantTenants(query string, want ...string) {
	s.t.Helper()
	for _, limit := range []int{0, 1, 2} {
		var got []string
		for _, t := range pages[client.Tenant](s, "/v1/tenants?"+query+"&", limit) {
			text := t.Tenant
			if b := t.Standing; b.Meter != "" {
				text += fmt.Sprintf(":%s:%d/%d", b.Meter, b.Used, b.Remaining)
			}
			got = append(got, text)
		}
		assert.Equal(s.t, want, got, "%s, limit %d", query, limit)
	}
}

// standings creates the plans p and q, each with 100 calls a month and a prepaid meter, and tenants on these plans.
func (s *service) standings() *service {
	s.t.Helper()
	for _, meter := range []string{"calls", "credits"} {
		s.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
	}
	for _, plan := range []string{"p", "q"} {
		s.call("PUT", "/v1/plans/"+plan, `{"allowances":[{"meter":"calls","amount":100,"every":"month","anchor":"tenant"},
			{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}]}`).want(201)
	}
	for id, body := range map[string]string{
		"a": `{"plan":"p","metadata":{"segment":"gold","seats":5}}`, "b": `{"plan":"p","metadata":{"segment":"silver"}}`, "c": `{"plan":"q","metadata":{"segment":"gold","vip":true}}`,
		"d": `{"plan":"q","status":"suspended"}`, "e": `{"plan":"q"}`,
	} {
		s.call("PUT", "/v1/tenants/"+id, body).want(201)
	}
	return s
}

func (s *service) grantTo(tenant, meter string, amount int) {
	s.t.Helper()
	s.call("POST", "/v1/tenants/"+tenant+"/grants", fmt.Sprintf(`{"meter":%q,"amount":%d,"source":"topup"}`, meter, amount), headerIdempotencyKey, "g"+meter).want(201)
}

func TestTenants_ByPlanStatusMetadata_Found(t *testing.T) {
	t.Parallel()
	s := newService(t).standings()
	s.wantTenants("", "a", "b", "c", "d", "e")
	s.wantTenants("plan=p", "a", "b")
	s.wantTenants("plan=none")
	s.wantTenants("status=suspended", "d")
	s.wantTenants("plan=q&status=active", "c", "e")
	s.wantTenants("metadata.segment=gold", "a", "c")
	s.wantTenants("metadata.segment=gold&metadata.seats=5", "a")
	s.wantTenants("metadata.vip=true&plan=q", "c")
	s.wantTenants("metadata.segment=GOLD")
	s.wantTenants("metadata.segment=gold&plan=p&sort=tenant", "a")
	for query, field := range map[string]string{
		"near=101": "near", "near=-1": "near", "near=x": "near", "status=gone": "status", "sort=name": "sort", "meter=a%20b": "meter", "plan=%20": "plan",
		"metadata.=x": "metadata.", "metadata=x": "metadata", "metadata.a=1&metadata.b=1&metadata.c=1&metadata.d=1": "metadata", "metadata.a=" + strings.Repeat("x", 257): "metadata.a",
		"metadata." + strings.Repeat("n", 65) + "=1": "metadata." + strings.Repeat("n", 64), "plan=p&plan=q": "plan", "plan=p&cursor=x": "cursor",
		"near=80&sort=remaining&cursor=YQ": "cursor", "near=80&cursor=YSBiIGM": "cursor", "metadata.a=1&metadata.a=2": "metadata.a",
	} {
		s.call("GET", "/v1/tenants?"+query, "").refused(field)
	}
	bound := s.newKey(`{"name":"n","scopes":["read"],"tenant":"a"}`)
	for query, found := range map[string]bool{
		"": true, "plan=p": true, "plan=q": false, "metadata.segment=gold": true, "metadata.seats=5": true, "metadata.segment=": false, "status=suspended": false, "near=1": false,
	} {
		page := decoded[client.TenantList](s.as(bound, "GET", "/v1/tenants?"+query, "").want(200))
		assert.True(t, len(page.Items) == 1 == found && page.NextCursor == nil, "%s: %v", query, page.Items)
	}
}

// For the filter near, units of top-ups count as granted, and refunded units do not count as used.
func TestTenants_Near_TopUpsCount(t *testing.T) {
	t.Parallel()
	s := newOwner(t).standings()
	use := func(tenant, meter string, amount int64) { s.debit("u"+meter, tenant, meter, amount).want(200) }
	use("a", "calls", 85)
	use("b", "calls", 85)
	s.grantTo("b", "calls", 100) // 85 of 200 units are used
	s.grantTo("c", "credits", 10)
	use("c", "credits", 10)
	use("c", "calls", 20)
	use("e", "calls", 100)
	s.call("POST", "/v1/refunds", `{"tenant":"e","operation_id":"ucalls","amount":90}`, headerIdempotencyKey, "r").want(200) // 10 of 110
	s.wantTenants("near=80", "a:calls:85/15", "c:credits:10/0")
	s.wantTenants("near=86", "c:credits:10/0")
	s.wantTenants("near=85&meter=calls", "a:calls:85/15")
	s.wantTenants("near=42&meter=calls", "a:calls:85/15", "b:calls:85/115")
	s.wantTenants("near=43&meter=calls", "a:calls:85/15")
	s.wantTenants("near=80&plan=q", "c:credits:10/0")
	s.wantTenants("near=80&metadata.segment=gold&plan=p", "a:calls:85/15")
	s.wantTenants("near=100", "c:credits:10/0")
	s.wantTenants("near=1&sort=remaining&meter=calls", "a:calls:85/15", "c:calls:20/80", "e:calls:10/90", "b:calls:85/115")
	s.wantTenants("near=1&sort=remaining", "c:credits:10/0", "a:calls:85/15", "e:calls:10/90", "b:calls:85/115")
	s.wantTenants("meter=credits", "c:credits:10/0")
	bound := s.newKey(`{"name":"n","scopes":["read"],"tenant":"a"}`)
	page := decoded[client.TenantList](s.as(bound, "GET", "/v1/tenants?near=80", "").want(200))
	assert.True(t, len(page.Items) == 1 && page.Items[0].Standing.Percent == 85, page)
	// A month has passed, and no balance was rolled. The periods of calls have ended, and nothing is used in the next
	// periods. The credits have no end.
	s.advance("32d")
	s.wantTenants("near=1&meter=calls")
	s.wantTenants("near=80", "c:credits:10/0")
	use2 := func(tenant string, amount int64) { s.debit("v", tenant, "calls", amount).want(200) }
	use2("b", 170) // of 200: 100 from the plan and 100 bought
	s.wantTenants("near=80&meter=calls", "b:calls:170/30")
}

// Changes of a balance that are due are applied before the balance is listed. After a grant has expired, tenant a has
// little left and is listed. After a change of the plan, tenant b has enough and is not listed.
func TestTenants_Near_WhatIsDueCounts(t *testing.T) {
	t.Parallel()
	s := newOwner(t).standings()
	c := s.advance("1s")
	s.call("POST", "/v1/tenants/a/grants", fmt.Sprintf(`{"meter":"calls","amount":100,"source":"promo","expires_at":%q,"priority":900}`, c.Now.AddDate(0, 0, 5).Format("2006-01-02T15:04:05Z")),
		headerIdempotencyKey, "promo").want(201)
	s.debit("d", "a", "calls", 90).want(200)
	s.debit("d", "b", "calls", 90).want(200)
	s.wantTenants("near=80", "b:calls:90/10")
	s.advance("6d")
	s.wantTenants("near=80", "a:calls:90/10", "b:calls:90/10")
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"tenant"}]}`).want(201)
	s.call("PATCH", "/v1/tenants/b", `{"plan":"large","apply":"now"}`).want(200)
	s.wantTenants("near=80", "a:calls:90/10")
}

// A tenant that the filter near selects all the time is listed exactly once, for any changes of other tenants between
// two pages.
func TestTenants_NearCursor_StableUnderChange(t *testing.T) {
	t.Parallel()
	s := newService(t).standings()
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("t%02d", i)
		s.call("PUT", "/v1/tenants/"+id, `{"plan":"p"}`).want(201)
		s.debit("d", id, "calls", 90).want(200)
		want = append(want, id)
	}
	var got []string
	cursor := ""
	for n := 0; ; n++ {
		page := decoded[client.TenantList](s.call("GET", "/v1/tenants?near=80&limit=3"+cursor, "").want(200))
		for _, item := range page.Items {
			if strings.HasPrefix(item.Tenant, "t") && len(item.Tenant) == 3 {
				got = append(got, item.Tenant)
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		s.debit(fmt.Sprint("m", n), fmt.Sprintf("t%02d", n), "calls", 1).want(200) // a tenant that was listed changes
		s.call("PUT", "/v1/tenants/"+fmt.Sprintf("s%02d", n), `{"plan":"p"}`).want(201)
		s.debit("d", fmt.Sprintf("s%02d", n), "calls", 95).want(200) // others appear, before and after the cursor
		s.call("PUT", "/v1/tenants/"+fmt.Sprintf("x%02d", n), `{"plan":"p"}`).want(201)
		s.debit("d", fmt.Sprintf("x%02d", n), "calls", 95).want(200)
		require.True(t, n <= 100, "the list does not end")
		if n == 15 { // new tenants appear faster than three a page
			break
		}
	}
	assert.True(t, slices.Equal(got, want), "%v, want %v", got, want)
}

func TestTenants_PrefixBesideAnotherFilter_IsRefusedByName(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, filter := range []string{"plan=starter", "status=active", "metadata.segment=gold", "near=80", "meter=api_calls", "sort=remaining"} {
		p := s.call("GET", "/v1/tenants?prefix=ac&"+filter, "").problem(400, "invalid_argument")
		assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "prefix" &&
			strings.Contains(p.Errors[0].Message, "must not be given together with plan, status"), "%s: %+v", filter, p.Errors)
	}
	s.call("GET", "/v1/tenants?prefix=ac&sort=tenant&limit=1", "").want(200)
}
