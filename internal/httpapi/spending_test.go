package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestDebit_AnswersDrawsAndQuotaHeaders(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	a := s.debit("k1", "acme", "calls", 3).want(200)
	got := decoded[client.DebitAnswer](a)
	assert.True(t, time.Since(got.AsOf).Abs() <= testenv.Patience, "as_of is %s", got.AsOf)
	grant := got.Items[0].Draws[0].Grant
	want := client.DebitAnswer{OperationID: "k1", Tenant: "acme", AsOf: got.AsOf, Items: []client.DebitedItem{{
		Meter: "calls", Requested: 3, Charged: 3, Remaining: 7,
		Draws: []client.Draw{{Grant: grant, Source: client.SourceAllowance, Meter: "calls", Amount: 3}},
	}}}
	assert.Equal(t, want, got)
	assert.NotEmpty(t, grant)
	assert.True(t, a.number(headerQuotaLimit) == 10 && a.number(headerQuotaRemaining) == 7, "headers: %v", a.header)
	newYear := time.Date(got.AsOf.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, encoding.Ceil(newYear.Sub(got.AsOf), time.Second), a.number(headerQuotaReset), "reset")
	assert.True(t, a.header.Get(headerReplayed) == "" && a.header.Get("RateLimit") == "" &&
		a.header.Get(headerQuotaSource) == "", "headers: %v", a.header)
}

func TestDebit_SameKey_ReplayOr422(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	first := s.debit("k1", "acme", "calls", 3).want(200)
	again := s.debit("k1", "acme", "calls", 3).want(200)
	assert.True(t, again.header.Get(headerReplayed) == "true" && string(again.body) == string(first.body),
		"%v: %s, first %s", again.header, again.body, first.body)
	assert.True(t, again.number(headerQuotaRemaining) == 7, "headers: %v", again.header)
	s.debit("k1", "acme", "calls", 4).problem(422, "idempotency_key_reused")
	s.call("POST", "/v1/consume", demandOf("acme", "calls", 3), headerIdempotencyKey, "k1").problem(422, "idempotency_key_reused")
	body := `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"metadata":%s}`
	s.call("POST", "/v1/debits", fmt.Sprintf(body, `{"a":1,"b":[2]}`), headerIdempotencyKey, "k2").want(200)
	s.call("POST", "/v1/debits", fmt.Sprintf(body, `{ "b": [2], "a": 1 }`), headerIdempotencyKey, "k2").want(200)
	s.call("POST", "/v1/debits", fmt.Sprintf(body, `{"a":1,"b":[3]}`), headerIdempotencyKey, "k2").problem(422, "idempotency_key_reused")
	assert.EqualValues(t, 6, s.remaining("acme", "calls"), "remain")
}

func TestDebit_BeyondAllowance_429(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k1", "acme", "calls", 8).want(200)
	a := s.debit("k2", "acme", "calls", 3)
	p := a.problem(429, "quota_exceeded")
	assert.True(t, *p.Limiting == (client.Limiting{Kind: "allowance", Meter: "calls", Level: "tenant"}) && *p.Required == 3 &&
		*p.Available == 2, "%s", a.body)
	year := time.Now().UTC().Year() + 1
	assert.True(t, p.ResetAt != nil && p.ResetAt.Equal(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)),
		"reset_at: %v", p.ResetAt)
	assert.True(t, a.number(headerQuotaLimit) == 10 && a.number(headerQuotaRemaining) == 2 &&
		a.number(headerRetryAfter) == a.number(headerQuotaReset), "headers: %v", a.header)
	assert.EqualValues(t, 2, s.remaining("acme", "calls"), "remain")
	// An amount that exceeds every allowance is denied, too. Then waiting for the next period does not help.
	s.debit("k3", "acme", "calls", 11).want(402, 429)
}

func TestDebit_NeedsGrant_402ResetNull(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	a := s.debit("k1", "acme", "credits", 1)
	p := a.problem(402, "credits_exhausted")
	assert.True(t, p.Limiting.Kind == "credit" && p.ResetAt == nil &&
		strings.Contains(string(a.body), `"reset_at":null`), "%s", a.body)
	assert.True(t, a.number(headerQuotaRemaining) == 0 && a.number(headerQuotaLimit) == 0 &&
		a.header.Get(headerQuotaReset) == "", "headers: %v", a.header)
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":5,"source":"topup"}`, headerIdempotencyKey, "g1").want(201)
	s.debit("k1", "acme", "credits", 1).want(200) // denials are not stored, so the retry is decided again
}

