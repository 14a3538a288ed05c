package httpapi

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

func TestPatchTenant_PlanChangeNextPeriodOrNow(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue()
	s.call("PUT", "/v1/plans/large", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar"}]}`).want(201)
	s.debit("k1", "acme", "calls", 4).want(200)
	remaining := func() (balance wire.Balance) {
		t.Helper()
		s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200).into(&balance)
		return balance
	}
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"large"}`).want(200)
	if got := remaining(); got.Granted != 10 || got.Remaining != 6 {
		t.Errorf("a change for the next period: %+v", got)
	}
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic"}`).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"large","apply":"now"}`).want(200)
	if got := remaining(); got.Granted != 1000 || got.Used != 0 || got.Remaining != 1000 {
		t.Errorf("a change now: %+v", got)
	}
	s.debit("k2", "acme", "calls", 900).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"nothing","apply":"now"}`).want(404)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","prorate":true}`).refused("prorate")
	s.call("PATCH", "/v1/tenants/acme", `{"apply":"now"}`).refused("apply")
	if got := remaining(); got.Remaining != 100 {
		t.Errorf("a refused change changed something: %+v", got)
	}
}
