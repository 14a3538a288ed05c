package httpapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

// denialsOf returns the stored denials of a tenant.
func (s *service) denialsOf(tenant, query string) (list client.DenialList) {
	s.t.Helper()
	s.check(s.denials.Flush(s.t.Context()))
	s.call("GET", "/v1/tenants/"+tenant+"/denials"+query, "").want(200).into(&list)
	return list
}

// The list has each kind of refusal, with its reason and its minute. It has no other answers.
func TestDenials_EachRefusal_ListedWithCodeRuleAndMinute(t *testing.T) {
	t.Parallel()
	s := newService(t).limited()
	s.tenant("other")
	s.call("PUT", "/v1/blocks/subject/eve", `{"tenant":"acme","reason":"fraud"}`).want(201)
	s.call("PUT", "/v1/tenants/gone", `{"plan":"basic","status":"suspended"}`).want(201)
	s.eventually("the block is known", func() bool {
		return s.call("POST", "/v1/check", `{"tenant":"acme","subject":"eve","items":[{"meter":"calls","amount":1}]}`).want(200).facts()["allowed"] == false
	})
	began := time.Now().UTC().Add(-time.Second)
	id := func(name string) []string { return []string{headerRequestID, name} }
	demand := func(meter string, amount int, more string) string {
		return fmt.Sprintf(`{"tenant":"acme","items":[{"meter":%q,"amount":%d}]%s}`, meter, amount, more)
	}
	for i := range 2 {
		s.send("/v1/consume", fmt.Sprint("ok", i), demand("calls", 1, `,"route":"/search"`)).want(200)
	}
	// The denials do not include the following requests.
	s.call("POST", "/v1/check", demand("calls", 100, "")).want(200)
	s.send("/v1/debits", "dry", demand("calls", 100, `,"dry_run":true`)).want(402)
	s.send("/v1/debits", "bad", demand("calls", 0, "")).want(400)
	s.call("GET", "/v1/authorize/traefik", "", forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", "X-Forwarded-Uri", "/search", "X-Quota-Mode", "check").want(429)
	s.send("/v1/debits", "nobody", `{"tenant":"nobody","items":[{"meter":"calls","amount":1}]}`).want(404)
	// The denials include the following requests.
	s.send("/v1/debits", "a", demand("calls", 10, `,"subject":"ann"`), id("r-debit")...).want(429)
	s.send("/v1/debits", "b", demand("credits", 1, ""), id("r-credits")...).want(402)
	s.send("/v1/debits", "c", demand("other", 1, ""), id("r-plan")...).want(403)
	s.send("/v1/consume", "d", demand("calls", 1, `,"route":"/search","subject":"bob"`), id("r-rate")...).want(429)
	s.send("/v1/consume", "e", demand("calls", 1, `,"subject":"eve"`), id("r-block")...).want(403)
	s.send("/v1/holds", "f", `{"tenant":"acme","hold_id":"h","items":[{"meter":"calls","amount":50}]}`, id("r-hold")...).want(402)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/search"}`, id("r-charge")...).want(429)
	s.call("GET", "/v1/authorize/traefik", "", append(id("r-gateway"), forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", "X-Forwarded-Uri", "/search")...).want(429)
	s.call("POST", "/v1/debits/batch", `{"debits":[{"idempotency_key":"g1","tenant":"acme","items":[{"meter":"calls","amount":1}]},
		{"idempotency_key":"g2","tenant":"acme","items":[{"meter":"calls","amount":1},{"meter":"other","amount":1}]}]}`, id("r-batch")...).want(200)
	s.send("/v1/consume", "x", `{"tenant":"acme","feature":"sso","dry_run":true}`).want(403)
	s.send("/v1/consume", "y", demand("calls", 1, `,"feature":"sso","subject":"ann"`), id("r-feature")...).want(403)
	s.send("/v1/debits", "s", `{"tenant":"gone","items":[{"meter":"calls","amount":1}]}`, id("r-suspended")...).want(403)

	list := s.denialsOf("acme", "")
	type line struct {
		code, meter, rule, subject, route string
		required, available               int64
		id                                string
	}
	var got []line
	for _, d := range slices.Backward(list.Items) {
		assert.True(t, !d.At.Before(began) && !d.At.After(time.Now().Add(time.Second)),
			"%+v: not when it was refused", d)
		l := line{string(d.Code), d.Meter, d.Rule, d.Subject, d.Route, d.Required, -1, d.RequestID}
		if d.Available != nil {
			l.available = *d.Available
		}
		got = append(got, l)
	}
	want := []line{
		{"quota_exceeded", "calls", "", "ann", "", 10, 8, "r-debit"},
		{"credits_exhausted", "credits", "", "", "", 1, 0, "r-credits"},
		{"meter_not_in_plan", "other", "", "", "", 0, -1, "r-plan"},
		{"rate_limited", "calls", "search", "bob", "/search", 0, -1, "r-rate"},
		{"forbidden", "calls", "", "eve", "", 0, -1, "r-block"},
		{"credits_exhausted", "calls", "", "", "", 50, 8, "r-hold"},
		{"rate_limited", "", "search", "", "/search", 0, -1, "r-charge"},
		{"rate_limited", "calls", "search", "", "/search", 0, -1, "r-gateway"},
		{"meter_not_in_plan", "other", "", "", "", 0, -1, "r-batch"},
		{"feature_not_in_plan", "calls", "", "ann", "", 0, -1, "r-feature"},
	}
	assert.Equal(t, want, got)
	counts := map[string]int64{}
	for _, c := range list.Counts {
		counts[string(c.Code)+" "+c.Meter+" "+c.Rule] += c.N
		assert.True(t, c.Minute.Equal(c.Minute.Truncate(time.Minute)) && !c.Minute.Before(began.Truncate(time.Minute)),
			c)
	}
	assert.Equal(t, map[string]int64{
		"quota_exceeded calls ": 1, "credits_exhausted calls ": 1, "credits_exhausted credits ": 1, "meter_not_in_plan other ": 2, "rate_limited calls search": 2, "rate_limited  search": 1,
		"forbidden calls ": 1, "feature_not_in_plan calls ": 1,
	}, counts)
	of := s.denialsOf("gone", "")
	assert.True(t, len(of.Items) == 1 && of.Items[0].Code == "tenant_suspended" && of.Items[0].RequestID == "r-suspended", of)
	of = s.denialsOf("other", "")
	assert.True(t, len(of.Items)+len(of.Counts) == 0 && of.Items != nil && of.Counts != nil, of)
	few := s.denialsOf("acme", "?limit=2")
	assert.True(t, len(few.Items) == 2 && few.Items[0].RequestID == "r-feature", few.Items)
}

func TestDenials_BadQuestions_NameFieldAndBound(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=501": "limit", "?from=yesterday": "from", "?to=1": "to", "?from=2026-02-01T00:00:00Z&to=2026-02-01T00:00:00Z": "to",
		"?cursor=x": "cursor", "?meter=calls": "meter",
	} {
		s.call("GET", "/v1/tenants/acme/denials"+query, "").refused(field)
	}
	s.call("GET", "/v1/tenants/nobody/denials", "").problem(404, "tenant_not_found")
	s.call("GET", "/v1/tenants/a%20b/denials", "").refused("tenant")
	s.call("GET", "/v1/tenants/acme/denials?from=0002-01-01T00:00:00Z&to=9997-12-31T23:59:59Z", "").want(200)
	use := s.newKey(`{"name":"n","scopes":["use"]}`)
	s.as(use, "GET", "/v1/tenants/acme/denials", "").problem(403, "forbidden")
}

// A refusal from memory says the same as the first one, which the ledger has decided.
func TestDenials_FromMemory_SameDetail(t *testing.T) {
	t.Parallel()
	s := newService(t).limited()
	s.debit("all", "acme", "calls", s.remaining("acme", "calls")).want(200)
	detail := func(key string) any {
		return s.send("/v1/consume", key, `{"tenant":"acme","items":[{"meter":"calls","amount":5}]}`).want(429).facts()["detail"]
	}
	first := detail("first")
	for _, key := range []string{"second", "third", "fourth"} {
		assert.Equal(t, first, detail(key))
	}
}

// A denial is stored with the ledger's time, even if that time was moved.
func TestDenials_ClockMoved_AreThen(t *testing.T) {
	t.Parallel()
	s := newOwner(t).clockCatalogue()
	s.debit("first", "acme", "calls", 11).want(402)
	s.denialsOf("acme", "")
	moved := s.advance("400d")
	s.debit("second", "acme", "calls", 12).want(402)
	list := s.denialsOf("acme", "")
	assert.True(t, len(list.Items) == 1 && list.Items[0].Required == 12 && !list.Items[0].At.Before(moved.Now) && len(list.Counts) == 1 &&
		!list.Counts[0].Minute.Before(moved.Now.Add(-time.Minute)), list)
	all := s.denialsOf("acme", "?from=2020-01-01T00:00:00Z")
	assert.True(t, len(all.Items) == 2 && len(all.Counts) == 2, all)
}
