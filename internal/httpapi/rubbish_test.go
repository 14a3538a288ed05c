package httpapi

import (
	"encoding/json/v2"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// fullBodies returns, for each operation with a body, a valid body with every field. If an operation needs an
// existing object, its path names an object that materials creates.
func fullBodies() map[string]struct{ method, path, body string } {
	const limit = `"per":["tenant","route","ip"],"match":{"method":"GET","route":"/x/**","meter":"calls","plan":"basic","tenant":"acme"},"kind":"fixed_window","rate":"60/day",` +
		`"burst":60,"debt":9,"ban":{"after":3,"within":"1m","for":"10m"},"cost":2,"costs":[{"route":"/x/*","cost":3}],"cost_by":"amount","replaces":"to-replace","timezone":"tenant","mode":"enforce",` +
		`"on_backend_error":"open","region_share":100,"counts":"attempts","route_key":"path","normalize":["case"],"ip_prefix":{"v4":24,"v6":56}`
	const block = `{"action":"block","expires_at":"2099-01-01T00:00:00Z","reason":"abuse","tenant":"acme"}`
	const demand = `"tenant":"acme","items":[{"meter":"calls","amount":1}],"subject":"u1"`
	const change = `"mode":"normal","metadata":{"a":1},"dry_run":false`
	const terms = `"plan":"basic","anchor":"2026-01-31T00:00:00Z","timezone":"Europe/Berlin","status":"active","metadata":{"a":1},` +
		`"overrides":{"calls":50},"features":{"sso":true}`
	return map[string]struct{ method, path, body string }{
		"check":      {"POST", "/v1/check", `{` + demand + `,"feature":"sso","route":"/x","ip":"192.0.2.1","method":"GET","max_stale_ms":5}`},
		"checkBatch": {"POST", "/v1/check/batch", `{"checks":[{` + demand + `,"feature":"sso","route":"/x","ip":"192.0.2.1","method":"GET","max_stale_ms":5}]}`},
		"consume":    {"POST", "/v1/consume", `{` + demand + `,"feature":"sso","route":"/x","ip":"2001:db8::1","method":"GET",` + change + `}`},
		"debit":      {"POST", "/v1/debits", `{` + demand + `,` + strings.Replace(change, "false", "true", 1) + `,"at":"` + time.Now().AddDate(0, 6, 0).UTC().Format(time.RFC3339) + `"}`},
		"debitBatch": {"POST", "/v1/debits/batch", `{"debits":[{"idempotency_key":"k",` + demand + `,` + change + `}],"dry_run":false}`},
		"grant": {"POST", "/v1/tenants/acme/grants", `{"meter":"calls","amount":5,"source":"topup","subject":"u1","grant_id":"g1","priority":7,
			"effective_at":"2026-01-01T00:00:00Z","expires_at":"2099-01-01T00:00:00+02:00","cost_basis":"0.01 EUR","reason":"sold","dry_run":false}`},
		"putMeter": {"PUT", "/v1/meters/fresh", `{"unit":"call","description":"Calls","kind":"counter","denial_replay":true,"dimensions":["model"]}`},
		"putPlan": {"PUT", "/v1/plans/fresh", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant",
			"rollover":{"min":1,"max":5},"overage":{"policy":"allow","cap":3,"at_period_end":"preserve"},"overflow":{"meter":"credits","price":2},"per_subject":4,"alert_at":[50,80]},
			{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}],"limits":[{"rule":"r",` + limit + `}],"features":{"sso":true},"apply":"now"}`},
		"setGauge":                {"PUT", "/v1/tenants/sitting/gauges/desks", `{"value":1,"dry_run":false}`},
		"putTenant":               {"PUT", "/v1/tenants/fresh", `{` + terms + `}`},
		"patchTenant":             {"PATCH", "/v1/tenants/acme", `{` + terms + `,"apply":"now","prorate":true,"usage":"carry","reason":"sold","dry_run":false}`},
		"putLimit":                {"PUT", "/v1/limits/fresh", `{` + limit + `}`},
		"putLimitOverride":        {"PUT", "/v1/limits/by-subject/overrides/acme", `{"rate":"7/s","burst":9,"expires_at":"2099-01-01T00:00:00Z"}`},
		"putSubjectLimitOverride": {"PUT", "/v1/limits/by-subject/overrides/acme/u1", `{"rate":"7/s","burst":9,"expires_at":"2099-01-01T00:00:00Z"}`},
		"putBlock":                {"PUT", "/v1/blocks/subject/u9", block},
		"putBlockPrefix":          {"PUT", "/v1/blocks/ip/192.0.2.0/24", `{"action":"allow","expires_at":"2099-01-01T00:00:00Z","reason":"office"}`},
		"hold": {"POST", "/v1/holds", `{"tenant":"acme","hold_id":"fresh","items":[{"meter":"calls","amount":1}],"subject":"u1","ttl_seconds":60,
			"metadata":{"a":1},"dry_run":false}`},
		"captureHold": {"POST", "/v1/holds/to-capture/capture", `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"final":true,"on_expired":"regrant","dry_run":false}`},
		"releaseHold": {"POST", "/v1/holds/to-release/release", `{"tenant":"acme","on_expired":"forfeit","dry_run":false}`},
		"extendHold":  {"POST", "/v1/holds/to-extend/extend", `{"tenant":"acme","ttl_seconds":60,"dry_run":false}`},
		"refund": {"POST", "/v1/refunds", `{"tenant":"acme","operation_id":"to-refund","at":"2999-01-01T00:00:00Z","amount":1,"meter":"calls","on_expired":"regrant",
			"reason":"wrong","dry_run":false}`},
		"voidGrant":   {"POST", "/v1/tenants/acme/grants/to-void/void", `{"reason":"unpaid","meter":"calls","dry_run":false}`},
		"extendGrant": {"POST", "/v1/tenants/acme/grants/to-extend/extend", `{"expires_at":"2099-01-01T00:00:00Z","reason":"paid late","meter":"calls","dry_run":false}`},
		"adjust": {"POST", "/v1/tenants/acme/adjustments", `{"meter":"calls","amount":7,"reason":"counted twice","subject":"u1",
			"dry_run":false}`},
		"acquireLease": {"POST", "/v1/leases", `{"rule":"exports","tenant":"acme","subject":"u1","route":"/search","ip":"192.0.2.1",
			"ttl_seconds":60,"dry_run":false}`},
		"chargeLimits":        {"POST", "/v1/limits/charge", `{"tenant":"acme","subject":"u1","route":"/x","ip":"192.0.2.1","method":"GET","cost":1,"after_the_fact":true,"rules":["to-reset"],"dry_run":false}`},
		"settleCharge":        {"POST", "/v1/limits/charge/settle", `{"charge_id":"` + chargeToRefund + `","cost":0}`},
		"refundCharge":        {"POST", "/v1/limits/charge/refund", `{"charge_id":"` + chargeToRefund + `"}`},
		"renewLease":          {"POST", "/v1/leases/" + leaseToRenew + "/renew", `{"ttl_seconds":60}`},
		"startRoll":           {"POST", "/v1/rolls", `{"as_of":"2026-01-01T00:00:00Z"}`},
		"resetLimit":          {"POST", "/v1/limits/to-reset/reset", `{"tenant":"acme","subject":"u1","route":"/nowhere","ip":"192.0.2.1"}`},
		"startVerification":   {"POST", "/v1/verifications", `{"tenant":"acme"}`},
		"createKey":           {"POST", "/v1/keys", `{"name":"n","scopes":["use","read"],"tenant":"acme","expires_at":"2099-01-01T00:00:00Z"}`},
		"createPortalSession": {"POST", "/v1/portal-sessions", `{"tenant":"acme","expires_in_seconds":60,"return_url":"https://app.example.com/billing"}`},
		"rotateKey":           {"POST", "/v1/keys/to-rotate/rotate", `{"overlap_seconds":60}`},
		"createWebhook":       {"POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/","types":["plan.changed"],"tenant":"acme","status":"paused"}`},
		"patchWebhook":        {"PATCH", "/v1/webhooks/to-change", `{"url":"http://127.0.0.1:1/","types":["plan.changed"],"status":"active"}`},
		"rotateWebhook":       {"POST", "/v1/webhooks/to-change/rotate", `{"overlap_seconds":60}`},
		"replayWebhook":       {"POST", "/v1/webhooks/to-change/replay", `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`},
		"advanceTestClock":    {"POST", "/v1/test/clock", `{"advance":"1s"}`},
		"applyCatalog": {"POST", "/v1/catalog", `{"meters":{"fresh":{"unit":"call"}},"plans":{"fresh":{"allowances":[]}},"limits":{"fresh":{"per":["tenant"],"kind":"token_bucket","rate":"1/s"}},` +
			`"tenants":{"fresh":{"plan":"fresh"}},"blocks":[{"kind":"subject","tenant":"acme","value":"u8","action":"block","expires_at":"2099-01-01T00:00:00Z","reason":"abuse"}],"dry_run":false,"prune":false}`},
	}
}

