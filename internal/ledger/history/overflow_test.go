package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/migrations"
)

// overflowing signs a tenant up for an hourly allowance of two meters. Credits pay 1 for 100 emails, and 2 for each
// call, beyond it.
func (b *bundle) overflowing(id string) *bundle {
	b.t.Helper()
	b.hourly(id, 10)
	b.allowance("hourly", "emails", 0, "hour", "tenant")
	b.exec("INSERT INTO meters (meter, unit) VALUES ('credits', 'unit') ON CONFLICT DO NOTHING")
	b.exec(`UPDATE plan_allowances SET overflow_meter = 'credits', overflow_price = 2
		WHERE plan = 'hourly' AND meter = 'api_calls'`)
	b.exec(`UPDATE plan_allowances SET ratio_meter = 'credits', ratio_units = 1, ratio_per = 100
		WHERE plan = 'hourly' AND meter = 'emails'`)
	must(b, topupOf(id, "top", "credits", 1_000_000))
	return b
}

func tagged(d *ledger.Debit, subject, model string) *ledger.Debit {
	d.Subject = subject
	d.Metadata = fmt.Appendf(nil, `{"model": %q}`, model)
	return d
}

func (b *bundle) overflowAt(tenant, meter string, at time.Time) int64 {
	b.t.Helper()
	past, err := b.BalanceAsOf(b.t.Context(), tenant, meter, "", at)
	b.check(err)
	return past.Overflow
}

// What other meters paid for is the same in the balance, in past balances, in statements, in lists of statements and
// in the use by time, subject and dimension.
func TestOverflow_EveryReport_HasTheSameFigure(t *testing.T) {
	t.Parallel()
	b := newBundle(t).overflowing("acme")
	ctx := t.Context()
	must(b, tagged(debitOf("acme", "a", 14), "ann", "small")) // 10 own, 4 paid
	first := must(b, tagged(debitOf("acme", "b", 3), "ben", "large")).AsOf
	must(b, &ledger.Hold{
		Tenant: "acme", Key: "h", HoldID: "h", Subject: "ann", TTL: time.Hour, Metadata: []byte(`{"model": "large"}`),
		Items: []ledger.Item{{Meter: "api_calls", Amount: 9}, {Meter: "emails", Amount: 250}},
	})
	assert.Equal(t, int64(7), b.mustBalance("acme", "api_calls").Overflow, "held units do not count")
	must(b, &ledger.HoldChange{
		Tenant: "acme", Key: "c", HoldID: "h", Action: ledger.ActionCapture, Final: true,
		Items: []ledger.Item{{Meter: "api_calls", Amount: 5}, {Meter: "emails", Amount: 120}},
	})
	must(b, &ledger.Refund{Tenant: "acme", Key: "r", OperationID: "a", Amount: 2})
	assert.Equal(t, int64(12), b.mustBalance("acme", "api_calls").Overflow)
	assert.Equal(t, int64(120), b.mustBalance("acme", "emails").Overflow)
	assert.Equal(t, int64(0), b.mustBalance("acme", "credits").Overflow)
	assert.Equal(t, int64(7), b.overflowAt("acme", "api_calls", first))
	assert.Equal(t, int64(4), b.overflowAt("acme", "api_calls", first.Add(-time.Microsecond)))
	assert.Equal(t, int64(12), b.overflowAt("acme", "api_calls", time.Now()))
	all, err := b.BalancesAsOf(ctx, "acme", "", first)
	b.check(err)
	for _, past := range all {
		assert.Equal(t, map[string]int64{"api_calls": 7}[past.Meter], past.Overflow, past.Meter)
	}

	b.rewind(61 * time.Minute)
	first = first.Add(-61*time.Minute - 7*time.Second)
	must(b, tagged(debitOf("acme", "d", 11), "ann", "small")) // 1 paid, in the next hour
	assert.Equal(t, int64(1), b.mustBalance("acme", "api_calls").Overflow)
	assert.Equal(t, int64(7), b.overflowAt("acme", "api_calls", first), "the period is closed now")
	last, err := b.StatementLast(ctx, "acme", "api_calls", "")
	b.check(err)
	current, err := b.StatementCurrent(ctx, "acme", "api_calls", "")
	b.check(err)
	assert.Equal(t, []int64{12, 1}, []int64{last.Overflow, current.Overflow})
	page, err := b.Statements(ctx, StatementQuery{Tenant: "acme", Limit: 10})
	b.check(err)
	listed := map[string][]int64{}
	for _, s := range page.Items {
		listed[s.Meter] = append(listed[s.Meter], s.Overflow)
	}
	assert.Equal(t, map[string][]int64{"api_calls": {1, 12}, "emails": {0, 120}, "credits": {0}}, listed)

	use := func(q UsageQuery) map[string][3]int64 {
		q.Tenant, q.From, q.To, q.Step = "acme", time.Now().Add(-4*time.Hour), time.Now().Add(time.Hour), UsageByMonth
		if q.Meter == "" {
			q.Meter = "api_calls"
		}
		got, err := b.Usage(ctx, q)
		b.check(err)
		out := map[string][3]int64{}
		for _, u := range got {
			sum := out[u.Value]
			out[u.Value] = [3]int64{sum[0] + u.Used, sum[1] + u.Overflow, sum[2] + u.Operations}
		}
		return out
	}
	type sums = map[string][3]int64 // used, overflow, operations
	model := UsageByDimension("model")
	assert.Equal(t, sums{"": {20, 13, 4}}, use(UsageQuery{}))
	assert.Equal(t, sums{"": {0, 120, 1}}, use(UsageQuery{Meter: "emails"}))
	assert.Equal(t, sums{"ann": {20, 10, 3}, "ben": {0, 3, 1}}, use(UsageQuery{Group: UsageBySubject}))
	assert.Equal(t, sums{"": {20, 10, 3}}, use(UsageQuery{Subject: "ann"}))
	assert.Equal(t, sums{"small": {20, 5, 2}, "large": {0, 8, 2}}, use(UsageQuery{Group: model}))
	assert.Equal(t, sums{"large": {0, 120, 1}}, use(UsageQuery{Meter: "emails", Group: model}))
	within, err := b.Usage(ctx, UsageQuery{
		Tenant: "acme", Meter: "api_calls", From: first, To: first.Add(time.Microsecond), Step: UsageByHour,
	})
	b.check(err)
	require.Len(t, within, 1)
	assert.Equal(t, int64(3), within[0].Overflow, "of the time between, which is no whole quarter of an hour")
	b.mustVerify()
}

