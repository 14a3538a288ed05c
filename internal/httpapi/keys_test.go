package httpapi

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// newKey creates an API key and returns it with its secret.
func (s *service) newKey(body string) client.CreatedKey {
	s.t.Helper()
	k := decoded[client.CreatedKey](s.call("POST", "/v1/keys", body).want(201))
	return k
}

// as sends a request with the key k.
func (s *service) as(k client.CreatedKey, method, path, body string, extra ...string) *answer {
	s.t.Helper()
	return s.call(method, path, body, append([]string{"Authorization", "Bearer " + k.Secret}, extra...)...)
}

// trial is a request for a route that reaches data of a tenant.
type trial struct {
	path, body string
	header     []string
	gateway    bool
}

// trials returns a request for every route that reaches one tenant. The map's keys are the method and the path of the
// route. made has ids of the tenant's objects.
func trials(tenant string, made belongings) map[string]trial {
	item := fmt.Sprintf(`{"tenant":%q,"items":[{"meter":"calls","amount":1}]}`, tenant)
	key := []string{headerIdempotencyKey, "trial-" + tenant}
	forwarded := trial{header: []string{forwarded.HeaderTenant, tenant, forwarded.HeaderMeter, "calls", forwarded.HeaderMode, "check"}, gateway: true}
	nginx, envoy := forwarded, forwarded
	nginx.path, envoy.path = "/v1/authorize/nginx", "/v1/authorize/envoy/x"
	of := fmt.Sprintf(`{"tenant":%q}`, tenant)
	escaped, asked := url.PathEscape(tenant), url.QueryEscape(tenant)
	path := "/v1/tenants/" + escaped
	return map[string]trial{
		"POST /v1/check":                                          {path: "/v1/check", body: item},
		"POST /v1/check/batch":                                    {path: "/v1/check/batch", body: `{"checks":[` + item + `]}`},
		"POST /v1/consume":                                        {path: "/v1/consume", body: item, header: key},
		"any /v1/authorize/:gateway":                              nginx,
		"any /v1/authorize/envoy/*":                               envoy,
		"POST /v1/debits":                                         {path: "/v1/debits", body: item, header: key},
		"POST /v1/debits/batch":                                   {path: "/v1/debits/batch", body: fmt.Sprintf(`{"debits":[{"idempotency_key":"b","tenant":%q,"items":[{"meter":"calls","amount":1}]}]}`, tenant)},
		"POST /v1/holds":                                          {path: "/v1/holds", body: fmt.Sprintf(`{"tenant":%q,"hold_id":"h2","items":[{"meter":"calls","amount":1}]}`, tenant), header: key},
		"POST /v1/holds/:hold_id/capture":                         {path: "/v1/holds/h/capture", body: of, header: key},
		"POST /v1/holds/:hold_id/release":                         {path: "/v1/holds/h/release", body: of, header: key},
		"POST /v1/holds/:hold_id/extend":                          {path: "/v1/holds/h/extend", body: fmt.Sprintf(`{"tenant":%q,"ttl_seconds":60}`, tenant), header: key},
		"POST /v1/refunds":                                        {path: "/v1/refunds", body: fmt.Sprintf(`{"tenant":%q,"operation_id":"paid"}`, tenant), header: key},
		"POST /v1/limits/charge":                                  {path: "/v1/limits/charge", body: of},
		"POST /v1/limits/charge/refund":                           {path: "/v1/limits/charge/refund", body: fmt.Sprintf(`{"charge_id":%q}`, made.charge)},
		"POST /v1/limits/charge/settle":                           {path: "/v1/limits/charge/settle", body: fmt.Sprintf(`{"charge_id":%q,"cost":1}`, made.charge)},
		"POST /v1/leases":                                         {path: "/v1/leases", body: fmt.Sprintf(`{"tenant":%q,"rule":"slots"}`, tenant)},
		"POST /v1/leases/:lease_id/renew":                         {path: "/v1/leases/" + made.lease + "/renew", body: `{}`},
		"DELETE /v1/leases/:lease_id":                             {path: "/v1/leases/" + made.lease},
		"GET /v1/tenants/:tenant/balances":                        {path: path + "/balances"},
		"GET /v1/tenants/:tenant/balances/:meter":                 {path: path + "/balances/calls"},
		"GET /v1/tenants/:tenant/entries":                         {path: path + "/entries"},
		"GET /v1/tenants/:tenant/operations/:operation_id":        {path: path + "/operations/paid"},
		"GET /v1/tenants/:tenant/periods":                         {path: path + "/periods?meter=calls"},
		"GET /v1/tenants/:tenant/statements":                      {path: path + "/statements"},
		"GET /v1/tenants/:tenant/statements/:meter/:period_start": {path: path + "/statements/calls/current"},
		"GET /v1/tenants/:tenant/denials":                         {path: path + "/denials"},
		"GET /v1/tenants/:tenant/usage":                           {path: path + "/usage?meter=calls&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"},
		"GET /v1/tenants/:tenant/grants":                          {path: path + "/grants"},
		"GET /v1/tenants/:tenant/holds":                           {path: path + "/holds"},
		"GET /v1/tenants/:tenant/holds/:hold_id":                  {path: path + "/holds/h"},
		"POST /v1/tenants/:tenant/grants":                         {path: path + "/grants", body: `{"meter":"credits","amount":1,"source":"promo"}`, header: key},
		"POST /v1/tenants/:tenant/grants/:grant_id/void":          {path: path + "/grants/g/void", body: `{"reason":"r"}`, header: key},
		"POST /v1/tenants/:tenant/grants/:grant_id/extend":        {path: path + "/grants/g/extend", body: `{"expires_at":null,"reason":"r"}`, header: key},
		"POST /v1/tenants/:tenant/adjustments":                    {path: path + "/adjustments", body: `{"meter":"credits","amount":1,"reason":"r"}`, header: key},
		"PUT /v1/tenants/:tenant":                                 {path: path, body: `{"plan":"basic"}`},
		"PATCH /v1/tenants/:tenant":                               {path: path, body: `{"status":"active"}`},
		"GET /v1/tenants/:tenant":                                 {path: path},
		"DELETE /v1/tenants/:tenant/pending":                      {path: path + "/pending"},
		"GET /v1/tenants/:tenant/terms":                           {path: path + "/terms"},
		"GET /v1/tenants/:tenant/gauges":                          {path: path + "/gauges"},
		"PUT /v1/tenants/:tenant/gauges/:meter":                   {path: path + "/gauges/seats", body: `{"value":1}`, header: key},
		"GET /v1/tenants/:tenant/gauges/:meter":                   {path: path + "/gauges/seats"},
		"GET /v1/tenants/:tenant/gauges/:meter/entries":           {path: path + "/gauges/seats/entries"},
		"GET /v1/tenants/:tenant/features":                        {path: path + "/features"},
		"POST /v1/limits/:rule/reset":                             {path: "/v1/limits/slots/reset", body: of},
		"GET /v1/limits/:rule/state":                              {path: "/v1/limits/slots/state?tenant=" + asked},
		"PUT /v1/limits/:rule/overrides/:tenant":                  {path: "/v1/limits/by-subject/overrides/" + escaped, body: `{"rate":"7/s"}`},
		"GET /v1/limits/:rule/overrides/:tenant":                  {path: "/v1/limits/by-subject/overrides/" + escaped},
		"DELETE /v1/limits/:rule/overrides/:tenant":               {path: "/v1/limits/by-subject/overrides/" + escaped},
		"PUT /v1/limits/:rule/overrides/:tenant/:subject":         {path: "/v1/limits/by-subject/overrides/" + escaped + "/eve", body: `{"rate":"7/s"}`},
		"GET /v1/limits/:rule/overrides/:tenant/:subject":         {path: "/v1/limits/by-subject/overrides/" + escaped + "/eve"},
		"DELETE /v1/limits/:rule/overrides/:tenant/:subject":      {path: "/v1/limits/by-subject/overrides/" + escaped + "/eve"},
		"PUT /v1/blocks/:kind/:value":                             {path: "/v1/blocks/subject/eve", body: of},
		"GET /v1/blocks/:kind/:value":                             {path: "/v1/blocks/subject/eve?tenant=" + asked},
		"DELETE /v1/blocks/:kind/:value":                          {path: "/v1/blocks/subject/eve?tenant=" + asked},
		"POST /v1/verifications":                                  {path: "/v1/verifications", body: of},
		"GET /v1/verifications/:verification_id":                  {path: "/v1/verifications/" + made.verification},
		"POST /v1/keys":                                           {path: "/v1/keys", body: fmt.Sprintf(`{"name":"n","scopes":["use"],"tenant":%q}`, tenant)},
		"POST /v1/portal-sessions":                                {path: "/v1/portal-sessions", body: of},
		"DELETE /v1/tenants/:tenant/portal-sessions":              {path: path + "/portal-sessions"},
		"GET /v1/keys/:key_id":                                    {path: "/v1/keys/" + made.key},
		"POST /v1/keys/:key_id/rotate":                            {path: "/v1/keys/" + made.key + "/rotate"},
		"DELETE /v1/keys/:key_id":                                 {path: "/v1/keys/" + made.key},
		"POST /v1/webhooks":                                       {path: "/v1/webhooks", body: fmt.Sprintf(`{"url":"http://127.0.0.1:1/","types":["plan.changed"],"tenant":%q}`, tenant)},
		"GET /v1/webhooks/:webhook_id":                            {path: "/v1/webhooks/" + made.webhook},
		"PATCH /v1/webhooks/:webhook_id":                          {path: "/v1/webhooks/" + made.webhook, body: `{"status":"active"}`},
		"DELETE /v1/webhooks/:webhook_id":                         {path: "/v1/webhooks/" + made.webhook},
		"POST /v1/webhooks/:webhook_id/test":                      {path: "/v1/webhooks/" + made.webhook + "/test"},
		"POST /v1/webhooks/:webhook_id/rotate":                    {path: "/v1/webhooks/" + made.webhook + "/rotate"},
		"POST /v1/webhooks/:webhook_id/replay":                    {path: "/v1/webhooks/" + made.webhook + "/replay", body: `{"from":"2026-01-01T00:00:00Z"}`},
		"GET /v1/webhooks/:webhook_id/deliveries":                 {path: "/v1/webhooks/" + made.webhook + "/deliveries"},
		// Addresses belong to no tenant, so these requests do not name the tenant of the trial.
		"PUT /v1/blocks/:kind/:value/:bits":    {path: "/v1/blocks/ip/10.0.0.0/8", body: `{}`},
		"GET /v1/blocks/:kind/:value/:bits":    {path: "/v1/blocks/ip/10.0.0.0/8"},
		"DELETE /v1/blocks/:kind/:value/:bits": {path: "/v1/blocks/ip/10.0.0.0/8"},
	}
}

