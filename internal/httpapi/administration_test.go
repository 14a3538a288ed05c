package httpapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

func TestPutMeter_CreateReplaceListDelete(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	var created, replaced, got client.Meter
	s.call("PUT", "/v1/meters/m", `{"unit":"call"}`).want(201).into(&created)
	s.call("PUT", "/v1/meters/m", `{"unit":"token","description":"Tokens\n","denial_replay":true}`).want(200).into(&replaced)
	s.call("GET", "/v1/meters/m", "").want(200).into(&got)
	want := client.Meter{Meter: "m", Unit: "token", Description: "Tokens\n", Kind: "counter", DenialReplay: true, CreatedAt: created.CreatedAt, UpdatedAt: replaced.UpdatedAt}
	assert.Equal(t, want, got)
	s.call("DELETE", "/v1/meters/calls", "").problem(409, "precondition_failed")
	a := s.call("DELETE", "/v1/meters/m", "").want(204)
	assert.Empty(t, a.body, "%s", a.body)
	s.call("DELETE", "/v1/meters/m", "").problem(404, "not_found")
	s.call("GET", "/v1/meters/m", "").problem(404, "not_found")
}

// TestDeleteMeter_RefusedRequestsDoNotCount: requests that were refused because no plan has the meter do not prevent
// the meter's deletion.
func TestDeleteMeter_RefusedRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k", "acme", "other", 1).problem(403, "meter_not_in_plan")
	s.call("DELETE", "/v1/meters/other", "").want(204)
	s.debit("k", "acme", "other", 1).problem(404, "not_found")
}

// TestDeleteMeter_RacesWithUse_OnlyOneWins: while a meter is deleted, refused debits create rows of its balance, and
// a grant opens the balance. At the end, either the meter and the balance exist, or neither exists. An accepted grant
// is not lost.
func TestDeleteMeter_RacesWithUse_OnlyOneWins(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for round := range 20 {
		meter := fmt.Sprint("m", round)
		s.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
		var granted, debited, deleted *answer
		var all sync.WaitGroup
		all.Go(func() { debited = s.debit(meter+"-debit", "acme", meter, 1).want(200, 403, 404) })
		all.Go(func() {
			granted = s.call("POST", "/v1/tenants/acme/grants", fmt.Sprintf(`{"meter":%q,"amount":5,"source":"topup"}`, meter), headerIdempotencyKey, meter).want(201, 404)
		})
		all.Go(func() {
			for range 4 { // several tries, so that deletes coincide with each step of the other requests
				if deleted = s.call("DELETE", "/v1/meters/"+meter, "").want(204, 409); deleted.status == 204 {
					break
				}
			}
		})
		all.Wait()
		var rows, meters int
		s.check(s.pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM balances WHERE meter = $1), (SELECT count(*) FROM meters WHERE meter = $1)", meter).
			Scan(&rows, &meters))
		left := int64(5)
		if debited.status == 200 {
			left--
		}
		if kept := granted.status == 201; kept != (deleted.status == 409) || kept != (rows == 1) || kept != (meters == 1) || kept && s.remaining("acme", meter) != left {
			t.Errorf("grant %d, debit %d, delete %d: %d balances of %d meters", granted.status, debited.status, deleted.status, rows, meters)
		}
	}
}