// chargeToRefund is the id of an old charge of acme. The id is valid in every instance of the tests.
const chargeToRefund = "AQAAAaILBt4KJOtfUfcK4eMEYWNtZQAAAQh0by1yZXNldAACAGQ60EmtpoUVlP60XkGiIyU"

// leaseToRenew is the id of a lease: tenant acme, limit exports, idempotency key to-renew. The id is the same in every
// instance.
const leaseToRenew = "IAqjbRj_1NcVeczgxxBbd3f0fijzB7PW8kdKmKlKbTQXMaV-XP0Z9QOm4blub0I65w"

// materials creates the objects that the bodies and paths of fullBodies name.
func (s *service) materials() {
	s.t.Helper()
	s.catalogue()
	s.call("PUT", "/v1/meters/desks", `{"unit":"desk","kind":"gauge"}`).want(201)
	s.call("PUT", "/v1/plans/featured", `{"allowances":[{"meter":"calls","amount":10,"every":"year","anchor":"calendar"},{"meter":"credits","amount":0,"every":"once","anchor":"calendar"},
		{"meter":"desks","amount":5}],"features":{"sso":true}}`).want(201)
	s.call("PUT", "/v1/tenants/sitting", `{"plan":"featured"}`).want(201)
	s.call("PATCH", "/v1/tenants/acme", `{"features":{"sso":true}}`).want(200)
	_, err := s.pool.Exec(s.t.Context(), "INSERT INTO keys (key_id, name, scopes) VALUES ('to-rotate', 'n', '{use}')") // a client cannot choose key_id
	s.check(err)
	_, err = s.pool.Exec(s.t.Context(), "INSERT INTO webhooks (webhook_id, url, types, status) VALUES ('to-change', 'http://127.0.0.1:1/', '{plan.changed}', 'active')")
	s.check(err)
	s.call("PUT", "/v1/limits/exports", `{"per":["tenant"],"kind":"concurrency","burst":9}`).want(201)
	s.eventually("the snapshot has exports", func() bool { return len(s.server.catalog.Snapshot().Limits) == 1 })
	var lease client.LeaseAnswer
	s.call("POST", "/v1/leases", `{"rule":"exports","tenant":"acme"}`, headerIdempotencyKey, "to-renew").want(201).into(&lease)
	require.True(s.t, lease.LeaseID == leaseToRenew, "the lease is %s", lease.LeaseID)
	s.call("PUT", "/v1/limits/by-subject", `{"per":["subject"],"kind":"token_bucket","rate":"60000/s"}`).want(201)
	s.call("PUT", "/v1/limits/to-replace", `{"per":["tenant"],"kind":"token_bucket","rate":"60/s"}`).want(201)
	grant := func(id string) {
		s.call("POST", "/v1/tenants/acme/grants", fmt.Sprintf(`{"meter":"calls","amount":100,"source":"topup","grant_id":%q}`, id), headerIdempotencyKey, id).want(201)
	}
	s.limitNamed("to-reset", `{"per":["tenant","subject","route","ip"],"match":{"route":"/nowhere"},"kind":"token_bucket","rate":"1/s"}`)
	s.eventually("the limit is known", func() bool {
		return slices.ContainsFunc(s.server.catalog.Snapshot().Limits, func(l *catalog.Limit) bool { return l.Rule == "to-reset" })
	})
	grant("to-keep")
	grant("to-void")
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"calls","amount":100,"source":"topup","grant_id":"to-extend","expires_at":"2098-01-01T00:00:00Z"}`,
		headerIdempotencyKey, "g-to-extend").want(201)
	s.debit("to-refund", "acme", "calls", 3).want(200)
	for _, id := range []string{"to-capture", "to-release", "to-extend"} {
		s.call("POST", "/v1/holds", fmt.Sprintf(`{"tenant":"acme","hold_id":%q,"items":[{"meter":"calls","amount":2}]}`, id), headerIdempotencyKey, id).want(201)
	}
}

// fault is a body with one fault, and the field that the answer must name.
type fault struct{ body, field string }

// faultsAt returns bodies with a value that the schema forbids at the given path. The function `put` returns the body
// with `raw` as this value.
func faultsAt(schema *openapi3.Schema, path string, put func(raw string) string) []fault {
	var out []fault
	wrong := func(raws ...string) {
		for _, raw := range raws {
			out = append(out, fault{put(raw), path})
		}
	}
	if refusesNull(schema) {
		wrong("null")
	}
	switch {
	case len(schema.OneOf) > 0: // a price or a feature
		wrong("[]", `"x"`, "-1", "1.5")
	case schema.Type.Includes("integer"):
		if *schema.Min < 0 { // a difference, which must not be 0
			wrong("0", "-0", "--1", "-1.5", `"-1"`, "-1"+strings.Repeat("0", 30))
		} else {
			wrong("-1")
		}
		wrong(`"1"`, "1.5", "1.01", "1e3", "1E2", "true", "[1]", "{}", `""`, "9007199254740992", "18446744073709551617", "1"+strings.Repeat("0", 30), "1e400")
		wrong(fmt.Sprint(int64(*schema.Min)-1), fmt.Sprint(int64(*schema.Max)+1))
	case schema.Type.Includes("boolean"):
		wrong(`"true"`, "1", "0", "[]", "{}")
	case schema.Type.Includes("string"):
		wrong("1", "true", "[]", "{}", `"\u0000"`, `"a\u0000b"`)
		if schema.MinLength > 0 || schema.Pattern != "" || schema.Format == "date-time" || schema.Enum != nil {
			wrong(`""`)
		}
		if schema.MaxLength != nil {
			wrong(`"` + strings.Repeat("x", int(*schema.MaxLength)+1) + `"`)
		}
		if schema.Enum != nil {
			wrong(`"nonsense"`, `"Normal"`)
		}
		if schema.Format == "date-time" {
			wrong(`"yesterday"`, `"2026-01-01"`, `"2026-13-01T00:00:00Z"`, `"2026-02-30T00:00:00Z"`, `"9999-01-01T00:00:00Z"`, `"9998-01-01T00:00:00Z"`,
				`"10000-01-01T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"2026-01-01 00:00:00"`)
		}
		if strings.HasPrefix(schema.Pattern, "^[A-Za-z0-9]") {
			wrong(`"a b"`, `"a/b"`, `"{a}"`, `" a"`, `"-a"`, `"\u00e9"`, `"`+strings.Repeat("x", 129)+`"`)
		}
		if strings.HasPrefix(schema.Pattern, "^[!$&-") {
			wrong(`"a b"`, `"a%b"`, `"a<b"`, `".a"`, `"\u00e9"`, `"`+strings.Repeat("x", 256)+`"`)
		}
		if strings.HasPrefix(schema.Pattern, "^[!-~]") {
			wrong(`"a b"`, `"\u00e9"`, `"`+strings.Repeat("x", 256)+`"`)
		}
	case schema.Type.Includes("array"):
		wrong("{}", `"x"`, "1")
		if schema.MinItems > 0 {
			wrong("[]")
		}
	default:
		wrong("[]", `"x"`, "1", "true")
	}
	return out
}