// belongings has the ids of the objects that belong to a tenant.
type belongings struct{ lease, charge, verification, key, webhook string }

// furnish creates a tenant that owns one object of each kind. It returns the ids of these objects.
func (s *service) furnish(tenant string) belongings {
	s.t.Helper()
	escaped, rule := url.PathEscape(tenant), "of-"+tenant
	if !bound.ID(rule) {
		rule = fmt.Sprintf("of-%x", tenant)
	}
	s.tenant(escaped)
	s.debit("paid", tenant, "calls", 1).want(200)
	s.call("POST", "/v1/tenants/"+escaped+"/grants", `{"meter":"credits","amount":5,"source":"promo","grant_id":"g"}`, headerIdempotencyKey, "grant").want(201)
	s.call("POST", "/v1/holds", fmt.Sprintf(`{"tenant":%q,"hold_id":"h","items":[{"meter":"calls","amount":1}]}`, tenant), headerIdempotencyKey, "hold").want(201)
	var lease client.LeaseAnswer
	s.call("POST", "/v1/leases", fmt.Sprintf(`{"tenant":%q,"rule":"slots"}`, tenant)).want(201).into(&lease)
	s.call("PUT", "/v1/blocks/subject/eve", fmt.Sprintf(`{"tenant":%q}`, tenant)).want(201)
	s.call("PUT", "/v1/limits/by-subject/overrides/"+escaped, `{"rate":"6/s"}`).want(201)
	s.call("PUT", "/v1/limits/by-subject/overrides/"+escaped+"/eve", `{"rate":"6/s"}`).want(201)
	s.call("PUT", "/v1/limits/"+rule, fmt.Sprintf(`{"per":["tenant"],"match":{"tenant":%q},"kind":"token_bucket","rate":"9/s"}`, tenant)).want(201)
	var charge client.ChargeAnswer
	s.eventually("the limit is charged", func() bool {
		s.call("POST", "/v1/limits/charge", fmt.Sprintf(`{"tenant":%q}`, tenant)).want(200).into(&charge)
		return charge.ChargeID != ""
	})
	var v client.Verification
	s.startVerification(fmt.Sprintf(`{"tenant":%q}`, tenant)).into(&v)
	k := s.newKey(fmt.Sprintf(`{"name":"n","scopes":["use"],"tenant":%q}`, tenant))
	var hook client.NewWebhookEndpoint
	s.call("POST", "/v1/webhooks", fmt.Sprintf(`{"url":"http://127.0.0.1:1/","types":["plan.changed"],"tenant":%q}`, tenant)).want(201).into(&hook)
	return belongings{lease: lease.LeaseID, charge: charge.ChargeID, verification: v.VerificationID, key: k.KeyID, webhook: hook.WebhookID}
}

