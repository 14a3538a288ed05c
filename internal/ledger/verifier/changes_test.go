package verifier

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// agree gives a tenant new terms that apply at once, as the catalogue does. columns sets further columns of the terms:
// "name = value, ...".
func (b *bundle) agree(tenant, plan, columns string) {
	b.t.Helper()
	at := b.now()
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate)
		SELECT o.tenant_id, $2, $3, o.anchor, o.timezone, true FROM tenant_terms o
		WHERE o.tenant_id = $1 ORDER BY o.effective_at DESC LIMIT 1`, tenant, at, plan)
	if columns != "" {
		b.exec("UPDATE tenant_terms SET "+columns+" WHERE tenant_id = $1 AND effective_at = $2", tenant, at)
	}
	b.chainAnew(tenant)
}

// touch makes the balance of a tenant process what is due.
func (b *bundle) touch(tenant string) {
	b.t.Helper()
	mustDo(b, topupOf(tenant, "touch-"+b.now().Format(time.RFC3339Nano), "api_calls", 1))
}

// agrees verifies the whole journal, and what is new since the checkpoint of the last pass.
func (b *bundle) agrees(step string) {
	b.t.Helper()
	for _, whole := range []int64{1 << 40, 0} {
		b.wholeUpTo = whole
		report := b.report()
		require.Empty(b.t, report.Differences, "after: %s (whole journal: %t)", step, whole > 0)
	}
	b.wholeUpTo = wholeUpTo
}

// column returns a column of the tenant's balance of api_calls.
func (b *bundle) column(tenant, name string) int64 {
	b.t.Helper()
	return one[int64](b, "SELECT "+name+" FROM balances WHERE tenant_id = $1 AND meter = 'api_calls'", tenant)
}

// changePlans creates the plans of the tests of changes.
func (b *bundle) changePlans() *bundle {
	b.t.Helper()
	b.plan("small", 100, "month", "")
	b.plan("large", 900, "month", "")
	b.plan("tiny", 40, "month", "")
	b.plan("daily", 60, "day", "")
	b.plan("local", 60, "day", "anchor = 'calendar'")
	b.plan("capped", 100, "month", "overage_policy = 'allow', overage_cap = 500")
	b.plan("dayover", 10, "day", "overage_policy = 'allow', overage_cap = 500")
	b.plan("owed", 10, "day", "overage_policy = 'allow', overage_at_period_end = 'preserve'")
	b.plan("trial", 30, "once", "expires_in_days = 14")
	b.plan("gift", 50, "once", "")
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ('none', 1, now() - interval '1 year')")
	return b
}

// changeStep is one step of a story about a tenant.
type changeStep struct {
	name string
	do   func()
}

func TestVerify_ChangesInsideAPeriod_Agree(t *testing.T) {
	t.Parallel()
	b := newBundle(t).changePlans()
	b.signUp("acme", "small")
	hold := func(key string, amount int64, ttl time.Duration) {
		h := holdOf("acme", key, key, amount)
		h.TTL = ttl
		mustDo(b, h)
	}
	change := func(plan, columns string) func() {
		return func() { b.agree("acme", plan, columns); b.touch("acme") }
	}
	debit := func(key string, amount int64) func() {
		return func() { mustDo(b, debitOf("acme", key, amount)) }
	}
	refund := func(key string, amount int64) func() {
		return func() {
			mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r-" + key, OperationID: key, Amount: amount})
		}
	}
	for _, s := range []changeStep{
		{"use", debit("a", 60)},
		{"hold", func() { hold("h1", 20, time.Hour) }},
		{"up", change("large", "")},
		{"use of more", debit("b", 10)},
		{"down below the use", change("tiny", "")},
		{"short", func() { require.EqualValues(t, 50, b.column("acme", "short")) }},
		{"refund that makes up for it", refund("a", 30)},
		{"end of a hold", func() { b.advance(2 * time.Hour); b.touch("acme") }},
		{"short of nothing", func() { require.EqualValues(t, 0, b.column("acme", "short")) }},
		{"prorated up", func() { b.advance(9 * 24 * time.Hour); change("large", "prorate = true")() }},
		{"prorated down", func() { b.advance(24 * time.Hour); change("small", "prorate = true")() }},
		{"use before the reset", debit("c", 11)},
		{"reset", change("large", "usage = 'reset'")},
		{"refund of before the reset", refund("c", 5)},
		{"use after the reset", debit("d", 300)},
		{"add", change("small", "usage = 'add'")},
		{"down after add", change("tiny", "")},
		{"up again after add", change("large", "")},
		{"hold of the month", func() { hold("h2", 50, 24*time.Hour); hold("h3", 30, time.Hour) }},
		{"own amount", func() { change("large", `overrides = '{"api_calls": 1000}'`)() }},
		{"month to day", change("daily", "")},
		{"refund after it", refund("d", 100)},
		{"end of a hold after it", func() { b.advance(2 * time.Hour); b.touch("acme") }},
		{"release after it", func() {
			mustDo(b, &ledger.HoldChange{Tenant: "acme", Key: "rel", HoldID: "h2", Action: ledger.ActionRelease})
		}},
		{"next day", func() { b.advance(24 * time.Hour); debit("e", 20)() }},
		{"to days of the calendar", change("local", "")},
		{"zone", change("local", "timezone = 'Asia/Kolkata'")},
		{"end of the period after the zone", func() { b.advance(24 * time.Hour); debit("f", 1)() }},
		{"second day in the zone", func() { b.advance(24 * time.Hour); debit("g", 1)() }},
		{"up in the zone", change("local", `overrides = '{"api_calls": 90}'`)},
		{"prorated day to month", change("small", "prorate = true")},
		{"trial", change("trial", "")},
		{"use of the trial", debit("i", 7)},
		{"gift", change("gift", "")},
		{"no meter", change("none", "")},
		{"gift again", change("gift", "")},
		{"month again", change("small", "")},
		{"next month", func() { b.advance(32 * 24 * time.Hour); debit("j", 1)() }},
		{"idle months", func() { b.advance(100 * 24 * time.Hour); debit("k", 1)() }},
		{"up once more", change("large", "")},
	} {
		s.do()
		b.agrees(s.name)
		b.advance(time.Minute)
	}
}

// changedRows brings three tenants into states in which all columns about changes are set.
func (b *bundle) changedRows() *bundle {
	b.t.Helper()
	for _, tenant := range []string{"short", "reset", "days"} {
		b.signUp(tenant, "capped")
	}
	mustDo(b, debitOf("short", "a", 60))
	b.agree("short", "large", "")
	b.touch("short")
	b.agree("short", "tiny", "")
	b.touch("short")
	mustDo(b, &ledger.Refund{Tenant: "short", Key: "r", OperationID: "a", Amount: 5})
	mustDo(b, debitOf("reset", "a", 30))
	b.agree("reset", "large", "usage = 'reset'")
	mustDo(b, debitOf("reset", "b", 30))
	b.agree("reset", "small", "")
	b.touch("reset")
	mustDo(b, debitOf("days", "a", 130))
	b.agree("days", "dayover", "")
	mustDo(b, debitOf("days", "b", 4))
	mustDo(b, &ledger.Refund{Tenant: "days", Key: "r", OperationID: "a", Amount: 7})
	b.advance(time.Hour)
	for _, tenant := range []string{"short", "reset", "days"} {
		b.touch(tenant)
	}
	return b
}

// Each column about changes, and each amount of an amendment, is changed in states in which it matters.
func TestVerify_ChangedAmendment_IsReported(t *testing.T) {
	t.Parallel()
	b := newBundle(t).changePlans().changedRows()
	b.agrees("changes")
	require.EqualValues(t, 15, b.column("short", "short"))
	require.EqualValues(t, 100, b.column("days", "carried"))
	require.EqualValues(t, 23, b.column("days", "overage_before"))
	b.uncheck()
	balance := func(tenant, set string) string {
		return "UPDATE balances SET " + set + " WHERE meter = 'api_calls' AND tenant_id = '" + tenant + "'"
	}
	entry := func(set, which string) string { return "UPDATE entries SET " + set + " WHERE " + which }
	cases := []damage{
		{"amount of an amendment up", entry("amount = amount + 1", "kind = 'amend_up'"), "remaining_after"},
		{
			"amount of an amendment down", entry("amount = amount - 1", "kind = 'amend_down' AND tenant_id = 'short'"),
			"remaining_after",
		},
		{
			"amount of an amendment of returned units",
			entry("amount = amount + 1", "kind = 'amend_down' AND operation_id = 'r'"),
			"remaining_after",
		},
		{
			"amendment called an adjustment",
			entry("kind = 'adjust_down'", "kind = 'amend_down' AND tenant_id = 'short'"),
			"amended",
		},
		{"amendment gone", "DELETE FROM entries WHERE kind = 'amend_up'", "numbering of entries"},
		{
			"beginning of an amendment",
			"UPDATE grants SET effective_at = effective_at - interval '1 second' WHERE operation_id LIKE '§amend/%'",
			"beginning of grant",
		},
		{
			"expiry of an amendment",
			"UPDATE grants SET expires_at = expires_at - interval '1 second' WHERE operation_id LIKE '§amend/%'",
			"expiry of grant",
		},
		{
			"amount of an amendment's grant",
			"UPDATE grants SET amount = amount + 1 WHERE operation_id LIKE '§amend/%'",
			"amount of grant",
		},
		{"amended of a closed period", "UPDATE periods SET amended = amended + 1 WHERE tenant_id = 'days'", "amended"},
		{"earlier use, none", balance("days", "carried = 0"), "what the allowance is worth"},
		{"beginning of earlier use, none", balance("days", "carried_from = 'epoch'"), "beginning of the earlier use"},
		{
			"beginning of earlier use", balance("days", "carried_from = carried_from + interval '1 second'"),
			"beginning of the earlier use",
		},
		{
			"beginning of earlier use invented", balance("short", "carried_from = period_start"),
			"beginning of the earlier use",
		},
		{"earlier use invented", balance("short", "carried = 1, entitled = entitled + 1"), "earlier use"},
		{
			"earlier use and worth that agree", balance("days", "carried = carried + 1, entitled = entitled + 1"),
			"worth under its terms",
		},
		{"earlier overage, none", balance("days", "overage_before = 0"), "earlier overage"},
		{"earlier overage invented", balance("short", "overage_before = 1"), "earlier overage"},
		{"reset, none", balance("reset", "allowance_at = period_start"), "instant at which the allowance was given"},
		{
			"reset later", balance("reset", "allowance_at = allowance_at + interval '1 second'"),
			"what the allowance is worth",
		},
		{
			"reset that never was", balance("short", "allowance_at = allowance_at + interval '1 second'"),
			"instant at which the allowance was given",
		},
		{"terms that would take effect again", balance("reset", "terms_at = period_start"), "instant of the terms"},
		{
			"terms that never were", balance("short", "terms_at = terms_at + interval '1 second'"),
			"instant of the terms",
		},
	}
	for _, tenant := range []string{"short", "reset", "days"} {
		for column, fact := range map[string]string{
			"entitled": "worth", "short": "worth", "carried": "worth", "overage_before": "overage",
			"amended": "amended",
		} {
			for _, by := range []string{"+ 1", "- 1"} {
				set := fmt.Sprintf("%s = %s %s", column, column, by)
				cases = append(cases, damage{tenant + "." + column, balance(tenant, set), fact})
			}
		}
	}
	for _, d := range cases {
		b.expectNamed(d)
	}
	b.mustVerify()
}

// A version that does not have the fields leaves them as they are when it opens a period.
func TestVerify_PeriodOfAnEarlierVersion_Agrees(t *testing.T) {
	t.Parallel()
	b := newBundle(t).changePlans()
	for _, tenant := range []string{"acme", "bolt", "cora"} {
		b.signUp(tenant, "small")
		mustDo(b, debitOf(tenant, "a", 60))
	}
	b.exec(`UPDATE balances SET amended = 5, entitled = 7, short = 8, overage_before = 9, carried_from = period_start,
		allowance_at = period_start - interval '1 day', terms_at = period_start - interval '1 day'`)
	b.agrees("a period of an earlier version")
	mustDo(b, debitOf("acme", "b", 1))
	b.agrees("use")
	b.agree("bolt", "large", "")
	b.touch("bolt")
	b.agrees("a change inside the period")
	b.advance(32 * 24 * time.Hour)
	b.touch("bolt")
	b.agrees("the next period")
}

// A checkpoint of an earlier version does not say what allowances gave. The next pass over all entries does.
func TestVerify_CheckpointOfAnEarlierVersion_Agrees(t *testing.T) {
	t.Parallel()
	b := newBundle(t).changePlans().changedRows()
	b.agrees("changes")
	b.exec(`UPDATE checkpoints SET state = regexp_replace(state::text, '"(given|begins)": -?[0-9]+, ', '', 'g')::jsonb`)
	require.Zero(t, one[int64](b, `SELECT count(*) FROM checkpoints WHERE state::text ~ '"(given|begins)"'`))
	b.wholeUpTo = 0
	for _, plan := range []string{"large", "tiny", "capped"} {
		for _, tenant := range []string{"short", "reset"} {
			b.agree(tenant, plan, "")
			b.touch(tenant)
		}
		require.Empty(t, b.report().Differences)
	}
	b.agrees("further changes")
}