// refusesNull reports whether null is a fault of a required value. Elsewhere, null means never.
func refusesNull(schema *openapi3.Schema) bool {
	return schema.Format != "date-time" || !schema.Type.Includes("null")
}

// faultsOfBody returns faults for every field of an object, and for the fields of the objects in it.
func faultsOfBody(schema *openapi3.Schema, object map[string]any, path string, put func(raw string) string) []fault {
	var out []fault
	encode := func(change func(m map[string]any)) string {
		m := maps.Clone(object)
		change(m)
		return put(encoded(m))
	}
	out = append(out, fault{encode(func(m map[string]any) { m["surprise"] = 1 }), body.Join(path, "surprise")})
	once, name := encoded(object), firstKey(object)
	out = append(out, fault{put(once[:len(once)-1] + fmt.Sprintf(`,%q:1}`, name)), body.Join(path, name)})
	for name, ref := range schema.Properties {
		at := body.Join(path, name)
		with := func(raw string) string {
			return replaced(encode(func(m map[string]any) { m[name] = hole }), raw)
		}
		faults, required := faultsAt(ref.Value, at, with), slices.Contains(schema.Required, name)
		if !required && refusesNull(ref.Value) {
			faults = faults[1:] // the first fault is null, which means absent
		}
		out = append(out, faults...)
		if required {
			out = append(out, fault{encode(func(m map[string]any) { delete(m, name) }), at})
		}
		switch value := object[name].(type) {
		case map[string]any:
			if amounts := ref.Value.AdditionalProperties.Schema; amounts != nil {
				out = append(out, faultsOfMap(amounts.Value, value, at, with)...)
			}
			if len(ref.Value.Properties) > 0 { // metadata may have any members
				out = append(out, faultsOfBody(ref.Value, value, at, with)...)
			}
		case []any:
			element := func(raw string) string {
				return with(replaced(encoded(append([]any{hole}, value[1:]...)), raw))
			}
			inner := ref.Value.Items.Value
			out = append(out, faultsAt(inner, at+"[0]", element)...)
			if m, ok := value[0].(map[string]any); ok {
				out = append(out, faultsOfBody(inner, m, at+"[0]", element)...)
			}
			if ref.Value.MaxItems != nil && *ref.Value.MaxItems < 500 {
				list := slices.Repeat([]any{value[0]}, int(*ref.Value.MaxItems)+1)
				out = append(out, fault{with(encoded(list)), at})
			}
		}
	}
	return out
}