func TestDebit_StoredDenial_Replayed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("PUT", "/v1/meters/money", `{"unit":"cent","denial_replay":true}`).want(201)
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"money","amount":0,"every":"once","anchor":"calendar"}]}`).want(201)
	s.tenant("acme")
	s.eventually("the snapshot has the meter", func() bool { return s.server.catalog.Snapshot().Meters["money"] != nil })
	s.debit("k1", "acme", "money", 1).problem(402, "credits_exhausted")
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"money","amount":5,"source":"topup"}`, headerIdempotencyKey, "g1").want(201)
	a := s.debit("k1", "acme", "money", 1)
	a.problem(402, "credits_exhausted")
	assert.EqualValues(t, "true", a.header.Get(headerReplayed), "headers: %v", a.header)
}

func TestDebit_Unknown404_NotInPlan403(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for _, path := range []string{"/v1/debits", "/v1/consume", "/v1/check"} {
		post := func(tenant, meter string) *answer {
			return s.call("POST", path, demandOf(tenant, meter, 1), headerIdempotencyKey, "k")
		}
		post("nobody", "calls").problem(404, "tenant_not_found")
		post("acme", "nothing").problem(404, "not_found")
		if path == "/v1/check" {
			c := decoded[client.CheckAnswer](post("acme", "other").want(200))
			assert.True(t, !c.Allowed && c.Code == "meter_not_in_plan", c)
			continue
		}
		post("acme", "other").problem(403, "meter_not_in_plan")
	}
}

func TestDebit_SuspendedTenant_403(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k1", "acme", "calls", 1).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"status":"suspended"}`).want(200)
	s.eventually("the suspension is known", func() bool { return s.debit("k2", "acme", "calls", 1).status == 403 })
	s.debit("k3", "acme", "calls", 1).problem(403, "tenant_suspended")
	s.call("POST", "/v1/consume", demandOf("acme", "calls", 1), headerIdempotencyKey, "k4").problem(403, "tenant_suspended")
	s.debit("k1", "acme", "calls", 1).want(200) // the stored answer is sent again
	c := decoded[client.CheckAnswer](s.call("POST", "/v1/check", demandOf("acme", "calls", 1)).want(200))
	assert.True(t, !c.Allowed && c.Code == "tenant_suspended", c)
}

