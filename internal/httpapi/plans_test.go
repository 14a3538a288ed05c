package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

func TestPutPlan_KeepsAllowance(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const body = `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant","rollover":{"min":2,"max":5},
		"overage":{"policy":"allow","cap":0},"overflow":{"meter":"credits","price":3},"per_subject":0},
		{"meter":"credits","amount":0,"every":"day","anchor":"calendar","overage":{"policy":"deny"},"rollover":{"max":1}},
		{"meter":"other","amount":5,"every":"once","anchor":"calendar","expires_in_days":14}]}`
	want := []client.Allowance{
		{
			Meter: "calls", Amount: 10, Every: client.AllowanceEveryMonth, Anchor: client.AllowanceAnchorTenant, Rollover: &client.Rollover{Min: 2, Max: 5},
			Overage: &client.Overage{Policy: client.OveragePolicyAllow, Cap: new(int64(0))}, Overflow: &client.Overflow{Meter: "credits", Price: client.Price{Units: 3, Per: 1}}, PerSubject: new(int64(0)),
		},
		{
			Meter: "credits", Every: client.AllowanceEveryDay, Anchor: client.AllowanceAnchorCalendar, Rollover: &client.Rollover{Max: 1},
			Overage: &client.Overage{Policy: client.OveragePolicyDeny},
		},
		{Meter: "other", Amount: 5, Every: client.AllowanceEveryOnce, Anchor: client.AllowanceAnchorCalendar, ExpiresInDays: new(int64(14))},
	}
	for _, a := range []*answer{s.call("PUT", "/v1/plans/p", body).want(201), s.call("PUT", "/v1/plans/p", body).want(200), s.call("GET", "/v1/plans/p", "").want(200)} {
		got := decoded[client.Plan](a)
		assert.Equal(t, want, got.Allowances)
		assert.True(t, got.Version == 1 && strings.Contains(string(a.body), `"price":3}`), "version %d", got.Version)
	}
}

func TestPutPlan_ContradictoryAllowance_400(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	for more, field := range map[string]string{
		`"rollover":{"min":6,"max":5}`:               "rollover.min",
		`"rollover":{"min":1}`:                       "rollover.max",
		`"overage":{"policy":"deny","cap":1}`:        "overage.cap",
		`"overage":{"cap":1}`:                        "overage.policy",
		`"overflow":{"meter":"calls","price":1}`:     "overflow.meter",
		`"overflow":{"meter":"credits"}`:             "overflow.price",
		`"overflow":{"meter":"credits","price":0}`:   "overflow.price",
		`"overflow":{"meter":"credits","price":1.5}`: "overflow.price",
		`"per_subject":-1`:                           "per_subject",
		`"expires_in_days":14`:                       "expires_in_days",
		`"expires_in_days":0`:                        "expires_in_days",
		`"expires_in_days":3661`:                     "expires_in_days",
	} {
		body := `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant",` + more + `}]}`
		s.call("PUT", "/v1/plans/p", body).refused("allowances[0]." + field)
	}
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1,"every":"once","anchor":"tenant","rollover":{"max":1}}]}`).
		refused("allowances[0].rollover")
	const overflowing = `"amount":1,"every":"month","anchor":"tenant","overflow":{"price":1,"meter":`
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls",`+overflowing+`"credits"}},{"meter":"credits",`+overflowing+`"other"}}]}`).
		refused("allowances[0].overflow.meter")
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls",`+overflowing+`"credits"}}]}`).refused("allowances[0].overflow.meter") // p has no credits
	assert.Equal(t, before, s.state())
	a := s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant","overflow":{"meter":"none","price":1}}]}`)
	assert.False(t, a.status != 400 && a.status != 404 ||
		!strings.Contains(string(a.body), `"field":"allowances[0].overflow.meter"`), "%d %s", a.status, a.body)
}

func TestPutPlan_PriceAsRatio(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const plan = `{"allowances":[{"meter":"calls","amount":5,"every":"month","anchor":"tenant","overflow":{"meter":"credits","price":%s}},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}]}`
	put := func(price string) *answer { return s.call("PUT", "/v1/plans/ai", fmt.Sprintf(plan, price)) }
	for _, price := range []string{
		`{}`, `{"units":1}`, `{"units":0,"per":5}`, `{"units":1,"per":0}`, `{"units":1,"per":2.5}`, `{"units":1,"per":9007199254740992}`, `"1/1000"`,
		`{"units":1,"per":3,"rounded":"up"}`, `[1,1000]`, `null`, `{"units":1,"units":2,"per":3}`,
	} {
		a := put(price)
		assert.True(t, a.status == 400 && strings.Contains(string(a.body), "price"),
			"%s: %d %s", price, a.status, a.body)
	}
	a := put(`{"units":1,"per":1000}`)
	a.want(201)
	assert.Contains(t, string(a.body), `"price":{"units":1,"per":1000}`, "%s", a.body)
	a = put(`{"units":1,"per":1000}`)
	assert.Contains(t, string(a.want(200).body), `"version":1`, "the same once more: %s", a.body)
	s.call("PUT", "/v1/tenants/chat", `{"plan":"ai"}`).want(201)
	s.send("/v1/tenants/chat/grants", "paid", `{"meter":"credits","amount":2,"source":"topup"}`).want(201)
	s.debit("k1", "chat", "calls", 1505).want(200)
	assert.Zero(t, s.remaining("chat", "credits"), "credits remain")
	s.send("/v1/refunds", "r1", `{"tenant":"chat","operation_id":"k1","amount":600}`).want(200)
	assert.EqualValues(t, 1, s.remaining("chat", "credits"), "credits remain after a refund of 600 of 1,500")
	a = put(`{"units":2,"per":1}`)
	assert.Contains(t, string(a.want(200).body), `"price":2}`, "an integer per one is an integer: %s", a.body)
}

func TestDebit_LargestPriceIsExact(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const largest = 9007199254740991
	s.call("PUT", "/v1/plans/dear", fmt.Sprintf(`{"allowances":[
		{"meter":"calls","amount":0,"every":"year","anchor":"calendar","overflow":{"meter":"credits","price":%d}},
		{"meter":"credits","amount":%d,"every":"year","anchor":"calendar"}]}`, largest, largest)).want(201)
	s.call("PUT", "/v1/tenants/rich", `{"plan":"dear"}`).want(201)
	p := s.debit("k1", "rich", "calls", largest).problem(402, "credits_exhausted")
	assert.True(t, *p.Available == 1 && *p.Required == largest, p)
	s.debit("k2", "rich", "calls", 2).want(402)
	assert.EqualValues(t, largest, s.remaining("rich", "credits"), "credits remain")
	s.debit("k3", "rich", "calls", 1).want(200)
	assert.Zero(t, s.remaining("rich", "credits"), "credits remain")
}