// faultsOfMap returns faults for an object with field names that the client chooses.
func faultsOfMap(schema *openapi3.Schema, object map[string]any, path string, put func(raw string) string) []fault {
	name := firstKey(object)
	out := faultsAt(schema, body.Join(path, name), func(raw string) string { return put(fmt.Sprintf(`{%q:%s}`, name, raw)) })
	isNull := func(s *openapi3.SchemaRef) bool { return s.Value.Type.Includes("null") }
	if schema.Type.Includes("null") || slices.ContainsFunc(schema.OneOf, isNull) {
		out = out[1:] // the first fault is null
	}
	for _, wrong := range []string{"a b", "-a", "a/b", "é"} {
		out = append(out, fault{put(fmt.Sprintf(`{%q:1}`, wrong)), body.Join(path, wrong)})
	}
	return append(out, fault{put(fmt.Sprintf(`{%q:1,%q:1}`, name, name)), body.Join(path, name)})
}

// hole marks the position in a body at which raw text is inserted. That text may be invalid JSON.
const hole = "@hole@"

func replaced(body, raw string) string { return strings.Replace(body, `"`+hole+`"`, raw, 1) }

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func firstKey(m map[string]any) string {
	return slices.Min(slices.Collect(maps.Keys(m)))
}

func TestBodies_EveryWrongFieldIs400AndNamed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.materials()
	operations := 0
	for _, item := range contract().Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			operations++
			good, ok := fullBodies()[op.OperationID]
			if !ok {
				t.Errorf("%s has no full body in this test", op.OperationID)
				continue
			}
			schema := op.RequestBody.Value.Content.Get(typeJSON).Schema.Value
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(good.body), &object))
			alternatives := map[string]int{"setGauge": 1, "patchTenant": 1} // value or delta; apply now or effective_at
			if len(object) != len(schema.Properties)-alternatives[op.OperationID] {
				t.Errorf("%s: the full body has %d of %d fields", op.OperationID, len(object), len(schema.Properties))
			}
			before, sent := s.state(), 0
			for _, f := range faultsOfBody(schema, object, "", func(raw string) string { return raw }) {
				sent++
				a := s.call(good.method, good.path, f.body, headerIdempotencyKey, fmt.Sprint("k", sent))
				names := ""
				var p client.Problem
				if a.status == 400 && json.Unmarshal(a.body, &p) == nil && p.Code == "invalid_argument" {
					for _, e := range p.Errors {
						names += e.Field + " "
						if e.Field == f.field && e.Message != "" {
							names = f.field
							break
						}
					}
				}
				assert.Equal(t, f.field, names,
					"%s: %.200s\n%d, want a fault of %q, not %q: %.300s", op.OperationID, f.body, a.status, f.field, names, a.body)
			}
			assert.Equal(t, before, s.state(), op.OperationID)
			assert.True(t, sent >= min(15, 8*len(schema.Properties)), "%s: only %d faults", op.OperationID, sent)
			a := s.call(good.method, good.path, good.body, headerIdempotencyKey, "good-"+op.OperationID)
			assert.True(t, a.status < 400, "%s: the full body is refused: %s", op.OperationID, a.body)
		}
	}
	assert.Equal(t, len(fullBodies()), operations,
		"%d operations with a body, %d bodies", operations, len(fullBodies()))
}

