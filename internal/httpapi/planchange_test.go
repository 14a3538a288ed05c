package httpapi

import (
	"encoding/json/jsontext"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

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
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic"}`).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"large","apply":"now"}`).want(200)
	if got := remaining(); got.Granted != 996 || *got.Carried != 4 || got.Used != 0 || got.Remaining != 996 {
		t.Errorf("a change now: %+v", got)
	}
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
	var got []client.TermsUsage
	for _, terms := range list.Items {
		got = append(got, terms.Usage)
	}
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
		{`{"plan":"basic","apply":"now"}`, `"now" false "carry"`},
		{`{"plan":"basic","apply":"now","prorate":true,"dry_run":true}`, `"now" true "carry"`},
		{`{"plan":"large","apply":"now","prorate":true,"usage":"reset","reason":"a gift"}`, `"now" true "reset"`},
		{`{"overrides":{"calls":7},"apply":"next_period"}`, `"next_period" false "carry"`},
		{`{"status":"suspended"}`, ""},
		{`{"metadata":{"a":1}}`, ""},
	} {
		got := decoded[map[string]jsontext.Value](s.patch(c.body).want(200))
		options := string(got["apply"]) + " " + string(got["prorate"]) + " " + string(got["usage"])
		assert.True(t, strings.TrimSpace(options) == c.options, "%s: %s, want %s", c.body, options, c.options)
	}
}
