package httpapi

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// newcomersPerSecond is the number of tenants that the tests' service may create per second.
const newcomersPerSecond = 100

// signup creates the plan for new tenants. It has 3 credits, and 1,000 calls a month, of which one subject may use
// 600. More calls are paid with credits, 1 credit for 2 calls.
func (s *service) signup() *service {
	s.t.Helper()
	s.catalogue()
	s.call("PUT", "/v1/plans/signup", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"tenant","per_subject":600,
		"overflow":{"meter":"credits","price":{"units":1,"per":2}}},{"meter":"credits","amount":3,"every":"once","anchor":"calendar"}],"features":{"sso":true}}`).want(201)
	s.eventually("the plan is known", func() bool { return s.provisioner.Missing() == nil })
	return s
}

// made returns the number of tenants whose ids begin with prefix, and the number of their terms.
func (s *service) made(prefix string) (tenants, terms int) {
	s.t.Helper()
	s.check(s.pool.QueryRow(s.t.Context(), `SELECT (SELECT count(*) FROM tenants WHERE starts_with(tenant_id, $1)),
		(SELECT count(*) FROM tenant_terms WHERE starts_with(tenant_id, $1))`, prefix).Scan(&tenants, &terms))
	return tenants, terms
}

func TestNewcomer_ParallelFirstUses_MakeOneTenant(t *testing.T) {
	t.Parallel()
	s := newService(t).signup()
	testenv.Together(100, func(i int) {
		demand := demandOf("first", "calls", 5)
		switch i % 4 {
		case 0:
			s.send("/v1/consume", fmt.Sprint("k", i), demand).want(200)
		case 1:
			s.send("/v1/holds", fmt.Sprint("k", i), strings.Replace(demand, "{", fmt.Sprintf(`{"hold_id":"h%d",`, i), 1)).want(201, 200)
		default:
			s.debit(fmt.Sprint("k", i), "first", "calls", 5).want(200)
		}
	})
	tenants, terms := s.made("first")
	assert.True(t, tenants == 1 && terms == 1, "%d tenants with %d terms", tenants, terms)
	assert.EqualValues(t, 500, s.remaining("first", "calls"), "of 1000 remain after 100 uses of 5")
	a := s.call("GET", "/v1/audit?tenant=first", "").want(200)
	assert.True(t, strings.Count(string(a.body), `"action":"tenant.put"`) == 1, "%s", a.body)
	a = s.call("GET", "/v1/tenants/first", "").want(200)
	assert.Contains(t, string(a.body), `"plan":"signup"`, "%s", a.body)
}

func TestNewcomer_RefusedUse_MakesNoTenant(t *testing.T) {
	t.Parallel()
	s := newService(t).signup()
	s.call("PUT", "/v1/limits/closed", `{"per":["global"],"match":{"route":"/closed"},"kind":"token_bucket","rate":"1/h"}`).want(201)
	s.eventually("the limit is used up", func() bool {
		return s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/closed"}`).status == 429
	})
	s.send("/v1/consume", "limited", `{"tenant":"no-14","route":"/closed","items":[{"meter":"calls","amount":1}]}`).problem(429, "rate_limited")
	for i, body := range []string{
		demandOf("no-1", "calls", 1007), demandOf("no-2", "other", 1), demandOf("no-3", "nothing", 1), demandOf("no-4", "calls", 0), demandOf("no 5", "calls", 1),
		`{"tenant":"no-6","subject":"u","items":[{"meter":"calls","amount":601}]}`,
		`{"tenant":"no-7","items":[{"meter":"calls","amount":1},{"meter":"credits","amount":4}]}`,
		`{"tenant":"no-8","dry_run":true,"items":[{"meter":"calls","amount":1}]}`,
	} {
		for _, path := range []string{"/v1/debits", "/v1/consume"} {
			a := s.send(path, fmt.Sprint("k", i), body)
			assert.True(t, a.status == 200 == strings.Contains(body, "dry_run"),
				"%s %s: %d %s", path, body, a.status, a.body)
		}
	}
	s.send("/v1/holds", "h", `{"hold_id":"h","tenant":"no-9","items":[{"meter":"calls","amount":2000}]}`).want(402)
	s.send("/v1/consume", "f", `{"tenant":"no-10","feature":"beta","items":[{"meter":"calls","amount":1}]}`).problem(403, "feature_not_in_plan")
	s.call("POST", "/v1/check", `{"tenant":"no-11","feature":"sso"}`).want(200)
	s.call("POST", "/v1/debits/batch", `{"debits":[{"idempotency_key":"b","tenant":"no-12","items":[{"meter":"calls","amount":2000}]}]}`).want(200)
	s.call("GET", "/v1/tenants/no-13/balances", "").want(404)
	tenants, _ := s.made("no")
	assert.Zero(t, tenants, "refused uses have made %d tenants", tenants)
	s.call("POST", "/v1/debits/batch", `{"debits":[{"idempotency_key":"b","tenant":"yes-1","items":[{"meter":"calls","amount":7}]}]}`).want(200)
	s.call("GET", "/v1/authorize/nginx", "", forwarded.HeaderTenant, "yes-2", forwarded.HeaderMeter, "calls", "X-Original-URI", "/", "X-Original-Method", "GET").want(200)
	tenants, _ = s.made("yes")
	assert.True(t, tenants == 2, "%d tenants of 2 first uses", tenants)
	assert.EqualValues(t, 993, s.remaining("yes-1", "calls"), "remain")
}