func TestBodies_NotJSONObject_400(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.materials()
	big := func(n int) string {
		body := demandOf("acme", "calls", 1)
		return body + strings.Repeat(" ", n-len(body))
	}
	for operation, good := range fullBodies() {
		before := s.state()
		send := func(body string, extra ...string) *answer {
			return s.call(good.method, good.path, body, append(extra, headerIdempotencyKey, "k")...)
		}
		for _, body := range []string{
			" ", "null", "[]", `"x"`, "1", "{", good.body + "{}", good.body + "x", good.body[:len(good.body)-1], good.body + "\x00", "\xef\xbb\xbf" + good.body,
		} {
			p := send(body).problem(400, "invalid_argument")
			assert.NotEmpty(t, p.Errors, "%s: %q: %+v", operation, body, p)
		}
		if operation != "startRoll" && operation != "startVerification" && operation != "resetLimit" && operation != "rotateKey" && operation != "rotateWebhook" { // an empty body means now, or all
			send("").refused("body")
		}
		send(big(bodyMax + 1)).refused("body")
		for _, given := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/problem+json", ";"} {
			send(good.body, "Content-Type", given).refused("Content-Type")
		}
		assert.Equal(t, before, s.state(), operation)
	}
	s.call("POST", "/v1/debits", big(bodyMax), headerIdempotencyKey, "k1").want(200)
	s.call("POST", "/v1/debits", demandOf("acme", "calls", 1), headerIdempotencyKey, "k2", "Content-Type", "application/json; charset=UTF-8").want(200)
	s.call("POST", "/v1/debits", demandOf("acme", "calls", 1), headerIdempotencyKey, "k3", "Content-Type").want(200)
}