// TestRoutes_BoundKey_ReachesItsTenantOnly sends requests about tenant theirs to every route, with keys that are
// bound to tenant mine. Each answer is 403 or has no data of theirs. The same requests about tenant mine pass.
func TestRoutes_BoundKey_ReachesItsTenantOnly(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/limits/slots", `{"per":["tenant"],"kind":"concurrency","burst":50}`).want(201)
	s.call("PUT", "/v1/limits/by-subject", `{"per":["subject"],"kind":"token_bucket","rate":"5/s"}`).want(201)
	s.eventually("the snapshot has the rules", func() bool { return len(s.server.catalog.Snapshot().Limits) == 2 })
	theirs, mine := s.furnish("theirs"), s.furnish("mine")
	admin := s.newKey(`{"name":"bound","scopes":["admin"],"tenant":"mine"}`)
	foreign, own := trials("theirs", theirs), trials("mine", mine)
	for _, r := range s.server.routes() {
		name, method := r.method+" "+r.path, r.method
		if method == methodAny {
			method = "GET"
		}
		if r.public {
			continue
		}
		switch r.reach {
		case oneTenant:
			trial, ok := foreign[name]
			if !ok {
				t.Errorf("%s has no trial in this test", name)
				continue
			}
			before := s.state()
			a := s.as(admin, method, trial.path, trial.body, trial.header...)
			if name == "POST /v1/debits/batch" {
				results := decoded[client.DebitBatchAnswer](a.want(200))
				assert.True(t, results.Results[0].Status == 403 && results.Results[0].Code == "forbidden",
					"%s: %s", name, a.body)
			} else if name == "POST /v1/check/batch" {
				a.want(200)
				assert.True(t, strings.HasPrefix(string(a.body), `{"results":[{"status":403,`), "%s: %s", name, a.body)
			} else if !trial.gateway {
				a.problem(403, "forbidden")
			} else if a.status != 403 || !strings.Contains(string(a.body), "bound to another tenant") {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			assert.True(t, s.state() == before, "%s changed something of another tenant", name)
		case everyTenant:
			path := strings.NewReplacer(":meter", "calls", ":plan", "basic", ":rule", "slots", ":roll_id", "r", ":day", "2026-01-01").Replace(r.path)
			s.as(admin, method, path, "{}").problem(403, "forbidden")
		case ownTenant:
			a := s.as(admin, method, strings.Replace(r.path, ":rule", ruleOf(r.path), 1), "").want(200)
			assert.NotContains(t, string(a.body), "theirs", "%s shows another tenant: %s", name, a.body)
		case noTenant:
			s.as(admin, method, strings.NewReplacer(":meter", "calls", ":plan", "basic").Replace(r.path), "").want(200)
		}
	}
	s.as(admin, "GET", "/v1/limits/of-theirs", "").problem(403, "forbidden")
	s.as(admin, "GET", "/v1/limits/slots?explain=1&tenant=theirs", "").problem(403, "forbidden")
	s.as(admin, "GET", "/v1/audit?tenant=theirs", "").problem(403, "forbidden")
	s.as(admin, "PUT", "/v1/blocks/ip/192.0.2.1", `{}`).problem(403, "forbidden")
	s.as(admin, "PUT", "/v1/blocks/tenant/theirs", `{}`).problem(403, "forbidden")
	s.as(admin, "POST", "/v1/verifications", "").problem(403, "forbidden")
	s.as(admin, "POST", "/v1/keys", `{"name":"n","scopes":["use"]}`).problem(403, "forbidden")
	s.as(admin, "POST", "/v1/limits/slots/reset", "").problem(403, "forbidden")
	s.as(admin, "POST", "/v1/debits/batch", `{"debits":[{"idempotency_key":"x","tenant":"theirs","items":[{"meter":"calls","amount":1}]},
		{"idempotency_key":"y","tenant":"mine","items":[{"meter":"calls","amount":1}]}]}`).want(200)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if trial := own[name]; !strings.Contains(name, ":bits") && !strings.HasPrefix(name, "DELETE /v1/keys") {
			method, _, _ := strings.Cut(name, " ")
			a := s.as(admin, strings.Replace(method, "any", "GET", 1), trial.path, trial.body, append(slices.Clone(trial.header), "X-Own", "1")...)
			assert.True(t, a.status != 403 && a.status != 401, "%s is refused for the key's own tenant: %s", name, a.body)
		}
	}
}