// A check of a tenant that does not exist yet is answered like a check of a tenant on plan signup that has used
// nothing.
func TestNewcomer_Check_AnswersAsThePlanWould(t *testing.T) {
	t.Parallel()
	s := newService(t).signup()
	s.call("PUT", "/v1/tenants/twin", `{"plan":"signup"}`).want(201)
	for _, more := range []string{
		`"items":[{"meter":"calls","amount":1}]`, `"items":[{"meter":"calls","amount":1006}]`, `"items":[{"meter":"calls","amount":1007}]`,
		`"subject":"u","items":[{"meter":"calls","amount":601}]`, `"items":[{"meter":"credits","amount":3}]`, `"items":[{"meter":"credits","amount":4}]`,
		`"items":[{"meter":"calls","amount":1006},{"meter":"credits","amount":1}]`, `"items":[{"meter":"other","amount":1}]`, `"feature":"sso"`, `"feature":"beta"`,
	} {
		var twin, newcomer client.CheckAnswer
		s.call("POST", "/v1/check", `{"tenant":"twin","max_stale_ms":0,`+more+`}`).want(200).into(&twin)
		s.call("POST", "/v1/check", `{"tenant":"to-be",`+more+`}`).want(200).into(&newcomer)
		for i := range twin.Items {
			twin.Items[i].WouldSucceedAt = newcomer.Items[i].WouldSucceedAt // a month begins when its tenant is created
		}
		assert.True(t, twin.Allowed == newcomer.Allowed && twin.Code == newcomer.Code &&
			fmt.Sprint(twin.Items) == fmt.Sprint(newcomer.Items), "%s: %+v, but %+v", more, newcomer, twin)
	}
	tenants, _ := s.made("to-be")
	assert.Zero(t, tenants, "a check has made a tenant")
}

// If a client invents very many tenant ids, the service creates tenants at most at the configured rate. The refused
// requests get a Retry-After.
func TestNewcomer_Flood_IsBounded(t *testing.T) {
	t.Parallel()
	s := newService(t).signup()
	const asked = 4 * newcomersPerSecond
	var served, later atomic.Int64
	testenv.Together(8, func(worker int) {
		for i := range asked / 8 {
			a := s.debit("k", fmt.Sprintf("flood-%d-%d", worker, i), "calls", 1)
			switch {
			case a.status == 200:
				served.Add(1)
			case a.status == 503 && strings.Contains(string(a.body), "queue_full") && a.header.Get("Retry-After") != "":
				later.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		}
	})
	tenants, _ := s.made("flood")
	t.Logf("of %d first uses %d were served, %d refused", asked, served.Load(), later.Load())
	if int64(tenants) != served.Load() || served.Load()+later.Load() != asked || later.Load() == 0 && served.Load() > 0 && tenants > 10*newcomersPerSecond {
		t.Errorf("%d tenants, %d served, %d refused", tenants, served.Load(), later.Load())
	}
}