func TestPutPlan_NewVersionOnlyOnChange(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const one = `{"allowances":[{"meter":"calls","amount":5,"every":"month","anchor":"tenant"}],
		"limits":[{"rule":"r","per":["tenant"],"match":{"route":"/x"},"kind":"token_bucket","rate":"5/30s"}]}`
	var first, second, third, got client.Plan
	s.call("PUT", "/v1/plans/p", one).want(201).into(&first)
	s.call("PUT", "/v1/plans/p", one).want(200).into(&second)
	s.call("PUT", "/v1/plans/p", strings.Replace(one, `"amount":5`, `"amount":6`, 1)).want(200).into(&third)
	s.call("GET", "/v1/plans/p", "").want(200).into(&got)
	want := client.Plan{
		Plan: "p", Version: 2, CreatedAt: got.CreatedAt, Apply: client.PlanApplyNextPeriod,
		Allowances: []client.Allowance{{Meter: "calls", Amount: 6, Every: "month", Anchor: "tenant"}},
		Limits: []client.PlanLimit{{
			Rule: "r", Per: []client.LimitPer{"tenant"}, Match: client.LimitMatch{Route: "/x"}, Kind: "token_bucket", Rate: "5/30s", Burst: 5, Cost: 1,
			CostBy: "request", Counts: "successes", Mode: "enforce", OnBackendError: "local_share", RegionShare: 100,
		}},
	}
	assert.Equal(t, want, got)
	assert.True(t, first.Version == 1 && second.Version == 1 && third.Version == 2,
		"versions %d, %d, %d", first.Version, second.Version, third.Version)
	a := s.call("PUT", "/v1/plans/p", strings.Replace(one, `"calls"`, `"nothing"`, 1))
	p := a.problem(404, "not_found")
	assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "allowances[0].meter", "%s", a.body)
	s.call("PUT", "/v1/plans/p", strings.Replace(one, "5/30s", "5/30fortnights", 1)).refused("limits[0].rate")
	s.call("GET", "/v1/plans/none", "").problem(404, "not_found")
}

func TestPutTenant_CreateReplacePatch(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	var created, replaced, got client.Tenant
	var patched client.TenantChange
	s.call("PUT", "/v1/tenants/t1", `{"plan":"basic","anchor":"2026-01-31T01:00:00.123456789+01:00","timezone":"Europe/Berlin","metadata":{"b":1,"a":[2]}}`).
		want(201).into(&created)
	want := client.Tenant{
		Tenant: "t1", Plan: "basic", PlanVersion: 1, Anchor: time.Date(2026, 1, 31, 0, 0, 0, 123456000, time.UTC), Timezone: "Europe/Berlin", Status: "active",
		Metadata: []byte(`{"a":[2],"b":1}`), Overrides: client.Overrides{}, Version: 1, CreatedAt: created.CreatedAt, UpdatedAt: created.UpdatedAt,
	}
	assert.Equal(t, want, created)
	s.call("PATCH", "/v1/tenants/t1", `{"status":"suspended"}`).want(200).into(&patched)
	changed := client.TenantChange{
		Tenant: "t1", Plan: want.Plan, PlanVersion: 1, Anchor: want.Anchor, Timezone: want.Timezone, Status: "suspended", Metadata: want.Metadata,
		Overrides: client.Overrides{}, Version: 2, CreatedAt: want.CreatedAt, UpdatedAt: patched.UpdatedAt, Before: want,
	}
	assert.Equal(t, changed, patched)
	assert.True(t, patched.UpdatedAt.After(want.UpdatedAt),
		"changed at %s, then at %s", want.UpdatedAt, patched.UpdatedAt)
	s.call("PATCH", "/v1/tenants/t1", `{}`).want(200)
	s.call("PUT", "/v1/tenants/t1", `{"plan":"basic"}`).want(200).into(&replaced)
	s.call("GET", "/v1/tenants/t1", "").want(200).into(&got)
	assert.Equal(t, replaced, got)
	assert.True(t, got.Status == "active" && string(got.Metadata) == "{}", got)
	assert.True(t, got.Timezone == "Europe/Berlin" && got.Pending.Timezone == "UTC", "terms wait: %+v", got)
	for _, method := range []string{"PUT", "PATCH"} {
		a := s.call(method, "/v1/tenants/t1", `{"plan":"nothing"}`)
		p := a.problem(404, "not_found")
		assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "plan", "%s", a.body)
		s.call(method, "/v1/tenants/t1", `{"plan":"basic","timezone":"Mars/Olympus"}`).refused("timezone")
		s.call(method, "/v1/tenants/t1", `{"plan":"basic","timezone":"Local"}`).refused("timezone")
	}
	s.call("PATCH", "/v1/tenants/nobody", `{"status":"active"}`).problem(404, "tenant_not_found")
	s.call("GET", "/v1/tenants/nobody", "").problem(404, "tenant_not_found")
}