// ruleOf returns the name of the rule that the requests about tenant mine use for this path.
func ruleOf(path string) string {
	if strings.HasSuffix(path, "/overrides") {
		return "by-subject"
	}
	return "of-mine"
}

// TestRoutes_Scopes_OfTheContract: each route needs the scope that the contract names. A key with other scopes does
// not pass.
func TestRoutes_Scopes_OfTheContract(t *testing.T) {
	t.Parallel()
	s := newService(t)
	keys := map[access.Scope]client.CreatedKey{}
	for _, scope := range []access.Scope{access.Use, access.Read, access.Admin} {
		keys[scope] = s.newKey(fmt.Sprintf(`{"name":"n","scopes":[%q]}`, scope))
	}
	for _, r := range s.server.routes() {
		method := r.method
		if method == methodAny {
			method = "GET"
		}
		path := strings.NewReplacer(":gateway", "nginx", "/*", "/x").Replace(r.path)
		_, item, op := operationOf(method, s.request(method, path, nil).URL)
		if op == nil && item != nil {
			op = item.Get
		}
		if op == nil {
			t.Errorf("%s %s is not in the contract", method, path)
			continue
		}
		want, _ := op.Extensions["x-scope"].(string)
		assert.True(t, r.public == (want == "") && (r.public || r.scope.String() == want),
			"%s %s: scope %s, in the contract %q", method, path, r.scope, want)
		for scope, key := range keys {
			if r.public || scope.Has(r.scope) || strings.HasPrefix(r.path, "/v1/authorize") {
				continue
			}
			assert.Contains(t, s.as(key, method, path, "{}").problem(403, "forbidden").Detail, r.scope.String(),
				"%s %s", method, path)
		}
	}
	a := s.as(keys[access.Read], "GET", "/v1/authorize/nginx", "", forwarded.HeaderTenant, "a", forwarded.HeaderMeter, "m")
	assert.True(t, a.status == 403, "%d %s", a.status, a.body)
}

