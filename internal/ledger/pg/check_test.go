package pg

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Each check of a batch gets the same answer as without the other checks. The checks are of one tenant or of many
// tenants.
func TestCheckBatch_AnswersAsCheck(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
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
		b.mustDebit(debitFor(subject, "t3", "k-"+subject, 5))
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
		require.Len(rt, together, len(questions), "%d answers to %d questions", len(together), len(questions))
		for i, q := range questions {
			result, err := b.Check(t.Context(), q.Tenant, q.Subject, q.Items)
			require.Equal(rt, fmt.Sprint(err), fmt.Sprint(together[i].Err),
				"%+v: together %v, alone %v", q, together[i].Err, err)
			require.Equal(rt, timeless(result), timeless(together[i].Result), "%+v", q)
		}
	})
}

func TestCheckBatch_UnreadableBalance_FailsItsOwnCheckOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var questions []ledger.CheckRequest
	for _, tenant := range b.several(7, 10) {
		b.mustDebit(debitOf(tenant, "k", 1))
		questions = append(questions, ledger.CheckRequest{Tenant: tenant, Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}})
	}
	b.exec("ALTER TABLE balances DISABLE TRIGGER USER")
	b.exec("UPDATE balances SET updated_at = 'infinity' WHERE tenant_id = 't4'")
	for i, out := range b.CheckBatch(t.Context(), questions) {
		switch {
		case i == 4:
			wantCode(t, out.Err, errcode.Internal)
		case out.Err != nil || !out.Result.Allowed:
			t.Errorf("%s: %+v, %v", questions[i].Tenant, out.Result, out.Err)
		}
	}
}

