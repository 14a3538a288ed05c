package pg

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// age moves all instants of the tenant's journal back by the given days, as if its operations were made that long
// ago.
func (b *bundle) age(tenant string, days int) {
	b.t.Helper()
	shift := fmt.Sprintf("interval '%d days'", days)
	b.exec("CREATE TABLE IF NOT EXISTS moved (LIKE entries)")
	b.exec("WITH taken AS (DELETE FROM entries WHERE tenant_id = $1 RETURNING *) INSERT INTO moved SELECT * FROM taken", tenant)
	b.exec(`UPDATE moved SET created_at = created_at - ` + shift + `,
		month = date_trunc('month', (created_at - ` + shift + `) AT TIME ZONE 'UTC')::date`)
	for _, m := range list[time.Time](b, "SELECT DISTINCT month FROM moved ORDER BY 1") {
		b.exec(fmt.Sprintf("CREATE TABLE IF NOT EXISTS entries_%s PARTITION OF entries FOR VALUES FROM ('%s') TO ('%s')",
			m.Format("2006_01"), m.Format(time.DateOnly), m.AddDate(0, 1, 0).Format(time.DateOnly)))
	}
	b.exec("WITH taken AS (DELETE FROM moved RETURNING *) INSERT INTO entries SELECT * FROM taken")
	b.exec(`UPDATE refunds r SET month = (SELECT max(e.month) FROM entries e
		WHERE e.tenant_id = r.tenant_id AND e.operation_id = r.operation_id AND e.line = r.line) WHERE r.tenant_id = $1`, tenant)
	b.exec("UPDATE grants SET created_at = created_at - "+shift+" WHERE tenant_id = $1", tenant)
	b.exec("UPDATE balances SET updated_at = updated_at - "+shift+" WHERE tenant_id = $1", tenant)
	b.exec("UPDATE entries SET detail = detail - 'refund_month' WHERE tenant_id = $1 AND detail ? 'refund_month'", tenant)
	for _, sql := range testenv.Rewound {
		b.exec(sql, tenant, time.Duration(0))
	}
}

// Two operations share a key, because it was used again after the time in which keys are remembered. A refund refunds
// one of these operations: the newest, or, if it names an instant, the newest at or before the instant.
func TestRefund_KeyUsedAgainLongAfter_RefundsOneOperation(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustDebit(debitOf("acme", "order-7", 100))
	b.age("acme", 165)
	between := time.Now().Add(-100 * 24 * time.Hour)
	d := b.mustDebit(debitOf("acme", "order-7", 10))
	require.True(t, !d.Replayed && d.Items[0].Remaining == 890, "a key used again after its memory: %+v", d)
	refund := func(key string, at time.Time, amount int64) *ledger.Refund {
		return &ledger.Refund{Tenant: "acme", Key: key, OperationID: "order-7", At: at, Amount: amount}
	}
	r := mustDo(b, refund("back-1", time.Time{}, 0))
	require.True(t, r.Items[0].Refunded == 10 && len(r.Items[0].Draws) == 1 && r.Items[0].Remaining == 900,
		"refund of the newest operation: %+v", r)
	wantRefusal(b, errcode.RefundExceedsDebit, refund("back-2", time.Time{}, 0)) // the newest operation again
	wantRefusal(b, errcode.RefundExceedsDebit, refund("back-3", between, 101))
	r = mustDo(b, refund("back-4", between, 0))
	assert.True(t, r.Items[0].Refunded == 100 && r.Items[0].Remaining == 1000 && !r.RefundOfAt.After(between),
		"refund of the older operation: %+v", r)
	wantRefusal(b, errcode.OperationNotFound, refund("back-5", between.AddDate(-1, 0, 0), 0)) // before both operations
	b.mustVerify()
}

// The older operation was refunded before its key was used again. The newer one can still be refunded.
func TestRefund_OlderOperationRefundedBefore_NewerCanBe(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustDebit(debitOf("acme", "order-7", 100))
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "back-1", OperationID: "order-7"})
	b.age("acme", 165)
	b.mustDebit(debitOf("acme", "order-7", 10))
	r := mustDo(b, &ledger.Refund{Tenant: "acme", Key: "back-2", OperationID: "order-7"})
	require.True(t, r.Items[0].Refunded == 10 && r.Items[0].Remaining == 1000, "refund of the newer operation: %+v", r)
	b.mustVerify()
}