func TestCheck_AnswersLikeDebit_ChargesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	check := func(amount int64, more string) (client.CheckAnswer, *answer) {
		body := fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}]%s}`, amount, more)
		a := s.call("POST", "/v1/check", body).want(200)
		c := decoded[client.CheckAnswer](a)
		return c, a
	}
	c, a := check(10, `,"max_stale_ms":0`)
	want := client.CheckAnswer{Allowed: true, Source: "ledger", AsOf: c.AsOf, Limits: []client.LimitVerdict{}, Items: []client.CheckedItem{
		{Meter: "calls", Required: 10, Remaining: 10, Limit: 10, MaxAllowedNow: 10},
	}}
	assert.Equal(t, want, c)
	assert.True(t, a.number(headerQuotaLimit) == 10 && a.number(headerQuotaRemaining) == 10 && a.number(headerQuotaReset) >= 1 &&
		a.header.Get(headerQuotaSource) == "ledger", "headers: %v", a.header)
	s.debit("k", "acme", "calls", 8).want(200)
	c, a = check(3, `,"max_stale_ms":0`)
	assert.True(t, !c.Allowed && c.Code == "quota_exceeded" && c.Limiting.Kind == "allowance" && c.Items[0].MaxAllowedNow == 2 &&
		!c.Items[0].WouldSucceedAt.IsZero(), "%s", a.body)
	assert.True(t, a.header.Get(headerRetryAfter) == "" && a.number(headerQuotaRemaining) == 2, "headers: %v", a.header)
	if c, a = check(1, ""); a.header.Get(headerQuotaSource) == "" || a.header.Get(headerQuotaSource) != string(c.Source) {
		t.Errorf("source %q and %q", a.header.Get(headerQuotaSource), c.Source)
	}
	assert.EqualValues(t, 2, s.remaining("acme", "calls"), "remain")
}

// limited creates the limit search with 2 tokens for /search, and the limit watch in shadow mode.
func (s *service) limited() *service {
	s.t.Helper()
	s.catalogue()
	s.call("PUT", "/v1/limits/search", `{"per":["tenant","route"],"match":{"route":"/search"},"kind":"token_bucket","rate":"2/h"}`).want(201)
	s.call("PUT", "/v1/limits/watch", `{"per":["tenant"],"kind":"token_bucket","rate":"1/day","mode":"shadow"}`).want(201)
	s.eventually("the snapshot has the limits", func() bool { return len(s.server.catalog.Snapshot().Limits) == 2 })
	return s
}

func TestConsume_ChargesBothOrNeither(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *Config) { c.LegacyHeaders = []limitheaders.Legacy{"x-ratelimit-delta", "ratelimit"} })
	s.limited()
	consume := func(key string, amount int64) *answer {
		body := fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"route":"/search"}`, amount)
		return s.call("POST", "/v1/consume", body, headerIdempotencyKey, key)
	}
	a := consume("k1", 1).want(200)
	assert.True(t, a.header.Get("RateLimit-Policy") == `"search";q=2;w=3600` &&
		a.header.Get("RateLimit") == `"search";r=1;t=1800`, "headers: %v", a.header)
	assert.True(t, a.header.Get("X-RateLimit-Limit") == "2" && a.header.Get("RateLimit-Remaining") == "1" &&
		a.header.Get("X-RateLimit-Reset") == "1800", "headers: %v", a.header)
	replay := consume("k1", 1).want(200)
	assert.EqualValues(t, "true", replay.header.Get(headerReplayed), "headers: %v", replay.header)
	consume("k2", 100).want(402, 429) // the balance denies this, so the token is refunded
	consume("k3", 1).want(200)
	a = consume("k4", 1)
	p := a.problem(429, "rate_limited")
	assert.True(t, p.Type == typeQuotaExceeded && len(p.ViolatedPolicies) == 1 && p.ViolatedPolicies[0] == "search" &&
		p.RetryAfterMs >= 1, "%s", a.body)
	rule, left, wait := a.limit()
	assert.True(t, rule == "search" && left == 0, "headers: %v", a.header)
	if a.number(headerRetryAfter) < wait || wait < 1 || encoding.Ceil(time.Duration(p.RetryAfterMs)*time.Millisecond, time.Second) != wait {
		t.Errorf("t=%d, Retry-After %d, retry_after_ms %d", wait, a.number(headerRetryAfter), p.RetryAfterMs)
	}
	assert.True(t, a.number(headerQuotaRemaining) == 8 && a.number(headerQuotaLimit) == 10, "headers: %v", a.header)
	assert.EqualValues(t, 8, s.remaining("acme", "calls"), "remain")
	var c client.CheckAnswer
	check := s.call("POST", "/v1/check", `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"route":"/search","ip":"192.0.2.1"}`).want(200)
	check.into(&c)
	assert.True(t, !c.Allowed && c.Code == "rate_limited" && len(c.Limits) == 2 && check.header.Get("RateLimit") != "",
		"%v %s", check.header, check.body)
	// The access log names the limit that denied the request. It does not name limits in shadow mode.
	for _, denied := range []*answer{a, check} {
		id := denied.header.Get(headerRequestID)
		s.eventually("the access line", func() bool { return s.log.With(id) != "" })
		assert.Contains(t, s.log.With(id), `"violated":"search"`)
	}
}

func TestConsume_CostBeyondCapacity_422(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	// The API refuses a limit with a cost above its burst, so such a limit cannot exist.
	s.call("PUT", "/v1/limits/small", `{"per":["tenant"],"kind":"token_bucket","rate":"2/h","cost":3}`).refused("cost")
}

