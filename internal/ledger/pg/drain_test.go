package pg

import (
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A drain by a subject at its cap leaves the tenant's balances as the same drain without a subject does, under each
// kind of plan, also in the next period. The use beyond the cap is overage of the subject's balance.
func TestDrain_BySubjectAtItsCap_TenantFiguresAsWithout(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	at := time.Now().Add(-time.Minute).UTC()
	for plan, terms := range map[string]string{
		"denied":   "overage_policy = 'deny'",
		"allowed":  "overage_policy = 'allow', overage_cap = 10",
		"preserve": "overage_policy = 'allow', overage_at_period_end = 'preserve'",
		"overflow": "overflow_meter = 'credits', overflow_price = 1",
	} {
		b.plan(plan, 1, at, "api_calls 15 hour tenant", "credits 50 once tenant")
		b.exec("UPDATE plan_allowances SET per_subject = 5 WHERE plan = $1 AND meter = 'api_calls'", plan)
		b.exec("UPDATE plan_allowances SET "+terms+" WHERE plan = $1 AND meter = 'api_calls'", plan)
		for _, tenant := range []string{plan + "-with", plan + "-without"} {
			b.tenant(tenant, plan, at, at, "UTC")
		}
	}
	drain := func(tenant, subject, key string, amount int64) charge {
		d := debitFor(subject, tenant, key, amount)
		d.Mode = ledger.ModeDrain
		first := chargeOf(b.mustDebit(d).Items[0])
		wantEqual(t, tenant+" replayed", chargeOf(b.mustDebit(d).Items[0]), first)
		return first
	}
	same := func(plan string) {
		t.Helper()
		for _, meter := range []string{"api_calls", "credits"} {
			want := b.mustBalance(plan+"-without", meter).Sums
			wantEqual(t, plan+" "+meter, b.mustBalance(plan+"-with", meter).Sums, want)
		}
	}
	for _, plan := range []string{"denied", "allowed", "preserve", "overflow"} {
		for key, amount := range map[string]int64{"small": 12, "large": 30} {
			got, want := drain(plan+"-with", "ann", key, amount), drain(plan+"-without", "", key, amount)
			wantEqual(t, plan+" "+key, got, want)
		}
		same(plan)
		wantSums(t, b.mustSubject(plan+"-with", "api_calls", "ann"), ledger.Sums{Granted: 5, Used: 5, Overage: 37})
	}
	for _, plan := range []string{"denied", "preserve"} { // one refund in the period, the others after its end
		for _, tenant := range []string{plan + "-with", plan + "-without"} {
			mustDo(b, &ledger.Refund{Tenant: tenant, Key: "r", OperationID: "large", Amount: 3})
		}
		same(plan)
	}
	moved.Advance(time.Hour)
	for _, plan := range []string{"denied", "allowed", "preserve", "overflow"} {
		same(plan)
		for _, tenant := range []string{plan + "-with", plan + "-without"} {
			mustDo(b, &ledger.Refund{Tenant: tenant, Key: "late", OperationID: "large"})
		}
		same(plan)
	}
	b.mustVerify()
}
