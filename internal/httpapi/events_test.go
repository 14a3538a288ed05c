package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
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

const aWebhook = `{"url":"https://example.com/hooks","types":["balance.threshold_reached","plan.changed"]}`

func TestWebhooks_LifeOfOne(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := decoded[client.NewWebhookEndpoint](s.call("POST", "/v1/webhooks", aWebhook).want(201))
	assert.True(t, strings.HasPrefix(made.Secret, "whsec_") && made.Tenant == nil && made.Status == "active" &&
		len(made.Types) == 2, made)
	path := "/v1/webhooks/" + made.WebhookID
	var shown client.WebhookEndpoint
	get := s.call("GET", path, "").want(200)
	if get.into(&shown); strings.Contains(string(get.body), "secret") || shown.URL != "https://example.com/hooks" {
		t.Errorf("%s", get.body)
	}
	s.call("PATCH", path, `{"status":"paused","types":["verify.drift"],"url":"https://example.org/"}`).want(200).into(&shown)
	assert.True(t, slices.Equal(shown.Types, []client.EventType{"verify.drift"}) && shown.Status == "paused" &&
		shown.URL == "https://example.org/", shown)
	rotated := decoded[client.NewWebhookEndpoint](s.call("POST", path+"/rotate", `{"overlap_seconds":60}`).want(201))
	assert.True(t, rotated.Secret != made.Secret && rotated.WebhookID == made.WebhookID, rotated)
	s.call("POST", path+"/rotate", "").want(201)
	s.call("POST", path+"/replay", `{"from":"2026-01-01T00:00:00Z"}`).problem(409, "precondition_failed")
	list := decoded[client.WebhookEndpointList](s.call("GET", "/v1/webhooks?limit=1", "").want(200))
	assert.Len(t, list.Items, 1, list)
	s.call("DELETE", path, "").want(204)
	for _, gone := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"GET", "/deliveries"}, {"POST", "/rotate"}, {"POST", "/test"}} {
		s.call(gone[0], path+gone[1], "").problem(404, "not_found")
	}
	audit := decoded[client.AuditList](s.call("GET", "/v1/audit", "").want(200))
	actions := answers.Map(audit.Items, func(l *client.AuditLine) string { return l.Action })
	assert.Equal(t, []string{"webhook.delete", "webhook.rotate", "webhook.rotate", "webhook.patch", "webhook.create"}, actions)
	assert.NotContains(t, string(s.call("GET", "/v1/audit", "").body), "whsec_", "a secret is in the audit log")
}

func TestWebhooks_BadInput_NamedByField(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *Config) {})
	for body, field := range map[string]string{
		`{"types":["plan.changed"]}`:                                                               "url",
		`{"url":"https://example.com"}`:                                                            "types",
		`{"url":"","types":["plan.changed"]}`:                                                      "url",
		`{"url":"example.com","types":["plan.changed"]}`:                                           "url",
		`{"url":"https://u:p@example.com","types":["plan.changed"]}`:                               "url",
		`{"url":"https://example.com/` + strings.Repeat("a", 2048) + `","types":["plan.changed"]}`: "url",
		`{"url":"https://example.com","types":[]}`:                                                 "types",
		`{"url":"https://example.com","types":["x"]}`:                                              "types[0]",
		`{"url":"https://example.com","types":["plan.changed","plan.changed"]}`:                    "types[1]",
		`{"url":"https://example.com","types":["plan.changed"],"tenant":""}`:                       "tenant",
		`{"url":"https://example.com","types":["plan.changed"],"status":"off"}`:                    "status",
		`{"url":"https://example.com","types":["plan.changed"],"secret":"whsec_x"}`:                "secret",
		`{"url":1,"types":["plan.changed"]}`:                                                       "url",
	} {
		s.call("POST", "/v1/webhooks", body).refused(field)
	}
	made := decoded[client.NewWebhookEndpoint](s.call("POST", "/v1/webhooks", aWebhook).want(201))
	path := "/v1/webhooks/" + made.WebhookID
	s.call("PATCH", path, `{"tenant":"acme"}`).refused("tenant")
	s.call("PATCH", path, `{"types":[]}`).refused("types")
	s.call("POST", path+"/rotate", `{"overlap_seconds":604801}`).refused("overlap_seconds")
	s.call("POST", path+"/replay", `{}`).refused("from")
	s.call("POST", path+"/replay", `{"from":"yesterday"}`).refused("from")
	s.call("POST", path+"/replay", `{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`).refused("to")
	s.call("POST", path+"/test", `{"x":1}`).refused("x")
	s.call("GET", path+"/deliveries?status=x", "").refused("status")
	s.call("GET", path+"/deliveries?cursor=x", "").refused("cursor")
	s.call("POST", "/v1/webhooks", aWebhook, "Idempotency-Key", "a b").problem(400, "invalid_argument")
}