func TestDebit_DryRun_AnswersLikeDebit(t *testing.T) {
	t.Parallel()
	s := newService(t).limited()
	before := s.state()
	dry := func(path, more string, amount int64, extra ...string) *answer {
		body := fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"dry_run":true%s}`, amount, more)
		return s.call("POST", path, body, extra...)
	}
	for range 5 {
		got := decoded[client.DebitAnswer](dry("/v1/debits", "", 10).want(200))
		assert.True(t, got.DryRun && got.Items[0].Remaining == 0, got)
		dry("/v1/consume", `,"route":"/search"`, 10).want(200)
	}
	got := dry("/v1/debits", "", 1, headerIdempotencyKey, "mine").want(200)
	assert.Contains(t, string(got.body), `"operation_id":"mine"`, "%s", got.body)
	dry("/v1/debits", "", 11).want(402, 429)
	var g client.GrantAnswer
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":5,"source":"promo","dry_run":true}`).want(200).into(&g)
	assert.True(t, g.DryRun && g.Balance.Remaining == 5, g)
	var b client.DebitBatchAnswer
	s.call("POST", "/v1/debits/batch", `{"dry_run":true,"debits":[`+demandOf("acme", "calls", 7)+`,`+demandOf("acme", "calls", 7)+`]}`).want(200).into(&b)
	assert.True(t, len(b.Results) == 2 && b.Results[0].Status == 200 && b.Results[1].Status == 200 &&
		b.Results[1].DryRun, b)
	assert.Equal(t, before, s.state())
}

func TestDebitBatch_AnswersEach(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	debit := func(key, tenant, meter string, amount int64) string {
		return fmt.Sprintf(`{"idempotency_key":%q,%s`, key, demandOf(tenant, meter, amount)[1:])
	}
	body := `{"debits":[` + strings.Join([]string{
		debit("a", "acme", "calls", 4), debit("a", "acme", "calls", 4), debit("a", "acme", "calls", 5), debit("b", "acme", "calls", 7),
		debit("c", "nobody", "calls", 1), debit("d", "acme", "credits", 1), debit("e", "acme", "calls", 6),
	}, ",") + `]}`
	a := s.call("POST", "/v1/debits/batch", body).want(200)
	got := decoded[client.DebitBatchAnswer](a)
	type short struct {
		Status   int
		Replayed bool
		Code     string
	}
	results := answers.Map(got.Results, func(r *client.BatchResult) short {
		return short{r.Status, r.Replayed, string(r.Code)}
	})
	want := []short{
		{200, false, ""},
		{200, true, ""},
		{422, false, "idempotency_key_reused"},
		{429, false, "quota_exceeded"},
		{404, false, "tenant_not_found"},
		{402, false, "credits_exhausted"},
		{200, false, ""},
	}
	assert.Equal(t, want, results)
	assert.True(t, got.Results[0].OperationID == "a" && got.Results[0].Items[0].Remaining == 6 && *got.Results[3].Available == 6 &&
		got.Results[3].ResetAt != nil, "%s", a.body)
	assert.Zero(t, a.number(headerQuotaRemaining), "headers: %v", a.header)
	again := s.call("POST", "/v1/debits/batch", body).want(200)
	again.into(&got)
	assert.True(t, got.Results[0].Replayed && got.Results[6].Replayed && got.Results[3].Status == 429, "%s", again.body)
	assert.Zero(t, s.remaining("acme", "calls"), "remain")
}