// The migration gives every row of the table refunds the month of its operation. If two operations with one id shared
// a row, the migration divides its sum. Refunds from before the newer operation belong to the older operation.
func TestMigration_RefundsWithoutMonth_GetTheirOperations(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	back := func(key, of string, amount int64) {
		t.Helper()
		mustDo(b, &ledger.Refund{Tenant: "acme", Key: key, OperationID: of, Amount: amount})
	}
	b.debit("acme", "order-7", 100)
	b.debit("acme", "order-8", 50)
	back("b1", "order-7", 30)
	back("b2", "order-8", 5)
	b.age("acme", 165)
	b.debit("acme", "order-7", 10)
	b.debit("acme", "order-9", 7)
	back("b3", "order-7", 4)
	back("b4", "order-9", 7)
	const rows = "SELECT string_agg(operation_id || ' ' || refunded || CASE WHEN month < now() - interval '60 days' THEN ' old' ELSE ' new' END, ', ' ORDER BY operation_id, month) FROM refunds"
	before := one[string](b, rows)
	moved := testenv.Migrator(t, b.url)
	require.NoError(t, errOf(moved.DownTo(t.Context(), 3)))
	b.exec("INSERT INTO refunds (tenant_id, operation_id, line, refunded) VALUES ('acme', 'gone', 1, 3)")
	require.NoError(t, errOf(moved.Up(t.Context())))
	want := "order-7 30 old, order-7 4 new, order-8 5 old, order-9 7 new"
	wantEqual(t, "rows before", before, want)
	wantEqual(t, "rows after", one[string](b, rows), "gone 3 old, "+want)
	wantEqual(t, "months that hold entries", one[int](b, "SELECT count(*) FROM journal_months"), 2)
}

// A clock that was ahead has left an entry in a month that has not begun. A retry of that operation gets its stored
// answer. A request with the same key on another balance is refused.
func TestRetry_EntryInComingMonth_IsAnswered(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustGrant("acme", "top", "credits", 50)
	b.mustDebit(debitOf("acme", "first", 1))
	b.exec("UPDATE balances SET updated_at = updated_at + interval '40 days' WHERE meter = 'api_calls'")
	b.mustDebit(debitOf("acme", "c1", 5))
	for i, l := range []*Ledger{b.Ledger, openLedger(t, b.url)} {
		assert.True(t, b.on(l).mustDebit(debitOf("acme", "c1", 5)).Replayed, "instance %d: a retry", i)
		wantRefusal(b.on(l), errcode.IdempotencyKeyReused, debitOf("acme", "c1", 6))
		other := &ledger.Debit{Tenant: "acme", Key: "c1", Items: []ledger.Item{{Meter: "credits", Amount: 5}}}
		wantRefusal(b.on(l), errcode.IdempotencyKeyReused, other) // on another balance
	}
	wantEqual(t, "credits remaining", b.mustBalance("acme", "credits").Remaining, 50)
}

// A refund with on_expired=regrant has issued a grant whose id is derived from the refund's key. If the key is used
// again after the time in which keys are remembered, it cannot issue a grant again.
func TestRefund_KeyOfRegrantUsedAgain_IsConflict(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	at := time.Now().Add(time.Hour)
	spend := func(n int) string {
		key := fmt.Sprint("spend-", n)
		g := topupOf("acme", fmt.Sprint("g-", n), "credits", 5)
		g.GrantID, g.ExpiresAt = fmt.Sprint("g", n), at
		mustDo(b, g)
		mustDo(b, &ledger.Debit{Tenant: "acme", Key: key, Items: []ledger.Item{{Meter: "credits", Amount: 5}}})
		b.exec("UPDATE grants SET status = 'expired', expires_at = effective_at + interval '1 microsecond' WHERE grant_id = $1", g.GrantID)
		return key
	}
	regrant := func(key, of string) *ledger.Refund {
		return &ledger.Refund{Tenant: "acme", Key: key, OperationID: of, Return: ledger.ReturnRegrant}
	}
	mustDo(b, regrant("refund-1", spend(1)))
	b.age("acme", 165)
	second := spend(2)
	wantRefusal(b, errcode.Conflict, regrant("refund-1", second)) // the key of the earlier regrant
	wantEqual(t, "refunded with a new key", mustDo(b, regrant("refund-2", second)).Items[0].Refunded, 5)
}
