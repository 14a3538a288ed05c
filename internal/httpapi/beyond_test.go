package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
)

func TestQuotaHeaders_RemainingAtMostLimit(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	denied := func(a *answer, remaining, available int64) {
		t.Helper()
		p := a.problem(http.StatusPaymentRequired, "credits_exhausted")
		assert.True(t, a.number(headerQuotaLimit) == 5 && a.number(headerQuotaRemaining) == remaining && p.Available != nil &&
			*p.Available == available, "limit %d, remaining %d: %s", a.number(headerQuotaLimit), a.number(headerQuotaRemaining), a.body)
	}
	for _, remaining := range []int64{5, 0} { // 5 units are granted, and overage may add 4
		denied(s.debit("over", "acme", "jobs", 100), remaining, remaining+4)
		denied(s.do(s.request("GET", "/v1/authorize/traefik", nil, forwarded.HeaderTenant, "acme", forwarded.HeaderMeter, "jobs", forwarded.HeaderAmount, "100",
			forwarded.HeaderMode, forwarded.ModeCheck)), remaining, remaining+4)
		if remaining > 0 {
			s.debit("spent", "acme", "jobs", remaining).want(200)
		}
	}
	s.debit("early", "acme", "calls", 1).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"overrides":{"calls":2},"apply":"now"}`).want(200)
	a := s.debit("early", "acme", "calls", 1).want(200)
	limit, remaining := a.number(headerQuotaLimit), a.number(headerQuotaRemaining)
	assert.True(t, a.header.Get(headerReplayed) == "true" && remaining == 9 && limit >= remaining, "a replay shows %d of %d", remaining, limit)
}

func TestListBalances_PlanAndGrantsOnly(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	s.debit("no", "acme", "other", 1).problem(http.StatusForbidden, "meter_not_in_plan")
	s.send("/v1/debits", "seat", `{"tenant":"acme","items":[{"meter":"seats","amount":1}],"subject":"u1"}`).want(200)
	for query, want := range map[string]int{"": 4, "?subject=u1": 1, "?subject=u2": 1, "?as_of=" + time.Now().UTC().Format(time.RFC3339Nano): 4} {
		list := decoded[client.BalanceList](s.call("GET", "/v1/tenants/acme/balances"+query, "").want(200))
		assert.Len(t, list.Items, want, "%q", query)
		for _, b := range list.Items {
			assert.True(t, b.Meter != "other" && (b.Subject == "" || b.Meter == "seats"), "%q: got %+v", query, b)
		}
	}
	p := s.call("GET", "/v1/tenants/acme/balances/credits?subject=u1", "").problem(http.StatusForbidden, "meter_not_in_plan")
	assert.True(t, p.Detail == `the plan of tenant "acme" has no cap per subject on meter "credits", and no grant was ever issued to subject "u1"`,
		"got %q", p.Detail)
}

func TestListEntries_ImpossibleFilter_400(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	for i := range 3 {
		s.debit([]string{"a", "b", "c"}[i], "acme", "calls", 1).want(200)
	}
	var page client.EntryList
	s.call("GET", "/v1/tenants/acme/entries?meter=calls&kind=debit&limit=1", "").want(200).into(&page)
	require.NotNil(t, page.NextCursor, "there is no second page")
	for query, field := range map[string]string{
		"kind=nonsense": "kind", "kind=Debit": "kind", "kind=": "kind",
		"from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "to", "from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z": "to",
		"meter=jobs&cursor=" + *page.NextCursor: "cursor",
	} {
		s.call("GET", "/v1/tenants/acme/entries?"+query, "").refused(field)
	}
	var grants client.GrantList
	s.send("/v1/tenants/acme/grants", "more", `{"meter":"credits","amount":7,"source":"topup"}`).want(201)
	s.call("GET", "/v1/tenants/acme/grants?meter=credits&limit=1", "").want(200).into(&grants)
	s.call("GET", "/v1/tenants/acme/grants?meter=jobs&cursor="+*grants.NextCursor, "").refused("cursor")
}

func TestUsage_IncludesRefundsOfOverage(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	s.debit("job", "acme", "jobs", 7).want(200)
	s.send("/v1/refunds", "back", `{"tenant":"acme","operation_id":"job"}`).want(200)
	var list client.UsageList
	now := time.Now().UTC()
	s.call("GET", "/v1/tenants/acme/usage?meter=jobs&from="+now.Add(-24*time.Hour).Format(time.RFC3339)+"&to="+now.Add(24*time.Hour).Format(time.RFC3339), "").want(200).into(&list)
	used, overage, refunded := int64(0), int64(0), int64(0)
	for _, u := range list.Items {
		used, overage, refunded = used+u.Used, overage+u.Overage, refunded+u.Refunded
	}
	assert.True(t, used == 5 && overage == 2 && refunded == 7,
		"used %d, overage %d, refunded %d", used, overage, refunded)
}

func TestRefund_NothingLeft_NamesOperation(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	s.debit("job", "acme", "jobs", 3).want(200)
	s.send("/v1/refunds", "part", `{"tenant":"acme","operation_id":"job","amount":1}`).want(200)
	for body, field := range map[string]string{`{"tenant":"acme","operation_id":"job","amount":3}`: "amount", `{"tenant":"acme","operation_id":"job"}`: "operation_id"} {
		p := s.send("/v1/refunds", field, body).want(200, 422)
		if field == "operation_id" {
			p = s.send("/v1/refunds", "again", body)
		}
		got := p.problem(http.StatusUnprocessableEntity, "refund_exceeds_debit")
		assert.True(t, len(got.Errors) == 1 && got.Errors[0].Field == field, "%s: got %+v", body, got.Errors)
	}
}

func TestGrant_ReplayIsByteIdentical(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	const body = `{"meter":"jobs","amount":3,"source":"promo","grant_id":"gift"}`
	first := s.send("/v1/tenants/acme/grants", "gift", body).want(201)
	s.send("/v1/tenants/acme/grants", "more", `{"meter":"jobs","amount":30,"source":"topup"}`).want(201)
	s.call("PUT", "/v1/plans/bare", `{"allowances":[]}`).want(201)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"bare","apply":"now"}`).want(200)
	again := s.send("/v1/tenants/acme/grants", "gift", body).want(201)
	assert.True(t, string(again.body) == string(first.body) && again.header.Get(headerReplayed) == "true",
		"first:\n%s\nagain:\n%s", first.body, again.body)
}

func TestGrant_DryRun_RefusesTakenID(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	const path = "/v1/tenants/acme/grants"
	s.call("POST", path, `{"meter":"credits","amount":5,"source":"topup","grant_id":"paid","dry_run":true}`).problem(http.StatusConflict, "precondition_failed")
	s.call("POST", path, `{"meter":"jobs","amount":5,"source":"topup","grant_id":"paid","dry_run":true}`).want(200)
}