// A version before this one counts nothing and names no period in its payments. The figures are those of this version's
// payments then, and verify finds no difference.
func TestOverflow_PaymentsOfAnEarlierVersion_AreNotCounted(t *testing.T) {
	t.Parallel()
	b := newBundle(t).overflowing("acme")
	must(b, debitOf("acme", "old", 14))
	b.exec("DELETE FROM overflows")
	b.exec("UPDATE entries SET detail = detail - 'period' WHERE detail ? 'period'")
	b.exec("UPDATE balances SET chain = NULL")
	b.exec("UPDATE chain_start SET at = 'infinity'")
	b.mustVerify()
	must(b, debitOf("acme", "new", 2))
	assert.Equal(t, int64(2), b.mustBalance("acme", "api_calls").Overflow)
	b.mustVerify()
	b.exec("UPDATE checkpoints SET state = state - 'paid'") // written by its verification
	must(b, debitOf("acme", "newer", 3))
	b.mustVerify()
}

// The migration can be undone and repeated: it counts the payments of the journal again.
func TestOverflow_MigrationIsRepeated_FiguresAreBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t).overflowing("acme")
	must(b, debitOf("acme", "a", 14))
	emails := debitOf("acme", "e", 120)
	emails.Items[0].Meter = "emails"
	must(b, emails)
	b.mustVerify() // writes checkpoints
	text, err := migrations.FS.ReadFile("00037_overflows.sql")
	b.check(err)
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	b.exec(down)
	if _, err := b.db.Exec(t.Context(), up, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	b.exec("GRANT SELECT, INSERT, UPDATE ON overflows TO quotasvc_service")
	assert.Equal(t, int64(4), b.mustBalance("acme", "api_calls").Overflow)
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	use, err := b.Usage(t.Context(), UsageQuery{Tenant: "acme", Meter: "emails", From: from, To: to, Step: UsageByHour})
	b.check(err)
	require.Len(t, use, 1, "use of a meter that has no entries")
	assert.Equal(t, int64(120), use[0].Overflow)
	b.mustVerify()
}

// Concurrent debits of many meters into the same credits lose no unit.
func TestOverflow_ConcurrentDebits_AllCount(t *testing.T) {
	t.Parallel()
	b := newBundle(t).overflowing("acme")
	done := make(chan error)
	for i := range 40 {
		go func() {
			d := debitOf("acme", fmt.Sprint("k", i), 3)
			if i%2 == 0 {
				d.Items[0].Meter = "emails"
			}
			done <- errOf(pg.Do(t.Context(), b.ledger, d))
		}()
	}
	for range 40 {
		require.NoError(t, <-done)
	}
	assert.Equal(t, int64(60), b.mustBalance("acme", "emails").Overflow)
	assert.Equal(t, int64(50), b.mustBalance("acme", "api_calls").Overflow)
	b.mustVerify()
}