func TestKeys_CreateListRotateRevoke(t *testing.T) {
	t.Parallel()
	s := newService(t)
	k := s.newKey(`{"name":"gateway eu-1","scopes":["use","read"],"tenant":"acme","expires_at":"2097-01-01T00:00:00Z"}`)
	assert.True(t, strings.HasPrefix(k.Secret, "qk_") && len(k.Secret) >= 46 && strings.HasPrefix(k.Secret, k.Prefix),
		k)
	var got client.Key
	a := s.call("GET", "/v1/keys/"+k.KeyID, "").want(200)
	a.into(&got)
	acme, end := "acme", time.Date(2097, 1, 1, 0, 0, 0, 0, time.UTC)
	want := client.Key{
		KeyID: k.KeyID, Name: "gateway eu-1", Scopes: []client.KeyScope{"use", "read"}, Tenant: &acme, Prefix: k.Prefix, CreatedAt: k.CreatedAt,
		ExpiresAt: &end, Status: "active",
	}
	assert.Equal(t, want, got)
	list := decoded[client.KeyList](s.call("GET", "/v1/keys", "").want(200))
	assert.Equal(t, []client.Key{want}, list.Items)
	var rotated client.CreatedKey
	s.call("POST", "/v1/keys/"+k.KeyID+"/rotate", `{"overlap_seconds":3600}`).want(201).into(&rotated)
	assert.True(t, rotated.KeyID == k.KeyID && rotated.Secret != k.Secret, rotated)
	for _, key := range []client.CreatedKey{k, rotated} {
		s.as(key, "GET", "/v1/meters", "").want(200)
	}
	s.call("GET", "/v1/keys/"+k.KeyID, "").want(200).into(&got)
	assert.True(t, got.LastUsedAt != nil && time.Since(*got.LastUsedAt) <= testenv.Patience,
		"last used at %v", got.LastUsedAt)
	last := decoded[client.CreatedKey](s.call("POST", "/v1/keys/"+k.KeyID+"/rotate", "").want(201))
	s.as(last, "GET", "/v1/meters", "").want(200)
	for _, key := range []client.CreatedKey{k, rotated} {
		s.eventually("the old secret is refused", func() bool { return s.as(key, "GET", "/v1/meters", "").status == 401 })
	}
	s.call("DELETE", "/v1/keys/"+k.KeyID, "").want(204)
	s.call("DELETE", "/v1/keys/"+k.KeyID, "").want(204)
	s.eventually("the key is refused", func() bool { return s.as(last, "GET", "/v1/meters", "").status == 401 })
	s.call("POST", "/v1/keys/"+k.KeyID+"/rotate", "").problem(409, "precondition_failed")
	s.call("GET", "/v1/keys/"+k.KeyID, "").want(200).into(&got)
	assert.EqualValues(t, "revoked", got.Status, got)
	s.call("DELETE", "/v1/keys/none", "").problem(404, "not_found")
	for body, field := range map[string]string{
		`{"scopes":["use"]}`:             "name",
		`{"name":"n"}`:                   "scopes",
		`{"name":"n","scopes":[]}`:       "scopes",
		`{"name":"n","scopes":["root"]}`: "scopes[0]",
		`{"name":"n","scopes":["use"],"expires_at":"2001-01-01T00:00:00Z"}`: "expires_at",
		`{"name":"n","scopes":["use"],"tenant":"<a>"}`:                      "tenant",
	} {
		s.call("POST", "/v1/keys", body).refused(field)
	}
	s.call("POST", "/v1/keys/"+k.KeyID+"/rotate", `{"overlap_seconds":604801}`).refused("overlap_seconds")
}