// A check that is answered from the row of its balance gets the same answer as from a view, which also has the grants
// and terms.
func TestCheckBatch_FromRows_AnswersAsView(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at := time.Now().UTC().Add(-100 * time.Hour)
	b.allowance("pro", "api_calls", 100, "month", "overage_policy = 'allow', overage_cap = 5")
	b.allowance("pro", "exports", 4, "once", "")
	b.allowance("team", "api_calls", 20, "month", "per_subject = 6")
	b.allowance("small", "api_calls", 3, "day", "")
	b.meter("credits", "nothing")
	tenants := []string{"nobody"}
	for i := range 9 {
		tenant := fmt.Sprint("t", i)
		tenants = append(tenants, tenant)
		b.signUp(tenant, []string{"pro", "team", "small"}[i%3])
		if i < 6 {
			b.mustDebit(debitOf(tenant, "k", 2))
		}
		if i%2 == 0 {
			b.mustGrant(tenant, "g", "api_calls", int64(5*i+1))
		}
		if i%3 == 0 {
			b.mustDebit(&ledger.Debit{Tenant: tenant, Key: "once", Items: []ledger.Item{{Meter: "exports", Amount: 1}}})
		}
	}
	expiring := topupOf("t1", "e", "api_calls", 9)
	expiring.ExpiresAt = time.Now().Add(time.Hour)
	pending := topupOf("t2", "p", "api_calls", 9)
	pending.EffectiveAt = time.Now().Add(time.Hour)
	mustDo(b, expiring)
	mustDo(b, pending)
	mustDo(b, holdOf("t3", "h", "h", 2))
	question := rapid.Custom(func(rt *rapid.T) ledger.CheckRequest {
		q := ledger.CheckRequest{Tenant: rapid.SampledFrom(tenants).Draw(rt, "tenant"), Subject: rapid.SampledFrom([]string{"", "u1"}).Draw(rt, "subject")}
		for _, meter := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"api_calls", "exports", "credits", "nothing"}), 1, 2, rapid.ID).Draw(rt, "meters") {
			q.Items = append(q.Items, ledger.Item{Meter: meter, Amount: rapid.Int64Range(0, 30).Draw(rt, "amount")})
		}
		return q
	})
	compare := func(what string) (fromRows int) {
		rapid.Check(t, func(rt *rapid.T) {
			q := question.Draw(rt, "question")
			var row, view CheckOutcome
			b.checkViews(t.Context(), []*check{{&q, &view}}) // also reads the plan's allowance
			rest := b.checkRows(t.Context(), []*check{{&q, &row}})
			require.True(rt, row.Err == nil, row.Err)
			if len(rest) > 0 {
				return
			}
			fromRows++
			require.NoError(rt, view.Err, "%s: %+v", what, q)
			require.Equal(rt, timeless(view.Result), timeless(row.Result), "%s: %+v", what, q)
		})
		return fromRows
	}
	assert.NotZero(t, compare("at first"), "no question was answered from rows: nothing was compared")
	// A change of terms that applies at once ends periods without writing their balances. A change that does not
	// apply at once ends only the periods without an interval.
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate) SELECT tenant_id, clock_timestamp(), 'small', $1, 'UTC', tenant_id < 't2'
		FROM tenants WHERE tenant_id IN ('t0', 't1', 't3', 't6')`, at)
	b.exec("UPDATE tenants SET plan = 'small' WHERE tenant_id IN ('t0', 't1', 't3', 't6')")
	compare("after a change of terms")
}

// A check that needs only the row of its balance costs one round trip with two statements, alone or in a batch. The
// first check of a plan also reads the plan's terms.
func TestCheckBatch_OneRoundTrip_ForAllTenants(t *testing.T) {
	testenv.NotOnCitus(t, "there is one for each shard group")
	t.Parallel()
	b := newBundle(t)
	sent := b.trace(&b.readers)
	var questions []ledger.CheckRequest
	for _, tenant := range b.several(64, 10) {
		b.mustDebit(debitOf(tenant, "k", 1))
		questions = append(questions, ledger.CheckRequest{Tenant: tenant, Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}})
	}
	ask := func(questions []ledger.CheckRequest) []string {
		t.Helper()
		sent.take()
		for i, out := range b.CheckBatch(t.Context(), questions) {
			assert.True(t, out.Err == nil && out.Result.Allowed,
				"%s: %+v, %v", questions[i].Tenant, out.Result, out.Err)
		}
		return sent.take()
	}
	ask(questions[:1]) // reads the plan's allowance
	want := []string{
		"round trip", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL plan_cache_mode = force_generic_plan", b.sql["SelectBalances"], b.sql["Clock"], "COMMIT",
	}
	wantEqual(t, "statements of 64 checks", ask(questions), want)
	wantEqual(t, "statements of one check", ask(questions[:1]), want)
	for i := range questions { // there is enough for all checks
		questions[i] = ledger.CheckRequest{Tenant: "t0", Subject: fmt.Sprint("u", i%20), Items: []ledger.Item{{Meter: "api_calls", Amount: int64(i%10 + 1)}}}
	}
	sent.take()
	for i, out := range b.CheckBatch(t.Context(), questions) {
		assert.True(t, out.Err == nil && out.Result.Items[0].MaxAllowedNow == 9 && out.Result.Allowed == (i%10 < 9),
			"%+v: %+v, %v", questions[i], out.Result, out.Err)
	}
	// A check needs a view if the first grant does not cover its amount.
	trips := strings.Count(strings.Join(sent.take(), "\n"), "round trip")
	assert.LessOrEqual(t, trips, 2, "round trips for %d checks of one tenant", len(questions))
}

// timeless returns a copy of r without the fields that differ between two reads of one state: instants, and the
// causes of refusals.
func timeless(r *ledger.CheckResult) *ledger.CheckResult {
	if r == nil {
		return nil
	}
	out := ledger.CheckResult{Allowed: r.Allowed, Refusal: timelessError(r.Refusal)}
	out.Items, out.Copies, out.Others = slices.Clone(r.Items), slices.Clone(r.Copies), slices.Clone(r.Others)
	for i := range out.Items {
		out.Items[i].Err = timelessError(out.Items[i].Err)
	}
	for _, copies := range [][]ledger.BalanceCopy{out.Copies, out.Others} {
		for i := range copies {
			copies[i].AsOf = time.Time{}
		}
	}
	return &out
}

func timelessError(e *errcode.Error) *errcode.Error {
	if e == nil {
		return nil
	}
	out := *e
	out.RetryAfter = 0
	out.Cause = nil
	if d := ledger.DenialOf(e); d != nil {
		decided := *d
		decided.AsOf = time.Time{}
		out.Data = &decided
	}
	return &out
}