func TestPutLimit_CreateReplaceDelete_MustBeEnforceable(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	var got client.Limit
	s.call("PUT", "/v1/limits/r", `{"per":["tenant","subject"],"match":{"meter":"calls"},"kind":"token_bucket","rate":"60/s"}`).want(201).into(&got)
	want := client.Limit{
		Rule: "r", Per: []client.LimitPer{"tenant", "subject"}, Match: client.LimitMatch{Meter: "calls"}, Kind: "token_bucket", Rate: "60/s", Burst: 60, Cost: 1,
		CostBy: "request", Counts: "successes", Mode: "enforce", OnBackendError: "local_share", RegionShare: 100, CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
	}
	assert.Equal(t, want, got)
	s.call("PUT", "/v1/limits/r", `{"per":["tenant"],"kind":"token_bucket","rate":"1/day","burst":7,"cost":3,"mode":"shadow","on_backend_error":"closed"}`).want(200)
	s.call("GET", "/v1/limits/r", "").want(200).into(&got)
	assert.True(t, got.Burst == 7 && got.Cost == 3 && got.Mode == "shadow" && got.OnBackendError == "closed", got)
	for body, field := range map[string]string{
		`{"per":["tenant"],"kind":"token_bucket","rate":"0/s"}`:                          "rate",
		`{"per":["tenant"],"kind":"token_bucket","rate":"1/month"}`:                      "rate",
		`{"per":["tenant"],"kind":"token_bucket","rate":"1/s","cost":2}`:                 "cost",
		`{"per":["tenant","tenant"],"kind":"token_bucket","rate":"1/s"}`:                 "per[1]",
		`{"per":["tenant"],"kind":"token_bucket","rate":"1/s","burst":9007199254740991}`: "burst",
	} {
		s.call("PUT", "/v1/limits/r", body).refused(field)
	}
	a := s.call("PUT", "/v1/limits/r", `{"per":["tenant"],"kind":"token_bucket","rate":"1/s","match":{"meter":"nothing"}}`)
	p := a.problem(404, "not_found")
	assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "match.meter", "%s", a.body)
	s.call("DELETE", "/v1/limits/r", "").want(204)
	s.call("DELETE", "/v1/limits/r", "").problem(404, "not_found")
	s.call("GET", "/v1/limits/r", "").problem(404, "not_found")
}

func TestList_PagesWithoutGapOrRepetition(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for i := range 4 {
		s.call("PUT", fmt.Sprintf("/v1/plans/p%d", i), `{"allowances":[]}`).want(201)
		s.call("PUT", fmt.Sprintf("/v1/limits/l%d", i), `{"per":["tenant"],"kind":"token_bucket","rate":"1/s"}`).want(201)
		s.tenant(fmt.Sprintf("t%d", i))
		s.call("POST", "/v1/tenants/acme/grants", fmt.Sprintf(`{"meter":"credits","amount":1,"source":"promo","grant_id":"g%d"}`, i), headerIdempotencyKey, fmt.Sprint("g", i)).want(201)
	}
	for _, c := range []struct{ path, id, want string }{
		{"/v1/meters?", "meter", "calls credits other"},
		{"/v1/plans?", "plan", "basic p0 p1 p2 p3"},
		{"/v1/tenants?", "tenant", "acme t0 t1 t2 t3"},
		{"/v1/limits?", "rule", "l0 l1 l2 l3"},
		{"/v1/tenants/acme/grants?meter=credits&", "grant_id", "g0 g1 g2 g3"},
		{"/v1/tenants/acme/entries?meter=credits&kind=grant&", "operation_id", "g0 g1 g2 g3"},
	} {
		for _, limit := range []int{1, 2, 500} {
			var ids []string
			for _, item := range pages[map[string]any](s, c.path, limit) {
				ids = append(ids, item[c.id].(string))
			}
			assert.Equal(t, c.want, strings.Join(ids, " "), "%s in pages of %d", c.path, limit)
		}
	}
	for _, path := range []string{"grants", "entries"} {
		s.call("GET", "/v1/tenants/nobody/"+path, "").problem(404, "tenant_not_found")
	}
}