func TestAuthenticate_WrongKeys_LimitedPerAddress(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	guess := func() *answer {
		a := s.call("GET", "/v1/meters", "", "Authorization", "Bearer wrong")
		assert.True(t, a.closed, "the connection of a stranger stays open: %v", a.header)
		return a
	}
	guess().problem(401, "unauthenticated")
	testenv.Eventually(t, func() bool {
		var answers [40]*answer
		var guesses sync.WaitGroup
		for i := range answers { // sequential guesses may be slower than the limit
			guesses.Go(func() { answers[i] = guess() })
		}
		guesses.Wait()
		limited := slices.IndexFunc(answers[:], func(a *answer) bool { return a.status != 401 })
		if limited >= 0 {
			answers[limited].problem(429, "rate_limited")
		}
		return limited >= 0
	}, "an address that sends more than its wrong keys is limited")
	s.call("GET", "/v1/meters?limit=0", "").refused("limit") // a valid key always passes
	a := s.call("GET", "/nope", "", "Authorization")
	assert.True(t, a.status == 404 && a.closed, "%d %v", a.status, a.header)
	a = s.call("GET", "/nope", "")
	assert.False(t, a.closed, "the connection of a caller with a key is closed: %v", a.header)
}

func TestAuthenticate_HeaderTwice_Refused(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	for _, path := range []string{"/v1/meters", "/v1/authorize/nginx"} {
		for _, name := range []string{"Authorization", forwarded.HeaderKey} {
			if name == forwarded.HeaderKey && path == "/v1/meters" {
				continue
			}
			r := s.request("GET", path, nil)
			r.Header[name] = []string{"Bearer " + testKey, "Bearer other"}
			if name == forwarded.HeaderKey {
				r.Header[name] = []string{testKey, "other"}
			}
			if a := s.do(r); a.status == 200 || !strings.Contains(string(a.body), "must appear once") {
				t.Errorf("%s %s: %d %s", path, name, a.status, a.body)
			}
		}
	}
}

