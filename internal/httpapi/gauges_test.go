package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// seated creates the meter desks of kind gauge and plan team, and puts tenant crew on the plan. The plan permits 5
// desks, and 2 for each subject.
func (s *service) seated() *service {
	s.t.Helper()
	s.catalogue()
	s.call("PUT", "/v1/meters/desks", `{"unit":"desk","kind":"gauge"}`).want(201)
	s.call("PUT", "/v1/plans/team", `{"allowances":[{"meter":"desks","amount":5,"per_subject":2},{"meter":"calls","amount":9,"every":"month","anchor":"tenant"}]}`).want(201)
	s.call("PUT", "/v1/tenants/crew", `{"plan":"team"}`).want(201)
	return s
}

func (s *service) setGauge(key, body string, query ...string) *answer {
	s.t.Helper()
	return s.call("PUT", "/v1/tenants/crew/gauges/desks"+strings.Join(query, ""), body, headerIdempotencyKey, key)
}

func TestGauge_SetGetExplain(t *testing.T) {
	t.Parallel()
	s := newService(t).seated()
	g := decoded[client.Gauge](s.call("GET", "/v1/tenants/crew/gauges/desks", "").want(200))
	assert.True(t, g.Value == 0 && g.Limit == 5 && g.Remaining == 5 && g.Over == 0 && g.Before == nil, g)
	s.setGauge("k1", `{"value":4}`).want(200)
	s.setGauge("k2", `{"delta":1}`).want(200).into(&g)
	assert.True(t, g.Value == 5 && *g.Before == 4 && g.Remaining == 0, g)
	a := s.setGauge("k2", `{"delta":1}`).want(200)
	assert.EqualValues(t, "true", a.header.Get(headerReplayed), "no replay: %s", a.body)
	s.setGauge("k2", `{"delta":2}`).problem(422, "idempotency_key_reused")
	p := s.setGauge("k3", `{"delta":1}`).problem(403, "gauge_limit")
	assert.Contains(t, p.Detail, "at most 5", p)
	s.setGauge("k4", `{"value":3}`, "?subject=u1").problem(403, "gauge_limit")
	s.setGauge("k4", `{"value":2}`, "?subject=u1").want(200)

	s.call("PATCH", "/v1/tenants/crew", `{"overrides":{"desks":3}}`).want(200)
	s.call("GET", "/v1/tenants/crew/gauges/desks", "").want(200).into(&g)
	assert.True(t, g.Value == 5 && g.Limit == 3 && g.Remaining == 0 && g.Over == 2, g)
	list := decoded[client.GaugeList](s.call("GET", "/v1/tenants/crew/gauges?limit=1", "").want(200))
	assert.True(t, len(list.Items) == 1 && list.Items[0].Meter == "desks" && list.Items[0].Over == 2 &&
		list.NextCursor != nil, list)
	s.call("GET", "/v1/tenants/crew/gauges?meter=desks&limit=1&cursor="+*list.NextCursor, "").want(200).into(&list)
	assert.True(t, len(list.Items) == 1 && list.Items[0].Subject == "u1" && list.Items[0].Value == 2 && !list.Items[0].ChangedAt.IsZero() &&
		list.NextCursor == nil, list)
	s.call("GET", "/v1/tenants/crew/gauges?cursor=x", "").refused("cursor")
	s.call("GET", "/v1/tenants/nobody/gauges", "").problem(404, "tenant_not_found")
	s.setGauge("k5", `{"delta":-1}`).want(200)
	s.setGauge("k6", `{"delta":1}`).problem(403, "gauge_limit")
	page := decoded[client.GaugeEntryList](s.call("GET", "/v1/tenants/crew/gauges/desks/entries?limit=2", "").want(200))
	assert.True(t, len(page.Items) == 2 && page.Items[0].OperationID == "k5" && page.Items[0].Before == 5 && page.Items[0].After == 4 && page.Items[0].Limit == 3 &&
		page.Items[0].Actor == "bootstrap", page)
	s.call("GET", "/v1/tenants/crew/gauges/desks/entries?limit=2&cursor="+*page.NextCursor, "").want(200).into(&page)
	assert.True(t, len(page.Items) == 1 && page.Items[0].OperationID == "k1" && page.NextCursor == nil, page)
}

