package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

func TestChargeLimits_ChargedAndRefunded(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"5/day"}`)
	before := s.remaining("acme", "calls")
	charge := func(body string, extra ...string) *answer { return s.call("POST", "/v1/limits/charge", body, extra...) }
	var first, again client.ChargeAnswer
	a := charge(`{"tenant":"acme","subject":"u","route":"/x","ip":"192.0.2.1","method":"GET","cost":2,"rules":["r0"]}`).want(200)
	a.into(&first)
	assert.True(t, first.Allowed && first.ChargeID != "" && len(first.Limits) == 1 && first.Limits[0].Remaining == 3,
		"%s", a.body)
	assert.True(t, a.header.Get("RateLimit-Policy") == `"r0";q=5;w=86400` && strings.HasPrefix(a.header.Get("RateLimit"), `"r0";r=3;t=`),
		a.header)
	const keyed = `{"tenant":"acme","cost":2}`
	charge(keyed, headerIdempotencyKey, "k").want(200).into(&first)
	a = charge(keyed, headerIdempotencyKey, "k").want(200)
	if a.into(&again); a.header.Get(headerReplayed) != "true" || again.ChargeID != first.ChargeID || again.Limits[0].Remaining != 1 {
		t.Errorf("%v %s", a.header, a.body)
	}
	charge(`{"tenant":"acme","cost":3}`, headerIdempotencyKey, "k").problem(422, "idempotency_key_reused")
	p := charge(`{"tenant":"acme","cost":2}`).problem(429, "rate_limited")
	assert.True(t, len(p.ViolatedPolicies) == 1 && p.RetryAfterMs >= 1, p)
	charge(`{"tenant":"acme","cost":6}`).problem(422, "cost_exceeds_capacity")
	charge(`{"tenant":"nobody"}`).problem(404, "tenant_not_found")
	charge(`{"tenant":"acme","rules":["r9"]}`).problem(404, "not_found")
	charge(`{"tenant":"acme","cost":0}`).refused("cost")
	a = charge(`{"tenant":"acme","dry_run":true}`).want(200)
	assert.True(t, strings.Contains(string(a.body), `"dry_run":true`) && !strings.Contains(string(a.body), "charge_id"), "%s", a.body)
	refund := func(id string) *answer {
		return s.call("POST", "/v1/limits/charge/refund", fmt.Sprintf(`{"charge_id":%q}`, id))
	}
	for i := range 2 {
		var done client.ChargeRefundAnswer
		a := refund(first.ChargeID).want(200)
		if a.into(&done); done.Refunded != (i == 0) || done.Refunded && done.Limits[0].Remaining != 3 {
			t.Errorf("refund %d: %s", i, a.body)
		}
	}
	refund(first.ChargeID+"A").problem(404, "charge_not_found")
	refund("x").problem(404, "charge_not_found")
	refund("").refused("charge_id")
	mine := s.newKey(`{"name":"n","scopes":["use"],"tenant":"mine"}`)
	s.as(mine, "POST", "/v1/limits/charge/refund", fmt.Sprintf(`{"charge_id":%q}`, first.ChargeID)).problem(403, "forbidden")
	assert.Equal(t, before, s.remaining("acme", "calls"), "a charge of limits takes no units")
}

// TestChargeLimits_AfterTheFact_OwesUpToItsDebt charges costs that are known only after the work. The limit is ten
// tokens a minute with a debt of 20.
func TestChargeLimits_AfterTheFact_OwesUpToItsDebt(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"10/min","debt":20}`, `{"per":["tenant"],"kind":"fixed_window","rate":"50/day"}`)
	state := func() (out client.LimitState) {
		s.call("GET", "/v1/limits/r0/state?tenant=acme", "").want(200).into(&out)
		return out
	}
	late := func(cost int, extra ...string) (out client.ChargeAnswer) {
		s.call("POST", "/v1/limits/charge", fmt.Sprintf(`{"tenant":"acme","cost":%d,"after_the_fact":true}`, cost), extra...).want(200).into(&out)
		return out
	}
	dry := s.call("POST", "/v1/limits/charge", `{"tenant":"acme","cost":1000,"after_the_fact":true,"dry_run":true}`).want(200)
	assert.NotContains(t, string(dry.body), "charged", "%s", dry.body)
	first := late(25, headerIdempotencyKey, "k")
	v := first.Limits[0]
	assert.True(t, v.Allowed && v.Remaining == 0 && v.Charged != nil && *v.Charged == 25 && *first.Limits[1].Charged == 25 &&
		first.ChargeID != "", first)
	if got := state(); got.Owed != 15 || got.Remaining != 0 || got.NextAfterMs < 95_000 || got.NextAfterMs > 96_000 {
		t.Errorf("%+v, want 15 owed, and one more in 96 s", got)
	}
	p := s.call("POST", "/v1/limits/charge", `{"tenant":"acme"}`).problem(429, "rate_limited")
	assert.True(t, p.RetryAfterMs >= 95_000 && p.RetryAfterMs <= 96_000, "passes in %d ms, want 96 s", p.RetryAfterMs)
	again := late(25, headerIdempotencyKey, "k")
	assert.True(t, again.ChargeID == first.ChargeID && state().Owed <= 15, again)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","cost":25}`, headerIdempotencyKey, "k").problem(422, "idempotency_key_reused")
	if all := late(1_000_000_000); *all.Limits[0].Charged > 6 || *all.Limits[0].Charged < 5 || *all.Limits[1].Charged != 25 {
		t.Errorf("%+v, want what is left of the debt and of the window", all)
	}
	s.call("POST", "/v1/limits/charge/refund", fmt.Sprintf(`{"charge_id":%q}`, first.ChargeID)).want(200)
	got := state()
	assert.True(t, got.Owed == 0 && got.Remaining <= 6 && got.Remaining >= 5, "%+v after the refund of 25 of 30", got)
	s.call("PUT", "/v1/limits/leases", `{"per":["tenant"],"kind":"concurrency","burst":3,"debt":1}`).refused("debt")
	s.call("PUT", "/v1/limits/exact", `{"per":["tenant"],"kind":"token_bucket","rate":"7/day","debt":104243}`).refused("debt")
	s.call("PUT", "/v1/limits/below", `{"per":["tenant"],"kind":"token_bucket","rate":"7/day","debt":-1}`).refused("debt")
}