func TestBodies_UnknownLength_SameBound(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for extra, status := range map[int]int{0: 200, 1: 400} {
		good := demandOf("acme", "calls", 1)
		body := good + strings.Repeat(" ", bodyMax-len(good)+extra)
		r := s.request("POST", "/v1/debits", struct{ *strings.Reader }{strings.NewReader(body)}, headerIdempotencyKey, fmt.Sprint("k", extra))
		r.ContentLength = -1
		a := s.do(r)
		assert.True(t, a.status == status, "%d bytes: %d %s", len(body), a.status, a.body)
	}
}

func TestBodies_UnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	debit := demandOf("acme", "calls", 1)
	s.call("POST", "/v1/check", debit[:len(debit)-1]+`,"mode":"normal"}`, headerIdempotencyKey, "k").refused("mode")
	for _, path := range []string{"/v1/authorize/apache", "/v1/secrets"} {
		s.call("POST", path, `{}`, headerIdempotencyKey, "k").problem(404, "not_found")
	}
	assert.Equal(t, before, s.state())
}

func TestPaths_EncodedIDsAreChecked(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	bodies := fullBodies()
	for template, item := range contract().Paths.Map() {
		if !strings.Contains(template, "{") || strings.Contains(template, "{operation_id}") || strings.Contains(template, "{lease_id}") {
			continue
		}
		for method, op := range item.Operations() {
			for i, segment := range strings.Split(template, "/") {
				if !strings.HasPrefix(segment, "{") || anyMethod(op) { // the path of a gateway has no ids
					continue
				}
				for _, id := range []string{"a b", "a<b", "a\"b", "a\x00", "\x00", "a\n", "é", ".a", "..", "a%b", "a?b", "a#b", "\xff", strings.Repeat("x", 256)} {
					segments := strings.Split(template, "/")
					for j := range segments {
						if good, ok := goodSegments(template)[segments[j]]; ok {
							segments[j] = good
						} else if strings.HasPrefix(segments[j], "{") {
							segments[j] = "acme"
						}
					}
					segments[i] = url.PathEscape(id)
					query := ""
					if op.OperationID == "listPeriods" {
						query = "?meter=calls"
					}
					a := s.call(method, strings.Join(segments, "/")+query, bodies[op.OperationID].body, headerIdempotencyKey, "k")
					a.refused(strings.Trim(segment, "{}"))
				}
			}
		}
	}
	assert.Equal(t, before, s.state())
	for _, id := range []string{"a", "a.b_c:d-e", strings.Repeat("x", 128)} {
		s.call("PUT", "/v1/meters/"+id, `{"unit":"call"}`).want(201)
		s.call("GET", "/v1/meters/"+url.PathEscape(id), "").want(200)
	}
	s.call("GET", "/v1/meters/%61", "").want(200) // %61 is the letter a
}