// TestDebitBatch_MetadataRefused_OthersAreDone: metadata often comes from end users, so it must not stop the debits of
// others.
func TestDebitBatch_MetadataRefused_OthersAreDone(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	debit := func(key, more string) string {
		return fmt.Sprintf(`{"idempotency_key":%q,%s%s`, key, more, demandOf("acme", "calls", 1)[1:])
	}
	list := []string{
		debit("a", `"metadata":{"n":1e309},`), debit("b", `"metadata":{"n":1e308},`), debit("c", `"metadata":{"a":[{"n":-2e308}]},`),
		debit("d", `"metadata":{"n":`+strings.Repeat("9", 65)+`},`), debit("e", ``), debit("f", `"metadata":{"n":"\u0000"},`),
	}
	for range 40 { // more than the faults of one answer
		list = append(list, debit("a", `"metadata":{"n":1e309},`))
	}
	body := `{"debits":[` + strings.Join(list, ",") + `]}`
	for range 2 {
		for i, r := range decoded[client.DebitBatchAnswer](s.call("POST", "/v1/debits/batch", body).want(200)).Results {
			if i == 1 || i == 4 {
				assert.Equal(t, 200, r.Status, "%d: %+v", i, r)
				continue
			}
			assert.True(t, r.Status == 400 && r.Code == client.ProblemCodeInvalidArgument && len(r.Errors) == 1 && r.Errors[0].Field == "metadata",
				"%d: %+v", i, r)
		}
	}
	assert.EqualValues(t, 8, s.remaining("acme", "calls"))
	s.call("POST", "/v1/debits/batch", `{"debits":[`+list[4]+`,`+debit("a", `"metadata":[],`)+`]}`).refused("debits[1].metadata")
	for _, whole := range []string{debit("", `"metadata":{"n":1e309},`), debit("a", `"metadata":{"n":1e309},"mode":"force",`)} {
		a := s.call("POST", "/v1/debits/batch", `{"debits":[`+list[4]+`,`+whole+`]}`).want(400)
		assert.NotContains(t, string(a.body), "metadata", "a fault of the whole body: %s", a.body)
	}
}

func TestDebitBatch_OneInvalid_RefusedWhole(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	good := `{"idempotency_key":"a",` + demandOf("acme", "calls", 1)[1:]
	for body, field := range map[string]string{
		`{"debits":[]}`: "debits",
		`{"debits":[` + strings.Repeat(good+",", 1000) + good + `]}`:           "debits",
		`{"debits":[` + good + `,` + demandOf("acme", "calls", 1) + `]}`:       "debits[1].idempotency_key",
		`{"debits":[` + good + `,{"idempotency_key":""}]}`:                     "debits[1].idempotency_key",
		`{"debits":[` + good + `,` + demandOf("acme", "calls", 0) + `]}`:       "debits[1].items[0].amount",
		`{"debits":[` + good + `,` + good[:len(good)-1] + `,"route":"/"}]}`:    "debits[1].route",
		`{"debits":[` + good + `,` + good[:len(good)-1] + `,"mode":"force"}]}`: "debits[1].mode",
	} {
		s.call("POST", "/v1/debits/batch", body).refused(field)
	}
	assert.Equal(t, before, s.state())
	full := make([]string, 1000)
	for i := range full {
		full[i] = fmt.Sprintf(`{"idempotency_key":"k%d",%s`, i, demandOf("acme", "calls", 1)[1:])
	}
	var got client.DebitBatchAnswer
	s.call("POST", "/v1/debits/batch", `{"debits":[`+strings.Join(full, ",")+`]}`).want(200).into(&got)
	made := 0
	for _, r := range got.Results {
		if r.Status == 200 {
			made++
		}
	}
	assert.True(t, len(got.Results) == 1000 && made == 10, "%d results, %d made", len(got.Results), made)
}

func TestIdempotencyKey_RequiredAndBounded(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for path, body := range map[string]string{
		"/v1/debits": demandOf("acme", "calls", 1), "/v1/consume": demandOf("acme", "calls", 1),
		"/v1/tenants/acme/grants": `{"meter":"credits","amount":1,"source":"topup"}`,
	} {
		before := s.state()
		p := s.call("POST", path, body).problem(400, "idempotency_key_missing")
		assert.Contains(t, p.Detail, headerIdempotencyKey, p)
		for _, key := range []string{"", strings.Repeat("k", 256), "a b", "a\tb", "§open", "é"} {
			s.call("POST", path, body, headerIdempotencyKey, key).refused(headerIdempotencyKey)
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer " + testKey}, headerIdempotencyKey: {"a", "b"}}
		s.do(r).refused(headerIdempotencyKey)
		assert.Equal(t, before, s.state(), path)
		for _, key := range []string{path + "!", path + strings.Repeat("~", 255-len(path))} {
			s.call("POST", path, body, headerIdempotencyKey, key).want(200, 201)
		}
	}
	s.call("POST", "/v1/rolls", `{}`, headerIdempotencyKey, "").refused(headerIdempotencyKey)
}
