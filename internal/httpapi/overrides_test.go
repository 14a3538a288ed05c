package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// limitOf returns the size of the limit named rule in a check of acme for a subject. It returns -1 if this limit does
// not apply.
func (s *service) limitOf(rule, subject string) int64 {
	s.t.Helper()
	var check client.CheckAnswer
	s.call("POST", "/v1/check", fmt.Sprintf(`{"tenant":"acme","subject":%q,"items":[{"meter":"calls","amount":1}]}`, subject)).want(200).into(&check)
	for _, l := range check.Limits {
		if l.Rule == rule {
			return l.Limit
		}
	}
	return -1
}

func (s *service) eventuallyLimit(rule, subject string, want int64) {
	s.t.Helper()
	var got int64
	s.eventually(fmt.Sprintf("the limit of %s for %s is %d", rule, subject, want), func() bool { got = s.limitOf(rule, subject); return got == want })
}

func TestOverride_OfTenantAndSubject_ChangesTheirNumbersOnly(t *testing.T) {
	t.Parallel()
	s := newOwner(t).catalogue()
	s.limitNamed("api", `{"per":["subject"],"kind":"token_bucket","rate":"10/min"}`)
	s.tenant("other")
	s.eventuallyLimit("api", "u1", 10)
	s.call("POST", "/v1/consume", `{"tenant":"acme","subject":"u1","items":[{"meter":"calls","amount":1}]}`, headerIdempotencyKey, "before").want(200)

	o := decoded[client.LimitOverride](s.call("PUT", "/v1/limits/api/overrides/acme", `{"rate":"20/min"}`).want(201))
	assert.True(t, o.Rule == "api" && o.Tenant == "acme" && o.Subject == "" && o.Rate == "20/min" &&
		!o.CreatedAt.IsZero(), o)
	s.eventuallyLimit("api", "u1", 20)
	a := s.call("POST", "/v1/check", `{"tenant":"acme","subject":"u1","items":[{"meter":"calls","amount":1}]}`).want(200)
	check := decoded[client.CheckAnswer](a)
	assert.True(t, check.Limits[0].Remaining == 19, "the bucket does not keep what was taken: %s", a.body)
	s.call("PUT", "/v1/limits/api/overrides/acme/u1", `{"rate":"7/min","burst":70}`).want(201)
	s.eventuallyLimit("api", "u1", 70)
	s.eventuallyLimit("api", "u2", 20)
	s.call("PUT", "/v1/limits/api/overrides/acme/u1", `{"rate":"7/min","burst":71}`).want(200)
	s.eventuallyLimit("api", "u1", 71)

	// An override ends at expires_at without a request.
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	s.call("PUT", "/v1/limits/api/overrides/acme/u3", fmt.Sprintf(`{"rate":"3/min","expires_at":%q}`, until)).want(201)
	s.eventuallyLimit("api", "u3", 3)
	s.advance("1h")
	s.eventuallyLimit("api", "u3", 20)
	s.call("GET", "/v1/limits/api/overrides/acme/u3", "").problem(404, "not_found")

	s.call("PUT", "/v1/limits/api/overrides/other", `{"rate":"1/min"}`).want(201)
	page := decoded[client.LimitOverrideList](s.call("GET", "/v1/limits/api/overrides?limit=2", "").want(200))
	assert.True(t, len(page.Items) == 2 && page.Items[0].Subject == "" && page.Items[1].Subject == "u1", page)
	s.call("GET", "/v1/limits/api/overrides?limit=2&cursor="+*page.NextCursor, "").want(200).into(&page)
	assert.True(t, len(page.Items) == 1 && page.Items[0].Tenant == "other" && page.NextCursor == nil, page)

	s.call("DELETE", "/v1/limits/api/overrides/acme/u1", "").want(204)
	s.eventuallyLimit("api", "u1", 20)
	s.call("DELETE", "/v1/limits/api/overrides/acme", "").want(204)
	s.eventuallyLimit("api", "u1", 10)
	s.call("DELETE", "/v1/limits/api/overrides/acme", "").problem(404, "not_found")
	log := decoded[client.AuditList](s.call("GET", "/v1/audit?tenant=acme&limit=100", "").want(200))
	lines := map[string]int{}
	for _, line := range log.Items {
		lines[line.Action]++
	}
	assert.True(t, lines["override.put"] == 4 && lines["override.delete"] == 2, lines)
}