// TestSettleCharge_TheCostCounts charges an estimate and settles it. The limits are 100 tokens a day with a debt of 20,
// 3 tokens for each request to /export, and a window.
func TestSettleCharge_TheCostCounts(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"100/day","debt":20,"costs":[{"route":"/export","cost":3}]}`,
		`{"per":["tenant"],"kind":"fixed_window","rate":"1000/day"}`)
	charge := func(body string) string {
		return decoded[client.ChargeAnswer](s.call("POST", "/v1/limits/charge", body).want(200)).ChargeID
	}
	settle := func(id string, cost int64) *answer {
		return s.call("POST", "/v1/limits/charge/settle", fmt.Sprintf(`{"charge_id":%q,"cost":%d}`, id, cost))
	}
	left := func(a *answer) (n [2]int64) {
		for i, v := range decoded[client.ChargeSettleAnswer](a.want(200)).Limits {
			n[i] = v.Remaining
		}
		return n
	}
	first := charge(`{"tenant":"acme","cost":50}`)
	assert.Equal(t, [2]int64{80, 980}, left(settle(first, 20)), "an estimate of 50, of which 20 were used")
	for range 2 {
		assert.JSONEq(t, `{"settled":false,"limits":[]}`, string(settle(first, 70).want(200).body))
	}
	again := s.call("POST", "/v1/limits/charge/refund", fmt.Sprintf(`{"charge_id":%q}`, first)).want(200)
	assert.JSONEq(t, `{"refunded":false,"limits":[]}`, string(again.body), "a refund after the settlement")
	export := charge(`{"tenant":"acme","route":"/export","cost":2}`)
	assert.Equal(t, [2]int64{65, 975}, left(settle(export, 5)), "five exports instead of two")
	none := charge(`{"tenant":"acme","cost":65}`)
	assert.Equal(t, [2]int64{65, 975}, left(settle(none, 0)), "a cost of 0 is a refund")
	much := charge(`{"tenant":"acme"}`)
	assert.Equal(t, [2]int64{0, 0}, left(settle(much, 1<<53-1)), "no limit stops a settlement")
	state := decoded[client.LimitState](s.call("GET", "/v1/limits/r0/state?tenant=acme", "").want(200))
	assert.Equal(t, int64(20), state.Owed, "the debt bounds it")
	settle(first+"A", 1).problem(404, "charge_not_found")
	settle(chargeToRefund, 1).want(200) // of the version before, and long ago
	for body, field := range map[string]string{
		fmt.Sprintf(`{"charge_id":%q}`, first): "cost", `{"cost":1}`: "charge_id", fmt.Sprintf(`{"charge_id":%q,"cost":-1}`, first): "cost",
		fmt.Sprintf(`{"charge_id":%q,"cost":9007199254740992}`, first): "cost", fmt.Sprintf(`{"charge_id":%q,"cost":1.5}`, first): "cost",
	} {
		s.call("POST", "/v1/limits/charge/settle", body).refused(field)
	}
	mine := s.newKey(`{"name":"n","scopes":["use"],"tenant":"mine"}`)
	s.as(mine, "POST", "/v1/limits/charge/settle", fmt.Sprintf(`{"charge_id":%q,"cost":1}`, first)).problem(403, "forbidden")
}

// With X-Quota-Mode: limit, a request from a gateway charges limits and no balance. It debits no units and needs no
// meter.
func TestAuthorize_ModeLimit_ChargesLimitsOnly(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"10/day","match":{"route":"/search"}}`)
	before := s.remaining("acme", "calls")
	for i, gateway := range gatewayNames() {
		ask := func() *answer {
			return s.do(s.ask(gateway, "/search", forwarded.HeaderMode, "limit", forwarded.HeaderMeter, "", forwarded.HeaderAmount, "2", headerIdempotencyKey, gateway))
		}
		a := ask().passes()
		if want := fmt.Sprintf(`"r0";r=%d;t=`, 8-2*i); !strings.HasPrefix(a.header.Get("RateLimit"), want) || a.header.Get(forwarded.HeaderOperation) != "" {
			t.Errorf("%s: %v, want %s", gateway, a.header, want)
		}
	}
	s.do(s.ask("nginx", "/", forwarded.HeaderMode, "limit")).passes().lacks(forwarded.HeaderCharge)
	s.do(s.ask("nginx", "/search", forwarded.HeaderMode, "check")).passes().lacks(forwarded.HeaderCharge)
	s.do(s.ask("nginx", "/search", forwarded.HeaderMode, "limit")).passes()
	s.do(s.ask("nginx", "/search", forwarded.HeaderMode, "limit")).passes()
	s.do(s.ask("nginx", "/search", forwarded.HeaderMode, "limit")).refusedTo("nginx", 429, "rate_limited")
	s.do(s.ask("traefik", "/", forwarded.HeaderMode, "limit", forwarded.HeaderTenant, "nobody")).refusedTo("traefik", 404, "tenant_not_found")
	assert.Equal(t, before, s.remaining("acme", "calls"), "units are left")
}

