package httpapi

import (
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
)

func (s *service) readTenant(id string) (tenant client.Tenant) {
	s.t.Helper()
	a := s.call("GET", "/v1/tenants/"+id, "").want(200)
	if a.into(&tenant); a.header.Get(headerETag) != fmt.Sprintf(`"%d"`, tenant.Version) {
		s.t.Errorf("ETag %s of version %d", a.header.Get(headerETag), tenant.Version)
	}
	return tenant
}

// patch sends a PATCH of tenant acme.
func (s *service) patch(body string, extra ...string) *answer {
	s.t.Helper()
	return s.call("PATCH", "/v1/tenants/acme", body, extra...)
}

func TestPatchTenant_IfMatch(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	got := s.readTenant("acme")
	assert.True(t, got.Version == 1, got)
	a := s.patch(`{"metadata":{"a":1}}`, headerIfMatch, `"1"`).want(200)
	assert.True(t, a.header.Get(headerETag) == `"2"` && s.readTenant("acme").Version == 2, "%v %s", a.header, a.body)
	a = s.patch(`{"metadata":{"a":1}}`, headerIfMatch, `"2"`).want(200)
	assert.EqualValues(t, `"2"`, a.header.Get(headerETag), "nothing changed: %v", a.header)
	s.unmoved("refused", func() {
		for _, method := range []string{"PATCH", "PUT"} {
			send := func(body, tag string) *answer {
				return s.call(method, "/v1/tenants/acme", body, headerIfMatch, tag)
			}
			for _, tag := range []string{`"0"`, `"1"`, `"3"`, `"9007199254740991"`} {
				p := send(`{"plan":"basic"}`, tag).problem(409, "precondition_failed")
				assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == headerIfMatch &&
					strings.Contains(p.Detail, `must be "2"`), "%s: %+v", tag, p)
			}
			for _, tag := range []string{"", "*", "2", `"`, `""`, `"x"`, `"-2"`, `W/"2"`, `"2", "3"`, `"99999999999999999"`, `"9007199254740992"`, `"2.0"`, `'2'`} {
				send(`{"plan":"basic"}`, tag).refused(headerIfMatch)
			}
			r := s.request(method, "/v1/tenants/acme", strings.NewReader(`{"plan":"basic"}`))
			r.Header[headerIfMatch] = []string{`"2"`, `"2"`}
			s.do(r).refused(headerIfMatch)
		}
		s.call("PATCH", "/v1/tenants/nobody", `{}`, headerIfMatch, `"1"`).problem(404, "tenant_not_found")
		s.call("PUT", "/v1/tenants/nobody", `{"plan":"basic"}`, headerIfMatch, `"1"`).problem(404, "tenant_not_found")
	})
	a = s.call("PUT", "/v1/tenants/acme", `{"plan":"basic"}`, headerIfMatch, `"2"`).want(200)
	assert.Equal(t, `"3"`, a.header.Get(headerETag))
	a = s.call("PUT", "/v1/tenants/fresh", `{"plan":"basic"}`).want(201)
	assert.Equal(t, `"1"`, a.header.Get(headerETag))
}