func TestGrant_IssuedOnce_RaisesBalance(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const body = `{"meter":"credits","amount":50,"source":"topup","grant_id":"g1","priority":7,"effective_at":"2026-01-01T00:00:00+01:00",
		"expires_at":"2097-01-01T00:00:00Z","cost_basis":"0.01 EUR","reason":"order 17"}`
	first := s.call("POST", "/v1/tenants/acme/grants", body, headerIdempotencyKey, "k1").want(201)
	got := decoded[client.GrantAnswer](first)
	want := client.GrantAnswer{
		Tenant: "acme", GrantID: "g1", Meter: "credits", Source: "topup", Amount: 50, Remaining: 50, Priority: 7,
		EffectiveAt: got.CreatedAt, ExpiresAt: new(time.Date(2097, 1, 1, 0, 0, 0, 0, time.UTC)),
		CostBasis: "0.01 EUR", Reason: "order 17", Status: "active", OperationID: "k1", CreatedAt: got.CreatedAt, AsOf: got.AsOf,
		Balance: client.Position{Remaining: 50, Limit: 50},
	}
	assert.Equal(t, want, got)
	again := s.call("POST", "/v1/tenants/acme/grants", body, headerIdempotencyKey, "k1").want(201)
	assert.True(t, again.header.Get(headerReplayed) == "true" && string(again.body) == string(first.body),
		"%v %s", again.header, again.body)
	s.call("POST", "/v1/tenants/acme/grants", strings.Replace(body, "50", "51", 1), headerIdempotencyKey, "k1").problem(422, "idempotency_key_reused")
	s.call("POST", "/v1/tenants/acme/grants", body, headerIdempotencyKey, "k2").problem(409, "precondition_failed")
	s.call("POST", "/v1/tenants/nobody/grants", body, headerIdempotencyKey, "k3").problem(404, "tenant_not_found")
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"nothing","amount":1,"source":"promo"}`, headerIdempotencyKey, "k4").problem(404, "not_found")
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":1,"source":"promo","effective_at":"2090-01-01T00:00:00Z","expires_at":"2080-01-01T00:00:00Z"}`,
		headerIdempotencyKey, "k5").refused("expires_at")
	assert.EqualValues(t, 50, s.remaining("acme", "credits"), "remain")
}

func TestRoll_RunsInBackground_ReportsProgress(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k", "acme", "calls", 1).want(200)
	for _, body := range []string{"", `{}`, `{"as_of":"2026-01-01T00:00:00Z"}`} {
		a := s.call("POST", "/v1/rolls", body).want(202)
		var started, got client.Roll
		a.into(&started)
		assert.True(t, a.header.Get("Location") == "/v1/rolls/"+started.RollID, "Location %q", a.header.Get("Location"))
		s.eventually("the roll is done", func() bool {
			s.call("GET", "/v1/rolls/"+started.RollID, "").want(200).into(&got)
			return got.Status == "done"
		})
		assert.True(t, got.FinishedAt != nil && got.AsOf.Equal(started.AsOf), got)
	}
	s.call("POST", "/v1/rolls", `{"as_of":"2097-01-01T00:00:00Z"}`).refused("as_of")
	s.call("GET", "/v1/rolls/none", "").problem(404, "not_found")
}