// lacks fails the test if the answer has a header with this name.
func (a *answer) lacks(header string) {
	a.t.Helper()
	assert.Empty(a.t, a.header.Get(header), "%s", header)
}

// The application behind a gateway can refund the charge of the gateway.
func TestAuthorize_ModeLimit_ChargeCanBeRefunded(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant","subject"],"kind":"token_bucket","rate":"5/day"}`)
	backend := s.newKey(`{"name":"app","scopes":["use"],"tenant":"acme"}`)
	for _, gateway := range gatewayNames() {
		a := s.do(s.ask(gateway, "/search", forwarded.HeaderMode, "limit", forwarded.HeaderAmount, "3", forwarded.HeaderSubject, gateway)).passes()
		id := a.header.Get(forwarded.HeaderCharge)
		for i := range 2 {
			var done client.ChargeRefundAnswer
			b := s.as(backend, "POST", "/v1/limits/charge/refund", fmt.Sprintf(`{"charge_id":%q}`, id)).want(200)
			if b.into(&done); done.Refunded != (i == 0) || i == 0 && done.Limits[0].Remaining != 5 {
				t.Errorf("%s, refund %d of %q: %s", gateway, i, id, b.body)
			}
		}
		denied := s.do(s.ask(gateway, "/search", forwarded.HeaderMode, "limit", forwarded.HeaderAmount, "6", forwarded.HeaderSubject, gateway))
		denied.refusedTo(gateway, 422, "cost_exceeds_capacity")
		denied.lacks(forwarded.HeaderCharge)
	}
}