func TestPatchTenant_MergesOverrides_PutReplaces(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	overrides := func(want client.Overrides) {
		t.Helper()
		assert.Equal(t, want, s.readTenant("acme").Overrides)
	}
	overrides(client.Overrides{})
	s.patch(`{"overrides":{"calls":25,"credits":0},"apply":"now"}`).want(200)
	overrides(client.Overrides{"calls": 25, "credits": 0})
	s.patch(`{"overrides":{"credits":9007199254740991},"apply":"now"}`).want(200)
	s.patch(`{"overrides":{"calls":null,"other":null},"apply":"now"}`).want(200)
	s.patch(`{"overrides":{}}`).want(200)
	s.patch(`{"status":"active"}`).want(200)
	overrides(client.Overrides{"credits": 9007199254740991})
	s.call("PUT", "/v1/tenants/acme", `{"plan":"basic","overrides":{"calls":0}}`).want(200)
	overrides(client.Overrides{"credits": 9007199254740991})
	assert.Equal(t, client.Overrides{"calls": 0}, s.readTenant("acme").Pending.Overrides, "a PUT replaces, and waits")
	s.call("PUT", "/v1/tenants/acme", `{"plan":"basic","overrides":{"calls":0}}`).want(200)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"basic"}`).problem(409, "change_pending")
	s.call("DELETE", "/v1/tenants/acme/pending", "").want(204)
	s.call("DELETE", "/v1/tenants/acme/pending", "").problem(404, "not_found")
	var list client.TenantList
	s.patch(`{"overrides":{"calls":7,"credits":null},"apply":"now"}`).want(200)
	s.call("GET", "/v1/tenants", "").want(200).into(&list)
	assert.Equal(t, client.Overrides{"calls": 7}, list.Items[0].Overrides, list)
}

func TestPatchTenant_WrongOverride_400(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/lean", `{"allowances":[{"meter":"calls","amount":1,"every":"year","anchor":"calendar"}]}`).want(201)
	s.patch(`{"overrides":{"calls":25,"credits":5},"apply":"now"}`).want(200)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	s.unmoved("refused", func() {
		for body, field := range map[string]string{
			`{"other":1}`: "overrides.other", `{"none":1}`: "overrides.none", // the plan has no such meters
			`{"calls":-1}`: "overrides.calls", `{"calls":9007199254740992}`: "overrides.calls", `{"calls":1.5}`: "overrides.calls",
			`{"calls":1e3}`: "overrides.calls", `{"calls":"1"}`: "overrides.calls", `{"calls":true}`: "overrides.calls",
			`{"calls":{}}`: "overrides.calls", `{"calls":[1]}`: "overrides.calls", `{"calls":{"amount":1}}`: "overrides.calls",
			`{"a b":1}`: "overrides.a b", `{"":1}`: "overrides.", `{"-a":null}`: "overrides.-a", `{"a":1,"a":2}`: "overrides.a",
			`{"` + strings.Repeat("x", 129) + `":1}`: "overrides." + strings.Repeat("x", 129), `{` + strings.Join(many, ",") + `}`: "overrides",
			`[]`: "overrides", `1`: "overrides", `"calls"`: "overrides",
		} {
			s.patch(`{"overrides":` + body + `}`).refused(field)
			s.call("PUT", "/v1/tenants/acme", `{"plan":"basic","overrides":`+body+`}`).refused(field)
			s.call("PUT", "/v1/tenants/fresh", `{"plan":"basic","overrides":`+body+`}`).refused(field)
		}
		s.call("PUT", "/v1/tenants/acme", `{"plan":"basic","overrides":{"calls":null}}`).refused("overrides.calls")
		s.patch(`{"plan":"lean"}`).refused("overrides.credits")
		s.patch(`{"plan":"lean","apply":"now"}`).refused("overrides.credits")
		s.patch(`{"plan":"lean","dry_run":true}`).refused("overrides.credits")
		p := s.patch(`{"plan":"none"}`).problem(404, "not_found")
		assert.Equal(t, "plan", p.Errors[0].Field, p)
	})
	s.patch(`{"plan":"lean","overrides":{"credits":null},"apply":"now"}`).want(200)
	s.patch(`{"overrides":{` + strings.Join(many[:99], ",") + `}}`).refused("overrides.m98") // the maximum number, for unknown meters
}

func TestPatchTenant_DryRun_AnswersLikePatch(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar"}]}`).want(201)
	s.debit("k", "acme", "calls", 4).want(200)
	for _, body := range []string{
		`{"plan":"large","apply":"now","prorate":true,"reason":"upgraded"}`, `{"overrides":{"calls":7},"metadata":{"z":1,"a":[2]}}`,
		`{"overrides":{"calls":8},"apply":"next_period"}`, `{"overrides":{"calls":null},"apply":"now"}`, `{"status":"suspended"}`, `{"status":"suspended"}`, `{"plan":"nothing"}`, `{"overrides":{"other":1}}`,
	} {
		before := s.readTenant("acme")
		tag := fmt.Sprintf(`"%d"`, before.Version)
		var dry *answer
		s.unmoved(body, func() { dry = s.patch(dried(body), headerIfMatch, tag) })
		done := s.patch(body, headerIfMatch, tag)
		require.True(t, dry.status == done.status, "%s: %d, then %d %s", body, dry.status, done.status, done.body)
		if done.status >= 400 {
			var got, want client.Problem
			dry.into(&got)
			done.into(&want)
			assert.True(t, got.Detail == want.Detail, "%s: %s, then %s", body, got.Detail, want.Detail)
			continue
		}
		var got, want client.TenantChange
		dry.into(&got)
		done.into(&want)
		assert.True(t, dry.header.Get(headerETag) == tag && got.DryRun && !want.DryRun,
			"%s: %v, %+v, then %+v", body, dry.header, got, want)
		got.DryRun, got.UpdatedAt = false, want.UpdatedAt
		assert.Equal(t, want, got, body)
		assert.Equal(t, before, got.Before, body)
	}
	s.unmoved("stale", func() {
		s.patch(`{"status":"active","dry_run":true}`, headerIfMatch, `"1"`).problem(409, "precondition_failed")
	})
}