// goodSegments returns valid values for those path parameters of a template that are not ids.
func goodSegments(template string) map[string]string {
	if strings.HasSuffix(template, "{bits}") {
		return map[string]string{"{kind}": "ip", "{value}": "192.0.2.0", "{bits}": "24"}
	}
	return map[string]string{"{kind}": "tenant"}
}

func TestQuery_IsStrict(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, c := range [][2]string{
		{"/v1/meters?limit=0", "limit"},
		{"/v1/meters?limit=501", "limit"},
		{"/v1/meters?limit=1.0", "limit"},
		{"/v1/meters?limit=", "limit"},
		{"/v1/meters?limit=-1", "limit"},
		{"/v1/meters?limit=99999999999999999999", "limit"},
		{"/v1/meters?limit=1&limit=2", "limit"},
		{"/v1/meters?cursor=", "cursor"},
		{"/v1/meters?cursor=%00", "cursor"},
		{"/v1/meters?cursor=!!", "cursor"},
		{"/v1/meters?cursor=AAAA", "cursor"},
		{"/v1/meters?cursor=" + strings.Repeat("x", 1025), "cursor"},
		{"/v1/meters?Limit=1", "Limit"},
		{"/v1/meters?x=1", "x"},
		{"/v1/meters?a=%zz", "query"},
		{"/v1/meters?a;b", "query"},
		{"/v1/meters/calls?x", "x"},
		{"/v1/tenants/acme/entries?from=9999-01-01T00:00:00Z", "from"},
		{"/v1/tenants/acme/entries?to=now", "to"},
		{"/v1/tenants/acme/entries?meter=a%20b", "meter"},
		{"/v1/tenants/acme/entries?kind=%00", "kind"},
		{"/v1/tenants/acme/entries?cursor=AAAA", "cursor"},
		{"/v1/tenants/acme/entries?subject=a%20b", "subject"},
		{"/v1/tenants/acme/grants?meter=", "meter"},
		{"/v1/tenants/acme/grants?cursor=bm9uc2Vuc2U", "cursor"},
		{"/v1/tenants/acme/periods", "meter"},
		{"/v1/tenants/acme/periods?meter=calls&next=0", "next"},
		{"/v1/tenants/acme/balances?subject=", "subject"},
		{"/v1/tenants/acme/balances?as_of=", "as_of"},
		{"/v1/tenants/acme/balances/calls?as_of=yesterday", "as_of"},
		{"/v1/tenants/acme/balances/calls?as_of=2026-01-01", "as_of"},
		{"/v1/tenants/acme/balances/calls?as_of=0001-01-01T00:00:00Z", "as_of"},
		{"/v1/tenants/acme/balances/calls?as_of=9997-01-01T00:00:00Z", "as_of"},
		{"/v1/tenants/acme/balances?as_of=9997-01-01T00:00:00Z", "as_of"},
		{"/v1/tenants/acme/balances/calls?subject=a%20b", "subject"},
		{"/v1/tenants/acme/balances/calls?subject=u&subject=v", "subject"},
		{"/v1/tenants/acme/periods?meter=calls&next=101", "next"},
		{"/v1/tenants/acme/periods?meter=calls&next=1e1", "next"},
	} {
		s.call("GET", c[0], "").refused(c[1])
	}
	s.call("POST", "/v1/debits?dry_run=true", demandOf("acme", "calls", 1), headerIdempotencyKey, "k").refused("dry_run")
	assert.EqualValues(t, 10, s.remaining("acme", "calls"), "remain")
}