// A key that is bound to a tenant can use only webhooks of that tenant.
func TestWebhooks_BoundKey_OwnTenantOnly(t *testing.T) {
	t.Parallel()
	s := newService(t)
	k := s.newKey(`{"name":"of acme","scopes":["admin"],"tenant":"acme"}`)
	var all, own client.NewWebhookEndpoint
	s.call("POST", "/v1/webhooks", aWebhook).want(201).into(&all)
	s.as(k, "POST", "/v1/webhooks", aWebhook).problem(403, "forbidden")
	s.as(k, "POST", "/v1/webhooks", `{"url":"https://example.com","types":["plan.changed"],"tenant":"globex"}`).problem(403, "forbidden")
	s.as(k, "POST", "/v1/webhooks", `{"url":"https://example.com","types":["plan.changed"],"tenant":"acme"}`).want(201).into(&own)
	list := decoded[client.WebhookEndpointList](s.as(k, "GET", "/v1/webhooks", "").want(200))
	assert.True(t, len(list.Items) == 1 && list.Items[0].WebhookID == own.WebhookID, list)
	theirs := "/v1/webhooks/" + all.WebhookID
	for _, c := range [][3]string{
		{"GET", "", ""},
		{"PATCH", "", `{"status":"paused"}`},
		{"DELETE", "", ""},
		{"POST", "/test", ""},
		{"POST", "/rotate", ""},
		{"POST", "/replay", `{"from":"2026-01-01T00:00:00Z"}`},
		{"GET", "/deliveries", ""},
	} {
		s.as(k, c[0], theirs+c[1], c[2]).problem(403, "forbidden")
	}
	s.as(s.newKey(`{"name":"reader","scopes":["read"]}`), "GET", "/v1/webhooks", "").problem(403, "forbidden")
}

func TestWebhooks_PrivateAddress_RefusedUnlessPermitted(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:3000/hooks","types":["plan.changed"]}`).want(201) // the tests' service permits such a URL
	strict, err := webhooks.New(webhooks.Config{Pool: s.pool, DB: s.server.store.DB(), Log: s.server.log, Metrics: prometheus.NewRegistry()})
	s.check(err)
	s.server.webhooks = strict
	for _, host := range []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:192.168.0.1]", "[64:ff9b::a00:1]", "localhost"} {
		s.call("POST", "/v1/webhooks", `{"url":"http://`+host+`/hooks","types":["plan.changed"]}`).refused("url")
	}
}

func TestWebhooks_ToldOfADebit_ListedAsDelivered(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.check(s.webhooks.Start(t.Context()))
	s.onStop("webhooks", s.webhooks.Stop)
	calls := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls <- r.Header.Get("Webhook-Id") }))
	t.Cleanup(receiver.Close)
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(201)
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"calendar"}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"p"}`).want(201)
	var made client.NewWebhookEndpoint
	s.call("POST", "/v1/webhooks", `{"url":"`+receiver.URL+`","types":["balance.threshold_reached"],"tenant":"acme"}`).want(201).into(&made)
	s.call("POST", "/v1/debits", `{"tenant":"acme","items":[{"meter":"calls","amount":8}]}`, "Idempotency-Key", "k").want(200)
	n, err := events.Number(t.Context(), s.pool, s.webhooks.Queue)
	s.check(err)
	require.True(t, n == 1, "%d events", n)
	id := <-calls
	var list client.DeliveryList
	s.eventually("it is listed", func() bool {
		s.call("GET", "/v1/webhooks/"+made.WebhookID+"/deliveries?status=delivered", "").want(200).into(&list)
		return len(list.Items) == 1
	})
	d := list.Items[0]
	assert.True(t, d.EventID == id && d.StatusCode == http.StatusOK && d.LatencyMs != nil && d.Attempts == 1 && *d.Tenant == "acme", d)
	var replay client.WebhookReplay
	s.call("POST", "/v1/webhooks/"+made.WebhookID+"/replay", `{"from":"2026-01-01T00:00:00Z"}`).want(202).into(&replay)
	again := <-calls
	assert.True(t, again == id && replay.Queued == 1 && replay.NextFrom.IsZero(), "%s %+v", again, replay)
	test := decoded[client.WebhookTest](s.call("POST", "/v1/webhooks/"+made.WebhookID+"/test", "").want(200))
	assert.True(t, test.Delivered && <-calls == test.MessageID, test)
}