func TestListTerms_WhatWhenWhy(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar"}]}`).want(201)
	acme := s.readTenant("acme")
	s.patch(`{"overrides":{"calls":25},"reason":"sold by hand,\nsee é 17","apply":"now"}`).want(200)
	s.patch(`{"status":"suspended"}`).want(200)
	s.patch(`{"plan":"large","overrides":{"calls":null},"apply":"now","prorate":true}`).want(200)
	s.patch(`{"timezone":"Europe/Berlin","apply":"next_period"}`).want(200)
	want := []client.Terms{
		{Plan: "basic", Anchor: acme.Anchor, Timezone: "UTC", Overrides: client.Overrides{}, Apply: client.TermsApplyNow, Usage: client.TermsUsageCarry},
		{Plan: "basic", Anchor: acme.Anchor, Timezone: "UTC", Overrides: client.Overrides{"calls": 25}, Apply: client.TermsApplyNow, Usage: client.TermsUsageCarry, Reason: "sold by hand,\nsee é 17"},
		{Plan: "large", Anchor: acme.Anchor, Timezone: "UTC", Overrides: client.Overrides{}, Apply: client.TermsApplyNow, Prorate: true, Usage: client.TermsUsageCarry},
		{Plan: "large", Anchor: acme.Anchor, Timezone: "Europe/Berlin", Overrides: client.Overrides{}, Apply: client.TermsApplyNextPeriod, Usage: client.TermsUsageCarry},
	}
	for _, limit := range []int{1, 3, 4, 500} {
		got := pages[client.Terms](s, "/v1/tenants/acme/terms?", limit)
		for i := range got {
			assert.False(t, i > 0 && !got[i].EffectiveAt.After(got[i-1].EffectiveAt) ||
				i == 0 && !got[i].EffectiveAt.Equal(acme.CreatedAt), "%d: %s", i, got[i].EffectiveAt)
			got[i].EffectiveAt = want[0].EffectiveAt
		}
		assert.Equal(t, want, got)
	}
	s.call("GET", "/v1/tenants/nobody/terms", "").problem(404, "tenant_not_found")
	for _, cursor := range []string{"x", "AAAA", "%25", "MjAyNg", "bm93"} {
		s.call("GET", "/v1/tenants/acme/terms?cursor="+cursor, "").refused("cursor")
	}
	s.unmoved("refused", func() {
		for _, body := range []string{
			`{"reason":"x"}`, `{"plan":"basic","reason":""}`, `{"plan":"basic","reason":"a\u0000"}`,
			`{"plan":"basic","reason":"` + strings.Repeat("é", 251) + `"}`, `{"plan":"basic","reason":7}`,
		} {
			s.patch(body).refused("reason")
		}
		s.patch(`{"plan":"basic","dry_run":"yes"}`).refused("dry_run")
	})
	s.patch(`{"plan":"basic","apply":"now","reason":"` + strings.Repeat("é", 250) + `"}`).want(200)
}

// TestListTenants_Prefix: the list has exactly the ids that begin with the prefix, on all pages. This holds for the
// largest character that an id may have. A key that is bound to a tenant sees only this tenant.
func TestListTenants_Prefix(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue() // acme
	plan := s.readTenant("acme").Plan
	for _, id := range []string{"Acme", "acm", "acme-1", "acme.z", "acmezz:zz", "acmf", "z"} {
		s.call("PUT", "/v1/tenants/"+id, `{"plan":"`+plan+`"}`).want(201)
	}
	for query, want := range map[string][]string{
		"prefix=acme&": {"acme", "acme-1", "acme.z", "acmezz:zz"}, "prefix=acmezz:zz&": {"acmezz:zz"}, "prefix=A&": {"Acme"}, "prefix=z&": {"z"}, "prefix=none&": nil,
		"": {"Acme", "acm", "acme", "acme-1", "acme.z", "acmezz:zz", "acmf", "z"},
	} {
		var ids []string
		for _, tenant := range pages[client.Tenant](s, "/v1/tenants?"+query, 2) {
			ids = append(ids, tenant.Tenant)
		}
		assert.Equal(t, want, ids, "%q", query)
	}
	for _, bad := range []string{"", "a%20b", ".a", strings.Repeat("x", 256), "a%25"} {
		s.call("GET", "/v1/tenants?prefix="+bad, "").problem(400, "invalid_argument")
	}
}

