package pg

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Each check of a batch, of one tenant or of many, gets the answer that it gets alone.
func TestCheckBatch_AnswersAsCheck(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.meter("credits")
	b.allowance("pro", "api_calls", 10, "month", "overflow_meter = 'credits', overflow_price = 3, overage_policy = 'allow', overage_cap = 5")
	b.allowance("pro", "exports", 4, "day", "overflow_meter = 'credits', overflow_price = 1")
	b.allowance("team", "api_calls", 20, "month", "per_subject = 6")
	for i := range 6 {
		tenant := fmt.Sprint("t", i)
		b.signUp(tenant, []string{"pro", "team"}[i%2])
		if i%2 == 0 {
			b.mustGrant(tenant, "g", "credits", int64(10*i+1))
		}
	}
	b.mustDebit(debitOf("t2", "k", 7))
	for _, subject := range []string{"u1", "u2"} {
		d := debitOf("t3", "k-"+subject, 5)
		d.Subject = subject
		b.mustDebit(d)
	}
	question := rapid.Custom(func(rt *rapid.T) ledger.CheckRequest {
		q := ledger.CheckRequest{
			Tenant:  rapid.SampledFrom([]string{"t0", "t1", "t2", "t3", "t4", "t5", "nobody", "no id"}).Draw(rt, "tenant"),
			Subject: rapid.SampledFrom([]string{"", "u1", "u2", "u3"}).Draw(rt, "subject"),
		}
		meters := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"api_calls", "exports", "credits", "nothing"}), 0, 3, rapid.ID).Draw(rt, "meters")
		for _, meter := range meters {
			q.Items = append(q.Items, ledger.Item{Meter: meter, Amount: rapid.Int64Range(0, 30).Draw(rt, "amount")})
		}
		return q
	})
	rapid.Check(t, func(rt *rapid.T) {
		questions := rapid.SliceOfN(question, 1, 12).Draw(rt, "questions")
		together := b.CheckBatch(t.Context(), questions)
		if len(together) != len(questions) {
			rt.Fatalf("%d answers to %d questions", len(together), len(questions))
		}
		when := cmpopts.IgnoreFields(ledger.CheckResult{}, "AsOf")
		whenRead := cmpopts.IgnoreFields(ledger.BalanceCopy{}, "AsOf")
		for i, q := range questions {
			result, err := b.Check(t.Context(), q.Tenant, q.Subject, q.Items)
			if fmt.Sprint(together[i].Err) != fmt.Sprint(err) {
				rt.Fatalf("%+v: together %v, alone %v", q, together[i].Err, err)
			}
			if diff := cmp.Diff(result, together[i].Result, when, whenRead, cmpopts.IgnoreFields(ledger.Error{}, "AsOf", "RetryAfter", "Cause")); diff != "" {
				rt.Fatalf("%+v: alone, together:\n%s", q, diff)
			}
		}
	})
}

func TestCheckBatch_UnreadableBalance_FailsItsOwnCheckOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var questions []ledger.CheckRequest
	for i := range 7 {
		tenant := fmt.Sprint("t", i)
		b.simple(tenant, 10)
		b.mustDebit(debitOf(tenant, "k", 1))
		questions = append(questions, ledger.CheckRequest{Tenant: tenant, Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}})
	}
	b.exec("ALTER TABLE balances DISABLE TRIGGER USER")
	b.exec("UPDATE balances SET updated_at = 'infinity' WHERE tenant_id = 't4'")
	for i, out := range b.CheckBatch(t.Context(), questions) {
		switch {
		case i == 4:
			wantCode(t, out.Err, ledger.CodeInternal)
		case out.Err != nil || !out.Result.Allowed:
			t.Errorf("%s: %+v, %v", questions[i].Tenant, out.Result, out.Err)
		}
	}
}