// TestAudit_EveryAdministrativeChange: each change has a line in the audit log with its actor, its object, the state
// before and after, and the reason.
func TestAudit_EveryAdministrativeChange(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	k := s.newKey(`{"name":"support","scopes":["admin"]}`)
	s.as(k, "PUT", "/v1/limits/r", `{"per":["tenant"],"kind":"token_bucket","rate":"1/s"}`, "X-Request-Id", "put-1").want(201)
	s.as(k, "PUT", "/v1/limits/r", `{"per":["tenant"],"kind":"token_bucket","rate":"1/s"}`).want(200) // changes nothing, so it has no line
	s.as(k, "PUT", "/v1/limits/r", `{"per":["tenant"],"kind":"token_bucket","rate":"2/s"}`).want(200)
	s.as(k, "DELETE", "/v1/limits/r", "").want(204)
	s.as(k, "PUT", "/v1/limits/bad", `{"per":["tenant"],"kind":"token_bucket","rate":"0/s"}`).want(400)
	s.as(k, "PATCH", "/v1/tenants/acme", `{"plan":"basic","apply":"now","usage":"reset","reason":"goodwill","dry_run":true}`).want(200)
	s.as(k, "PATCH", "/v1/tenants/acme", `{"timezone":"Europe/Berlin","reason":"moved"}`).want(200)
	s.as(k, "PUT", "/v1/blocks/ip/192.0.2.0/24", `{"reason":"abuse"}`).want(201)
	s.as(k, "DELETE", "/v1/blocks/ip/192.0.2.0/24", "").want(204)
	s.as(k, "PUT", "/v1/meters/m", `{"unit":"x"}`).want(201)
	s.as(k, "DELETE", "/v1/meters/m", "").want(204)
	s.as(k, "PUT", "/v1/plans/p", `{"allowances":[]}`).want(201)
	s.as(k, "PUT", "/v1/tenants/t2", `{"plan":"p"}`).want(201)

	page := decoded[client.AuditList](s.call("GET", "/v1/audit?actor="+k.KeyID, "").want(200))
	var got []string
	for i := range page.Items {
		l := &page.Items[i]
		assert.True(t, l.Actor == (client.AuditActor{KeyID: k.KeyID, Name: "support"}) && l.IP == "127.0.0.1" && l.RequestID != "" &&
			!l.At.IsZero(), l)
		got = append(got, fmt.Sprintf("%s %s %v>%v %s", l.Action, l.Object.ID, string(l.Before) != "null", string(l.After) != "null", l.Reason))
	}
	want := []string{
		"tenant.put t2 false>true ", "plan.put p false>true ", "meter.delete m true>false ", "meter.put m false>true ",
		"block.delete ip 192.0.2.0/24 true>false ", "block.put ip 192.0.2.0/24 false>true abuse", "tenant.patch acme true>true moved",
		"limit.delete r true>false ", "limit.put r true>true ", "limit.put r false>true ",
	}
	assert.Equal(t, want, got)
	first := page.Items[len(page.Items)-1]
	var after struct {
		Rate string `json:"rate"`
	}
	err := json.Unmarshal(first.After, &after)
	assert.True(t, err == nil && first.RequestID == "put-1" && after.Rate == "1/s", "%+v: %v", first, err)
	for query, want := range map[string]int{
		"action=limit.put&actor=" + k.KeyID: 2, "tenant=acme&actor=" + k.KeyID: 1, "actor=nobody": 0, "action=key.create": 1,
		"actor=" + k.KeyID + "&to=" + first.At.Format(time.RFC3339Nano): 0, "actor=" + k.KeyID + "&from=" + first.At.Format(time.RFC3339Nano): 10,
	} {
		s.call("GET", "/v1/audit?"+query, "").want(200).into(&page)
		assert.Len(t, page.Items, want, "%s: %d lines", query, len(page.Items))
	}
	seen := map[string]bool{}
	for _, l := range pages[client.AuditLine](s, "/v1/audit?", 3) {
		seen[l.AuditID] = true
	}
	var stored int
	s.check(s.pool.QueryRow(t.Context(), "SELECT count(*) FROM audit").Scan(&stored))
	assert.Len(t, seen, stored, "pages have %d lines of %d", len(seen), stored)
	s.call("GET", "/v1/audit?cursor=x", "").refused("cursor")
}

// TestAccessLine_HasTheKey: the access log names the key of a request.
func TestAccessLine_HasTheKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	k := s.newKey(`{"name":"n","scopes":["read"],"tenant":"acme"}`)
	s.as(k, "GET", "/v1/tenants/acme", "", headerRequestID, "line-1").want(http.StatusNotFound)
	s.eventually("the access line", func() bool { return s.log.With("line-1") != "" })
	line := s.log.With("line-1")
	assert.True(t, strings.Contains(line, `"key":"`+k.KeyID+`"`) && strings.Contains(line, `"tenant":"acme"`) && !strings.Contains(line, k.Secret), line)
}

