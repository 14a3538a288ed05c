package httpapi

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// list gives new events their positions in the list of events. A running service does this in the background.
func (s *service) list() {
	s.t.Helper()
	_, err := events.Number(s.t.Context(), s.pool, func(context.Context, pgx.Tx, []events.Listed) error { return nil })
	s.check(err)
}

func (s *service) events(query string) (lines []string, page client.EventList) {
	s.t.Helper()
	s.call("GET", "/v1/events"+query, "").want(200).into(&page)
	for _, e := range page.Items {
		lines = append(lines, string(e.Type)+" "+*e.Tenant+" "+e.Meter+" "+string(e.Data))
	}
	return lines, page
}

func TestEvents_ThresholdsPlansSuspensions_ListedOldestFirst(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(201)
	s.call("PUT", "/v1/plans/small", `{"allowances":[{"meter":"calls","amount":10,"every":"once","anchor":"calendar","alert_at":[50]}]}`).want(201)
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"once","anchor":"calendar"}]}`).want(201)
	for _, tenant := range []string{"one", "two"} {
		s.call("PUT", "/v1/tenants/"+tenant, `{"plan":"small"}`).want(201)
	}
	s.call("POST", "/v1/debits", `{"tenant":"one","items":[{"meter":"calls","amount":5}]}`, "Idempotency-Key", "a").want(200)
	s.call("PATCH", "/v1/tenants/two", `{"plan":"large","apply":"now"}`).want(200)
	s.call("PATCH", "/v1/tenants/two", `{"status":"suspended"}`).want(200)
	s.call("PATCH", "/v1/tenants/two", `{"status":"suspended"}`).want(200) // it changes nothing, so there is no event
	s.call("PATCH", "/v1/tenants/two", `{"plan":"small","dry_run":true}`).want(200)
	s.list()

	plan := decoded[client.Plan](s.call("GET", "/v1/plans/small", "").want(200))
	assert.Equal(t, []int64{50}, plan.Allowances[0].AlertAt)
	got, page := s.events("")
	require.True(t, len(got) == 3 && page.NextCursor == nil, "%q", got)
	want := []string{
		`plan.changed two  {"plan":"large","apply":"now","previous_plan":"small"}`, `tenant.suspended two  {"plan":"large"}`,
	}
	assert.Equal(t, want, got[1:])
	assert.True(t, page.Items[0].Type == "balance.threshold_reached" && *page.Items[0].Tenant == "one" &&
		page.Items[0].Meter == "calls", "%s", got[0])
	// The list is read after an event, by type, by tenant, and in pages.
	first := page.Items[0].EventID
	got, _ = s.events("?after=" + first)
	assert.Equal(t, want, got)
	got, _ = s.events("?type=tenant.suspended")
	assert.Equal(t, want[1:], got)
	got, _ = s.events("?tenant=one")
	assert.Len(t, got, 1)
	_, page = s.events("?limit=1")
	require.NotNil(t, page.NextCursor, "no cursor")
	got, _ = s.events("?cursor=" + url.QueryEscape(*page.NextCursor))
	assert.Equal(t, want, got, "second page")
	// A key that is bound to a tenant sees only that tenant's events.
	k := s.newKey(`{"name":"of two","scopes":["read"],"tenant":"two"}`)
	bound := decoded[client.EventList](s.as(k, "GET", "/v1/events", "").want(200))
	assert.Len(t, bound.Items, 2, "events")
	s.as(k, "GET", "/v1/events?tenant=one", "").problem(403, "forbidden")
	s.as(s.newKey(`{"name":"app","scopes":["use"]}`), "GET", "/v1/events", "").problem(403, "forbidden")
	for _, query := range []string{"?after=x", "?after=", "?cursor=x", "?type=x", "?tenant=%20", "?limit=0", "?limit=501", "?from=1"} {
		s.call("GET", "/v1/events"+query, "").problem(400, "invalid_argument")
	}
}

func TestAlertAt_BadValues_NamedByField(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(201)
	for alert, field := range map[string]string{
		"[0]": "allowances[0].alert_at[0]", "[1001]": "allowances[0].alert_at[0]", "[80,80]": "allowances[0].alert_at[1]", "[100,80]": "allowances[0].alert_at[1]",
		"[1,2,3,4,5,6,7,8,9,10,11]": "allowances[0].alert_at", "[80.5]": "allowances[0].alert_at[0]", `"80"`: "allowances[0].alert_at", "80": "allowances[0].alert_at",
		"[null]": "allowances[0].alert_at[0]",
	} {
		a := s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1,"every":"month","anchor":"calendar","alert_at":`+alert+`}]}`)
		a.refused(field)
	}
	for alert, want := range map[string][]int64{"[]": {}, "[1,1000]": {1, 1000}, "[1,2,3,4,5,6,7,8,9,10]": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		var plan client.Plan
		s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1,"every":"month","anchor":"calendar","alert_at":`+alert+`}]}`).want(200, 201)
		s.call("GET", "/v1/plans/p", "").want(200).into(&plan)
		assert.Equal(t, want, plan.Allowances[0].AlertAt, alert)
	}
}
