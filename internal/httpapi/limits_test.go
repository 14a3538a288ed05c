package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestConsume_RateLimited_OneDecision: an alert compares denials with decisions, so each request must count as one
// decision. The headers of a denial also have the remaining units of the balance. Reading the balance must not count
// as a second decision.
func TestConsume_RateLimited_OneDecision(t *testing.T) {
	t.Parallel()
	s := newService(t).limited()
	const demand = `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"route":"/search"}`
	for i, want := range []int{200, 200, 429, 429, 429} {
		a := s.send("/v1/consume", fmt.Sprint("k", i), demand).want(want)
		assert.True(t, a.number(headerQuotaRemaining) == int64(max(8, 9-i)), "request %d: %v", i, a.header)
	}
	gateway := []string{forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "calls", "X-Forwarded-Uri", "/search"}
	a := s.call("GET", "/v1/authorize/traefik", "", gateway...).want(429)
	assert.True(t, a.number(headerQuotaRemaining) == 8, a.header)
	allowed, denied := s.decisions("search", "allow"), s.decisions("search", "deny")
	assert.True(t, allowed == 2 && denied == 4, "%v allowed and %v denied; want 2 and 4", allowed, denied)
}

// TestConsume_RefundedTokensAreShown: if the balance denies a request, its tokens are refunded, and the headers show
// the refunded tokens. A client that sees no remaining tokens until tomorrow would send no requests until tomorrow.
func TestConsume_RefundedTokensAreShown(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for kind, rate := range map[string]string{
		"token_bucket": "2/day", "leaky_bucket": "2/day", "fixed_window": "2/day", "sliding_window": "2/day", "sliding_log": "2/day",
	} {
		s.call("PUT", "/v1/limits/"+kind, fmt.Sprintf(`{"per":["tenant"],"kind":%q,"rate":%q,"match":{"route":"/%s"}}`, kind, rate, kind)).want(201)
	}
	s.eventually("the snapshot has the limits", func() bool { return len(s.server.catalog.Snapshot().Limits) == 5 })
	for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
		demand := func(amount int) string {
			return fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"route":"/%s"}`, amount, kind)
		}
		left := func(a *answer) int64 { _, r, _ := a.limit(); return r }
		a := s.send("/v1/consume", kind, demand(1)).want(200)
		assert.EqualValues(t, 1, left(a), "%s: charged: %v", kind, a.header)
		a = s.send("/v1/consume", kind+"-refused", demand(100)).want(402, 429)
		assert.EqualValues(t, 1, left(a), "%s: refused by the balance: %v", kind, a.header)
		a = s.send("/v1/consume", kind, demand(1)).want(200)
		assert.True(t, left(a) == 1 && a.header.Get(headerReplayed) != "", "%s: a replay: %v", kind, a.header)
	}
}

// decisions returns how many decisions of the limit named rule had this outcome.
func (s *service) decisions(rule, outcome string) float64 {
	s.t.Helper()
	families, err := s.measured.Gather()
	s.check(err)
	var n float64
	for _, f := range families {
		if f.GetName() != "quotasvc_limit_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if labels := labelsOf(m); labels["rule"] == rule && labels["outcome"] == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func labelsOf(m *dto.Metric) prometheus.Labels {
	labels := prometheus.Labels{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// TestConsume_RegionShare: a decision uses the share of this region. The API answers with the whole limit, which all
// regions share.
func TestConsume_RegionShare(t *testing.T) {
	t.Parallel()
	const demand = `{"tenant":"acme","items":[{"meter":"calls","amount":1}]}`
	for kind, tc := range map[string]struct {
		limit, policy string
		capacity      int
	}{
		"token_bucket":   {`"rate":"100/h","burst":10`, `"region";q=3;w=360`, 3},
		"leaky_bucket":   {`"rate":"20/h","burst":10`, `"region";q=3;w=1800`, 3},
		"fixed_window":   {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"sliding_window": {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"sliding_log":    {`"rate":"10/day"`, `"region";q=3;w=86400`, 3},
		"concurrency":    {`"burst":10`, `"region";q=3;qu="concurrent-requests"`, 3},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newService(t).catalogue()
			body := fmt.Sprintf(`{"per":["tenant"],"kind":%q,%s,"region_share":30}`, kind, tc.limit)
			stored := decoded[client.Limit](s.call("PUT", "/v1/limits/region", body).want(201))
			assert.True(t, stored.RegionShare == 30 && stored.Burst == 10, "stored: %+v", stored)
			s.eventually("the snapshot has the limit", func() bool { return len(s.server.catalog.Snapshot().Limits) == 1 })
			ask, admitted := func(key string) *answer { return s.send("/v1/consume", key, demand) }, 200
			if kind == "concurrency" {
				ask = func(key string) *answer { return s.send("/v1/leases", key, `{"rule":"region","tenant":"acme"}`) }
				admitted = 201
			}
			for i := range tc.capacity {
				a := ask(fmt.Sprint("k", i)).want(admitted)
				assert.True(t, a.header.Get("RateLimit-Policy") == tc.policy, "%v; want %s", a.header, tc.policy)
			}
			ask("beyond").problem(429, "rate_limited")
			got := decoded[client.Limit](s.call("GET", "/v1/limits/region?explain=1", "").want(200))
			assert.True(t, got.RegionShare == 30 && got.Explain.Capacity == int64(tc.capacity), got)
		})
	}
}

func (s *service) limitNamed(rule, body string) {
	s.t.Helper()
	s.call("PUT", "/v1/limits/"+rule, body).want(200, 201)
}

func TestGetLimit_Explain(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, c := range []struct {
		name, body string
		check      func(e *client.LimitExplanation) bool
	}{
		{"bucket", `{"per":["tenant"],"kind":"token_bucket","rate":"7/s","burst":20}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 20 && e.UnitsPerToken == 1_000_000 && e.UnitsPerMicrosecond == 7 && e.FirstSecond == 27 && e.MostPerPeriod == 27 &&
				e.PerSecond == 7 && e.RedisAway.CapacityEach == 20 && e.RedisAway.Holders == 1 && strings.Contains(e.Summary, "20 at once, then 7/s")
		}},
		{"queue", `{"per":["tenant"],"kind":"leaky_bucket","rate":"2/s","burst":10,"on_backend_error":"open"}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 10 && e.PerSecond == 2 && e.RedisAway.OnBackendError == "open" && e.RedisAway.CapacityEach == 0 && e.RedisAway.Holders == 0
		}},
		{"daily", `{"per":["tenant","subject"],"kind":"fixed_window","rate":"100/day","timezone":"Europe/Berlin"}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 100 && e.MostPerPeriod == 200 && e.Window.End.After(e.Window.Start) && e.UnitsPerToken == 0
		}},
		{"sliding", `{"per":["tenant"],"kind":"sliding_window","rate":"100/min"}`, func(e *client.LimitExplanation) bool { return e.MostPerPeriod == 200 }},
		{"log", `{"per":["ip"],"kind":"sliding_log","rate":"5/h"}`, func(e *client.LimitExplanation) bool { return e.MostPerPeriod == 5 && e.FirstSecond == 5 }},
		{"jobs", `{"per":["tenant"],"kind":"concurrency","burst":3}`, func(e *client.LimitExplanation) bool {
			return e.Capacity == 3 && e.LeaseTTLSeconds == 60 && e.PerSecond == 0
		}},
	} {
		s.limitNamed(c.name, c.body)
		var plain, told client.Limit
		s.call("GET", "/v1/limits/"+c.name, "").want(200).into(&plain)
		assert.Empty(t, plain.Explain.Summary, "%s explains itself unasked: %+v", c.name, plain.Explain)
		s.call("GET", "/v1/limits/"+c.name+"?explain=1", "").want(200).into(&told)
		e := &told.Explain
		assert.False(t, e.Summary == "" || e.KeptSeconds < 1 || e.RedisAway.Replicas != 1 ||
			c.name != "jobs" && (e.BytesPerBucket < 100 || e.BytesPerBucket > 400) || !c.check(e), "%s: %+v", c.name, e)
	}
	// The plan has the limit own, which is no general limit. It also has the limit bucket, which replaces the general
	// limit of the same name.
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"calendar"}],"limits":[
		{"rule":"own","per":["tenant"],"kind":"token_bucket","rate":"3/s"},{"rule":"bucket","per":["tenant"],"kind":"token_bucket","rate":"4/s"}],"apply":"now"}`).want(200, 201)
	s.eventually("the plan is known", func() bool {
		plan := s.server.catalog.Snapshot().Plans["basic"]
		return plan != nil && len(plan.Limits) == 2
	})
	for name, capacity := range map[string]int64{"own": 3, "bucket": 4, "daily": 100} {
		var told client.Limit
		a := s.call("GET", "/v1/limits/"+name+"?explain=1&tenant=acme", "").want(200)
		a.into(&told)
		assert.True(t, told.Explain.Capacity == capacity && !told.CreatedAt.IsZero(), "%s: %s", name, a.body)
	}
	p := s.call("GET", "/v1/limits/own?explain=1", "").problem(404, "not_found")
	assert.True(t, strings.Contains(p.Detail, "plan=") && strings.Contains(p.Detail, "tenant="), p)
	s.call("GET", "/v1/limits/own?explain=1&tenant=nobody", "").problem(404, "tenant_not_found")
	s.call("GET", "/v1/limits/bucket?explain=2", "").refused("explain")
	s.call("GET", "/v1/limits/bucket?tenant=acme", "").refused("tenant")
	s.call("GET", "/v1/limits/none?explain=1", "").problem(404, "not_found")
}

func TestResetLimit_FillsOneBucket(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limitNamed("each", `{"per":["tenant","subject"],"kind":"token_bucket","rate":"1/day"}`)
	consume := func(key, subject string) *answer {
		return s.send("/v1/consume", key, fmt.Sprintf(`{"tenant":"acme","subject":%q,"items":[{"meter":"calls","amount":1}]}`, subject))
	}
	s.eventually("the limit is enforced", func() bool {
		return consume("first", "u1").header.Get("RateLimit") != "" || consume("probe", "u1").status == 429
	})
	for _, subject := range []string{"u1", "u2"} {
		s.eventually("the bucket is empty", func() bool {
			return consume("empty-"+subject, subject).status == 429 || consume("more-"+subject, subject).status == 429
		})
	}
	reset := func(body string) *answer { return s.call("POST", "/v1/limits/each/reset", body) }
	reset(`{"tenant":"acme"}`).refused("subject")
	reset(`{"tenant":"acme","subject":"u1","ip":"192.0.2.1"}`).refused("ip")
	s.call("POST", "/v1/limits/none/reset", `{"tenant":"acme"}`).problem(404, "not_found")
	for i, existed := range []bool{true, false} {
		got := decoded[client.ResetAnswer](reset(`{"tenant":"acme","subject":"u1"}`).want(200))
		assert.True(t, got.Rule == "each" && got.Existed == existed, "reset %d: %+v", i, got)
	}
	consume("after-u1", "u1").want(200)
	consume("after-u2", "u2").problem(429, "rate_limited")
}

// A reset without its line in the audit log would be a change that nobody can see later.
func TestResetLimit_AuditLogCannotBeWritten_NothingReset(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	s := newServiceOn(t, url).catalogue()
	s.limitNamed("each", `{"per":["tenant"],"kind":"token_bucket","rate":"1/day"}`)
	charge := func() int { return s.call("POST", "/v1/limits/charge", `{"tenant":"acme","rules":["each"]}`).status }
	s.eventually("the bucket is empty", func() bool { return charge() == 429 })
	lines := func() int {
		return strings.Count(string(s.call("GET", "/v1/audit?action=limit.reset", "").want(200).body), `"action":"limit.reset"`)
	}
	reset := func() *answer { return s.call("POST", "/v1/limits/each/reset", `{"tenant":"acme"}`) }
	db := testenv.Connect(t, url)
	testenv.Exec(t, db, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space' USING ERRCODE = '53100'; END $$")
	testenv.Exec(t, db, "CREATE TRIGGER no BEFORE INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION no()")
	p := reset().problem(503, "unavailable")
	assert.Contains(t, p.Detail, "was not reset")
	assert.Equal(t, 429, charge(), "after a reset that was refused")
	testenv.Exec(t, db, "DROP TRIGGER no ON audit")
	assert.Zero(t, lines(), "lines about a reset that was refused")
	reset().want(200)
	assert.Equal(t, 1, lines(), "lines")
	assert.Equal(t, 200, charge(), "after the reset")
}

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
	s.call("PUT", "/v1/limits/tenant/overrides/acme*", `{"rate":"5/s"}`).problem(404, "tenant_not_found") // no wildcard
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
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"pro","apply":"now"}`).want(200)
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
	s.call("GET", "/v1/limits/api/overrides/acme", "").want(200) // while the plan's version that has the limit is in force
	s.call("PUT", "/v1/plans/pro", `{`+allowances+`,"apply":"now"}`).want(200)
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