// TestAudit_AmountsMoved: the audit log has grants, voids, adjustments, an administrator's refund, rolls and
// verifications. The line of each change names the API key that made it.
func TestAudit_AmountsMoved(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	use, admin := s.newKey(`{"name":"backend","scopes":["use"]}`), s.newKey(`{"name":"support","scopes":["admin"]}`)
	s.as(use, "POST", "/v1/debits", demandOf("acme", "calls", 3), headerIdempotencyKey, "d").want(200)
	s.as(use, "POST", "/v1/refunds", `{"tenant":"acme","operation_id":"d","amount":1}`, headerIdempotencyKey, "r1").want(200)
	grant := `{"meter":"credits","amount":5,"source":"topup","grant_id":"g","reason":"order 17"}`
	for range 2 { // the second is a replay
		s.as(admin, "POST", "/v1/tenants/acme/grants", grant, headerIdempotencyKey, "g").want(201)
	}
	s.as(admin, "POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":5,"source":"topup","dry_run":true}`).want(200)
	s.as(admin, "POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":5,"source":"topup","grant_id":"h","expires_at":"2098-01-01T00:00:00Z","reason":"order 18"}`,
		headerIdempotencyKey, "h").want(201)
	s.as(admin, "POST", "/v1/tenants/acme/grants/h/extend", `{"expires_at":null,"reason":"paid late"}`, headerIdempotencyKey, "x").want(200)
	s.as(admin, "POST", "/v1/tenants/acme/grants/g/void", `{"reason":"wrong order"}`, headerIdempotencyKey, "v").want(200)
	s.as(admin, "POST", "/v1/tenants/acme/adjustments", `{"meter":"calls","amount":-1,"reason":"drift"}`, headerIdempotencyKey, "a").want(200)
	s.as(admin, "POST", "/v1/refunds", `{"tenant":"acme","operation_id":"d","amount":1,"reason":"goodwill"}`, headerIdempotencyKey, "r2").want(200)
	s.as(admin, "POST", "/v1/rolls", "").want(202)
	s.as(admin, "POST", "/v1/verifications", `{"tenant":"acme"}`).want(202)

	page := decoded[client.AuditList](s.call("GET", "/v1/audit?actor="+admin.KeyID, "").want(200))
	var got []string
	for i := range page.Items {
		l := &page.Items[i]
		got = append(got, strings.TrimSpace(fmt.Sprint(l.Action, " ", l.Object.Tenant, " ", l.Reason)))
	}
	want := []string{
		"verification.start acme", "roll.start", "refund.create acme goodwill", "adjustment.create acme drift", "grant.void acme wrong order", "grant.extend acme paid late", "grant.create acme order 18",
		"grant.create acme order 17",
	}
	assert.Equal(t, want, got)
	s.call("GET", "/v1/audit?actor="+use.KeyID, "").want(200).into(&page)
	assert.Empty(t, page.Items, "use is in the audit log: %+v", page.Items)
	for operation, actor := range map[string]string{"d": use.KeyID, "r1": use.KeyID, "g": admin.KeyID, "a": admin.KeyID} {
		op := decoded[client.Operation](s.call("GET", "/v1/tenants/acme/operations/"+operation, "").want(200))
		for _, e := range op.Entries {
			assert.True(t, e.Actor == actor, "%s: entry by %q, want %q", operation, e.Actor, actor)
		}
	}
}

// TestPortalSession_LinksBeginWhereBrowsersFindTheService: a link begins with the configured base. If no base is
// configured, it begins with the base of the request's URL.
func TestPortalSession_LinksBeginWhereBrowsersFindTheService(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	var made client.PortalSession
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","expires_in_seconds":604800}`).want(201).into(&made)
	assert.True(t, strings.HasPrefix(made.URL, s.url+"/portal/"), "the link is %s, asked at %s", made.URL, s.url)
	s.server.cfg.LinkBase = "https://quota.example.com"
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme"}`).want(201).into(&made)
	assert.True(t, strings.HasPrefix(made.URL, "https://quota.example.com/portal/"), "the link is %s", made.URL)
	s.call("POST", "/v1/portal-sessions", `{"tenant":"nobody"}`).want(404)
	s.call("POST", "/v1/portal-sessions", `{"tenant":"acme","return_url":"javascript:alert(1)"}`).refused("return_url")
	s.call("DELETE", "/v1/tenants/nobody/portal-sessions", "").want(404)
	s.call("DELETE", "/v1/tenants/acme/portal-sessions", "").want(204)
	assert.NotContains(t, strings.Join(s.log.Lines(), " "), made.URL[len(made.URL)-20:], "the log has the secret")
}