func TestGauge_BadInput_AndCounters(t *testing.T) {
	t.Parallel()
	s := newService(t).seated()
	for body, field := range map[string]string{
		`{}`: "value", `{"value":1,"delta":1}`: "delta", `{"value":-1}`: "value", `{"value":1.5}`: "value", `{"value":"1"}`: "value", `{"delta":0}`: "delta",
		`{"value":9007199254740992}`: "value", `{"delta":-9007199254740992}`: "delta", `{"delta":-1}`: "delta", `{"seats":1}`: "seats",
	} {
		s.setGauge("k", body).refused(field)
	}
	s.call("PUT", "/v1/tenants/crew/gauges/desks", `{"value":1}`).problem(400, "idempotency_key_missing")
	s.call("PUT", "/v1/tenants/crew/gauges/desks", `{"value":1,"dry_run":true}`).want(200)
	s.setGauge("k", `{"value":1}`, "?subject=a%20b").refused("subject")
	s.call("GET", "/v1/tenants/crew/gauges/desks/entries?cursor=0", "").refused("cursor")
	s.call("GET", "/v1/tenants/crew/gauges/calls", "").refused("meter")
	s.call("GET", "/v1/tenants/crew/gauges/unknown", "").problem(404, "not_found")
	s.call("GET", "/v1/tenants/nobody/gauges/desks", "").problem(404, "tenant_not_found")
	s.call("PUT", "/v1/meters/desks", `{"unit":"desk","kind":"counter"}`).problem(409, "precondition_failed")
	s.call("PUT", "/v1/meters/x", `{"unit":"x","kind":"dial"}`).refused("kind")
	s.call("PUT", "/v1/meters/x", `{"unit":"x","kind":"gauge","denial_replay":true}`).refused("denial_replay")

	// A gauge cannot be debited, held, granted or adjusted.
	for path, body := range map[string]string{
		"/v1/debits": demandOf("crew", "desks", 1), "/v1/consume": demandOf("crew", "desks", 1),
		"/v1/holds":               `{"tenant":"crew","hold_id":"h","items":[{"meter":"desks","amount":1}]}`,
		"/v1/tenants/crew/grants": `{"meter":"desks","amount":1,"source":"topup"}`, "/v1/tenants/crew/adjustments": `{"meter":"desks","amount":1,"reason":"r"}`,
	} {
		a := s.send(path, "k"+path, body)
		assert.True(t, a.status == 400 && strings.Contains(string(a.body), "is a gauge, which is set"),
			"%s: %d %s", path, a.status, a.body)
	}
	a := s.call("POST", "/v1/check", demandOf("crew", "desks", 1))
	assert.True(t, a.status == 400, "check: %d %s", a.status, a.body)
	a = s.call("GET", "/v1/tenants/crew/balances", "").want(200)
	assert.NotContains(t, string(a.body), "desks", "%s", a.body)

	const allowance = `{"allowances":[{"meter":%q,"amount":1%s}]}`
	for _, tc := range [][3]string{
		{"desks", `,"every":"month","anchor":"tenant"`, "every"},
		{"calls", ``, "every"},
		{"desks", `,"every":"month"`, "anchor"},
		{"desks", `,"anchor":"tenant"`, "every"},
		{"desks", `,"overage":{"policy":"allow"}`, "overage"},
		{"desks", `,"rollover":{"max":1}`, "rollover"},
		{"desks", `,"expires_in_days":3`, "expires_in_days"},
		{"calls", `,"every":"month","anchor":"tenant","overflow":{"meter":"desks","price":1}},{"meter":"desks","amount":1`, "overflow.meter"},
	} {
		s.call("PUT", "/v1/plans/bad", fmt.Sprintf(allowance, tc[0], tc[1])).refused("allowances[0]." + tc[2])
	}
	a = s.call("GET", "/v1/plans/team", "").want(200)
	assert.True(t, strings.Contains(string(a.body), `"amount":5`) && !strings.Contains(string(a.body), `"every":"once"`), "%s", a.body)
}