func TestOverride_ThatDoesNotFit_RefusedWithItsField(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limitNamed("tenant", `{"per":["tenant"],"kind":"token_bucket","rate":"10/min","costs":[{"route":"/x","cost":5}]}`)
	s.limitNamed("shared", `{"per":["ip"],"kind":"token_bucket","rate":"10/min"}`)
	s.limitNamed("window", `{"per":["tenant"],"kind":"fixed_window","rate":"10/month"}`)
	s.limitNamed("slots", `{"per":["tenant"],"kind":"concurrency","burst":3}`)
	for path, bodies := range map[string][][2]string{
		"shared/overrides/acme":    {{`{"rate":"5/s"}`, "rule"}},
		"tenant/overrides/acme/u1": {{`{"rate":"5/s"}`, "subject"}},
		"tenant/overrides/acme": {
			{`{}`, "rate"},
			{`{"rate":"x"}`, "rate"},
			{`{"rate":"10/month"}`, "rate"},
			{`{"rate":"5/s","burst":4}`, "burst"},
			{`{"rate":"5/s","burst":0}`, "burst"},
			{`{"rate":"5/s","expires_at":"2020-01-01T00:00:00Z"}`, "expires_at"},
			{`{"rate":"5/s","burst":9007199254740991}`, "burst"},
		},
		"window/overrides/acme": {{`{"rate":"5/month","burst":6}`, "burst"}},
		"slots/overrides/acme":  {{`{"rate":"5/s"}`, "rate"}, {`{"burst":20000}`, "burst"}, {`{}`, "burst"}},
	} {
		for _, b := range bodies {
			a := s.call("PUT", "/v1/limits/"+path, b[0]).problem(400, "invalid_argument")
			assert.True(t, len(a.Errors) != 0 && a.Errors[0].Field == b[1],
				"%s %s names %+v, want %s", path, b[0], a.Errors, b[1])
		}
	}
	for path, field := range map[string]string{"*": "tenant", "acme*": "tenant", "acme/*": "subject", "acme/u*": "subject", "*/*": "tenant"} {
		a := s.call("PUT", "/v1/limits/tenant/overrides/"+path, `{"rate":"5/s"}`).problem(400, "invalid_argument")
		assert.True(t, len(a.Errors) == 1 && a.Errors[0].Field == field && a.Errors[0].Message == mustNotBePattern,
			"%s: %+v", path, a.Errors)
	}
	s.call("PUT", "/v1/limits/none/overrides/acme", `{"rate":"5/s"}`).problem(404, "not_found")
	s.call("PUT", "/v1/limits/tenant/overrides/nobody", `{"rate":"5/s"}`).problem(404, "tenant_not_found")
	s.call("PUT", "/v1/limits/slots/overrides/acme", `{"burst":1}`).want(201)
	s.eventually("one lease at a time", func() bool {
		a := s.call("POST", "/v1/leases", `{"tenant":"acme","rule":"slots","dry_run":true}`).want(200, 404) // 404 until the server knows the limit
		var lease client.LeaseAnswer
		if a.status == 200 {
			a.into(&lease)
		}
		return lease.Limit == 1
	})
	s.call("POST", "/v1/leases", `{"tenant":"acme","rule":"slots"}`).want(201)
	s.call("POST", "/v1/leases", `{"tenant":"acme","rule":"slots"}`).problem(429, "rate_limited")
}

func TestOverride_OfPlansLimit_GoesWithTheName(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limitNamed("api", `{"per":["tenant"],"kind":"token_bucket","rate":"10/min"}`)
	const allowances = `"allowances":[{"meter":"calls","amount":100,"every":"month","anchor":"calendar"}]`
	s.call("PUT", "/v1/plans/pro", `{`+allowances+`,"limits":[{"rule":"api","per":["tenant"],"kind":"fixed_window","rate":"30/min"},{"rule":"own","per":["tenant"],"kind":"token_bucket","rate":"8/s"}]}`).want(201)
	s.call("PUT", "/v1/limits/own/overrides/acme", `{"rate":"5/s"}`).problem(404, "not_found")
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"pro"}`).want(200)
	s.call("PUT", "/v1/limits/api/overrides/acme", `{"rate":"31/min","burst":32}`).problem(400, "invalid_argument") // a window cannot have another burst
	s.call("PUT", "/v1/limits/api/overrides/acme", `{"rate":"31/min"}`).want(201)
	s.call("PUT", "/v1/limits/own/overrides/acme", `{"rate":"5/s"}`).want(201)
	s.eventuallyLimit("api", "u1", 31)
	s.eventuallyLimit("own", "u1", 5)

	l := decoded[client.Limit](s.call("GET", "/v1/limits/own?plan=pro&explain=1&tenant=acme", "").want(200))
	assert.True(t, l.Rate == "8/s" && l.Explain.Capacity == 5 && l.Explain.Override.Rate == "5/s" &&
		l.Explain.Override.Tenant == "acme", l.Explain)
	s.call("GET", "/v1/limits/own?plan=pro", "").want(200).into(&l)
	s.call("GET", "/v1/limits/own?plan=basic", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/own?plan=none", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/own", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/api?subject=u1", "").problem(400, "invalid_argument")
	window := decoded[client.Limit](s.call("GET", "/v1/limits/api?plan=pro&explain=1", "").want(200))
	assert.True(t, window.Kind == "fixed_window" && window.Explain.Capacity == 30 && window.Explain.Override.Rate == "",
		window)

	// The general limit is deleted. Its override stays, because the plan has a limit of the same name. After the
	// plan's limits are deleted, their overrides are deleted, too.
	s.call("DELETE", "/v1/limits/api", "").want(204)
	s.call("GET", "/v1/limits/api/overrides/acme", "").want(200)
	s.call("PUT", "/v1/plans/pro", `{`+allowances+`}`).want(200)
	s.call("GET", "/v1/limits/api/overrides/acme", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/own/overrides/acme", "").problem(404, "not_found")
	s.limitNamed("api", `{"per":["tenant"],"kind":"token_bucket","rate":"10/min"}`)
	s.eventuallyLimit("api", "u1", 10)
	s.call("PUT", "/v1/limits/api/overrides/acme", `{"rate":"11/min"}`).want(201)
	s.eventuallyLimit("api", "u1", 11)
	s.call("DELETE", "/v1/limits/api", "").want(204)
	s.limitNamed("api", `{"per":["tenant"],"kind":"token_bucket","rate":"10/min"}`)
	s.eventuallyLimit("api", "u1", 10)
	s.call("GET", "/v1/limits/api/overrides/acme", "").problem(404, "not_found")
}