func TestPatchTenant_PlanChangeNextPeriodOrNow(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar"}]}`).want(201)
	s.debit("k1", "acme", "calls", 4).want(200)
	remaining := func() (balance client.Balance) {
		t.Helper()
		s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200).into(&balance)
		return balance
	}
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"large"}`).want(200)
	got := remaining()
	assert.True(t, got.Granted == 10 && got.Remaining == 6, "a change for the next period: %+v", got)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic"}`).problem(409, "change_pending")
	s.call("DELETE", "/v1/tenants/acme/pending", "").want(204)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"large","apply":"now"}`).want(200)
	got = remaining()
	assert.True(t, got.Granted == 10 && got.Amended == 990 && *got.Carried == 0 && got.Used == 4 && got.Remaining == 996,
		"a change now: %+v", got)
	s.debit("k2", "acme", "calls", 896).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"nothing","apply":"now"}`).want(404)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","prorate":true}`).refused("prorate")
	s.call("PATCH", "/v1/tenants/acme", `{"apply":"now"}`).refused("apply")
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","usage":"reset","reason":"sold"}`).refused("usage")
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","apply":"now","usage":"forget"}`).refused("usage")
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","apply":"now","usage":"reset"}`).refused("reason")
	got = remaining()
	assert.True(t, got.Remaining == 100, "a refused change changed something: %+v", got)
}

// A change of the plan with apply=now counts earlier use, unless usage is reset. GET terms shows whether usage was
// reset.
func TestPatchTenant_Usage_CarriedOrReset(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"calendar"}]}`).want(201)
	s.debit("k1", "acme", "calls", 4).want(200)
	granted := func() (granted, carried int64) {
		t.Helper()
		balance := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200))
		return balance.Granted, *balance.Carried
	}
	for i, c := range []struct {
		body             string
		granted, carried int64
	}{
		{`{"plan":"large","apply":"now"}`, 996, 4},
		{`{"plan":"basic","apply":"now","usage":"carry"}`, 6, 4},
		{`{"plan":"large","apply":"now","usage":"reset","reason":"a gift"}`, 1000, 0},
	} {
		s.call("PATCH", "/v1/tenants/acme", c.body).want(200)
		g, used := granted()
		assert.True(t, g == c.granted && used == c.carried, "change %d: granted %d, carried %d", i, g, used)
	}
	list := decoded[client.TermsList](s.call("GET", "/v1/tenants/acme/terms", "").want(200))
	got := answers.Map(list.Items, func(terms *client.Terms) client.TermsUsage { return terms.Usage })
	want := []client.TermsUsage{client.TermsUsageCarry, client.TermsUsageCarry, client.TermsUsageCarry, client.TermsUsageReset}
	assert.True(t, slices.Equal(got, want), "usage: %v, want %v", got, want)
}

// The answer names the options that were applied, so that a client need not know the defaults. A change that does not
// change the terms has no options.
func TestPatchTenant_ChangeOfTerms_NamesItsOptions(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"calendar"}]}`).want(201)
	for _, c := range []struct{ body, options string }{
		{`{"plan":"large"}`, `"next_period" false "carry"`},
		{`{"timezone":"UTC","apply":"now"}`, `"now" false "carry"`},
		{`{"plan":"basic","apply":"now"}`, `"now" false "carry"`},
		{`{"plan":"basic","apply":"now","prorate":true,"dry_run":true}`, `"now" true "carry"`},
		{`{"plan":"large","apply":"now","prorate":true,"usage":"reset","reason":"a gift"}`, `"now" true "reset"`},
		{`{"status":"suspended"}`, ""},
		{`{"metadata":{"a":1}}`, ""},
	} {
		got := decoded[map[string]jsontext.Value](s.patch(c.body).want(200))
		options := string(got["apply"]) + " " + string(got["prorate"]) + " " + string(got["usage"])
		assert.True(t, strings.TrimSpace(options) == c.options, "%s: %s, want %s", c.body, options, c.options)
	}
}