func TestLimitState_ShowsBucket(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant","subject"],"kind":"token_bucket","rate":"1/min","burst":5}`, `{"per":["ip"],"kind":"fixed_window","rate":"9/day"}`,
		`{"per":["tenant","route"],"kind":"token_bucket","rate":"4/day","match":{"route":"/v1/**"}}`, `{"per":["tenant"],"kind":"concurrency","burst":3}`)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","subject":"u","ip":"192.0.2.1","route":"/v1/x","cost":2}`).want(200)
	s.send("/v1/leases", "l", `{"rule":"r3","tenant":"acme"}`).want(201)
	for query, want := range map[string]client.LimitState{
		"r0/state?tenant=acme&subject=u":          {Rule: "r0", Kind: "token_bucket", Remaining: 3, Limit: 5, NextAfterMs: 60_000, ResetAfterMs: 120_000},
		"r0/state?tenant=acme&subject=other":      {Rule: "r0", Kind: "token_bucket", Remaining: 5, Limit: 5},
		"r1/state?ip=::ffff:192.0.2.1":            {Rule: "r1", Kind: "fixed_window", Remaining: 7, Limit: 9, NextAfterMs: -1, ResetAfterMs: -1},
		"r2/state?tenant=acme&route=/v1/anything": {Rule: "r2", Kind: "token_bucket", Remaining: 2, Limit: 4, NextAfterMs: -1, ResetAfterMs: -1},
		"r2/state?tenant=acme":                    {Rule: "r2", Kind: "token_bucket", Remaining: 2, Limit: 4, NextAfterMs: -1, ResetAfterMs: -1},
		"r3/state?tenant=acme":                    {Rule: "r3", Kind: "concurrency", Remaining: 2, Limit: 3},
	} {
		for range 2 { // reading the state charges nothing
			var got client.LimitState
			a := s.call("GET", "/v1/limits/"+query, "").want(200)
			a.into(&got)
			about := func(got, want int64) bool {
				return want < 0 && got > 0 || got <= want && got > want-5000 || got == want
			}
			assert.True(t, about(got.NextAfterMs, want.NextAfterMs) && about(got.ResetAfterMs, want.ResetAfterMs),
				"%s: %s", query, a.body)
			got.NextAfterMs, got.ResetAfterMs = want.NextAfterMs, want.ResetAfterMs
			assert.True(t, got == want, "%s: %s", query, a.body)
		}
	}
	for query, field := range map[string]string{
		"r0/state?tenant=acme": "subject", "r1/state?ip=192.0.2.1&tenant=acme": "tenant", "r1/state?ip=x": "ip", "r2/state?tenant=acme&route=/other": "route",
		"r2/state?tenant=acme&route=": "route", "r0/state?tenant=a%20b&subject=u": "tenant", "r0/state?x=1": "x",
	} {
		s.call("GET", "/v1/limits/"+query, "").refused(field)
	}
	s.call("GET", "/v1/limits/r9/state?tenant=acme", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/r3/state?tenant=nobody", "").problem(404, "tenant_not_found")
}

func TestLimitState_Override_ShowsItsNumbers(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant"],"kind":"token_bucket","rate":"5/day"}`)
	s.call("PUT", "/v1/limits/r0/overrides/acme", `{"rate":"9/day"}`).want(201)
	s.call("POST", "/v1/limits/charge", `{"tenant":"acme","cost":2}`).want(200)
	got := decoded[client.LimitState](s.call("GET", "/v1/limits/r0/state?tenant=acme", "").want(200))
	assert.True(t, got.Limit == 9 && got.Remaining == 7, "%+v, want 7 of 9", got)
}

// TestLimit_Ban_IsShownAndEndsByAReset: two denials of a subject ban this subject and no other subject.
func TestLimit_Ban_IsShownAndEndsByAReset(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.rules(`{"per":["tenant","subject"],"kind":"token_bucket","rate":"5/day","ban":{"after":2,"within":"1m","for":"10m"}}`)
	charge := func(subject string, cost int) *answer {
		return s.call("POST", "/v1/limits/charge", fmt.Sprintf(`{"tenant":"acme","subject":%q,"cost":%d}`, subject, cost))
	}
	charge("u", 4).want(200)
	p := charge("u", 2).problem(429, "rate_limited")
	assert.NotContains(t, p.Detail, "banned", "the first denial")
	charge("u", 6).problem(422, "cost_exceeds_capacity") // it does not count for the ban: waiting would not help
	for i := range 3 {
		p := charge("u", 2-i%2).problem(429, "rate_limited")
		assert.Contains(t, p.Detail, "banned by r0", "while banned")
		assert.False(t, i == 1 && (p.RetryAfterMs < 599_000 || p.RetryAfterMs > 600_000), "while banned: %+v", p)
	}
	var checked client.CheckAnswer
	s.call("POST", "/v1/check", `{"tenant":"acme","subject":"u","items":[{"meter":"calls","amount":1}]}`).want(200).into(&checked)
	assert.True(t, !checked.Allowed && checked.Code == "rate_limited" && checked.Limits[0].BannedMs >= 599_000,
		"a check: %+v", checked)
	state := decoded[client.LimitState](s.call("GET", "/v1/limits/r0/state?tenant=acme&subject=u", "").want(200))
	assert.True(t, state.Remaining == 1 && state.BannedMs >= 599_000, state)
	charge("other", 5).want(200)
	s.call("POST", "/v1/limits/r0/reset", `{"tenant":"acme","subject":"u"}`).want(200)
	charge("u", 5).want(200)
	s.call("GET", "/v1/limits/r0?explain=1", "").want(200).into(new(client.Limit))
	for body, field := range map[string]string{
		`"ban":{}`: "ban.after", `"ban":{"after":1001,"within":"1m","for":"1m"}`: "ban.after", `"ban":{"after":1,"within":"1","for":"1m"}`: "ban.within",
		`"ban":{"after":1,"within":"1m"}`: "ban.for", `"ban":{"after":1,"within":"1m","for":"1m","until":"x"}`: "ban.until",
	} {
		s.call("PUT", "/v1/limits/bad", `{"per":["tenant"],"kind":"token_bucket","rate":"5/day",`+body+`}`).refused(field)
	}
}
