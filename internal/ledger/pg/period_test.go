package pg

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestPeriods_MissedMonths_CaughtUpByNextDebit(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	signup := time.Now().UTC().AddDate(0, -3, 0)
	b.plan("pro", 1, signup, "api_calls 100 month calendar")
	b.tenant("acme", "pro", signup, signup, "UTC")
	b.mustDebit(debitOf("acme", "k1", 30))
	got := b.mustBalance("acme", "api_calls")
	wantSums(t, got, ledger.Sums{Granted: 100, Used: 30})
	assert.True(t, got.PeriodEnd.After(time.Now()), "the period ended at %v", got.PeriodEnd)
	wantEqual(t, "closed periods", one[int](b, "SELECT sum(greatest(idle, 1)) FROM periods"), 3)
	wantEqual(t, "rows of closed periods", one[int](b, "SELECT count(*) FROM periods"), 2)
	b.mustVerify()
}

func TestBalance_ShowsPeriodNotYetWritten(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	signup := time.Now().UTC().AddDate(0, -2, 0)
	b.plan("pro", 1, signup, "api_calls 100 month calendar")
	b.tenant("acme", "pro", signup, signup, "UTC")
	virtual := b.mustBalance("acme", "api_calls")
	wantSums(t, virtual, ledger.Sums{Granted: 100})
	wantEqual(t, "seq", virtual.Seq, 3)
	b.roll()
	// A balance that was never used has no row, so a roll has nothing to do. The first grant inserts the row.
	b.mustGrant("acme", "g1", "api_calls", 1)
	written := b.mustBalance("acme", "api_calls")
	wantSums(t, written, ledger.Sums{Granted: 101})
	wantEqual(t, "seq", written.Seq, 4)
	wantEqual(t, "start and end of the period", [2]time.Time{written.PeriodStart, written.PeriodEnd}, [2]time.Time{virtual.PeriodStart, virtual.PeriodEnd})
	b.mustVerify()
}

func TestPeriods_OpenedLate_GetAllowanceOfDueDate(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := time.Now().UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	signup := first.AddDate(0, -2, 3)
	b.plan("pro", 1, signup, "api_calls 100 month calendar")
	b.tenant("acme", "pro", signup, signup, "UTC")
	b.mustDebit(debitOf("acme", "k1", 1))
	// The second tenant has the same history, and version 2 is created after the last boundary. Version 2 applies
	// from the next boundary on.
	b.plan("pro", 2, first.Add(time.Minute), "api_calls 500 month calendar")
	b.tenant("late", "pro", signup, signup, "UTC")
	got := b.mustBalance("late", "api_calls")
	assert.True(t, got.Granted == 100 && got.PlanVersion == 1,
		"a version made after the boundary applies before the next one: %+v", got)
	// This tenant changed its plan before the boundary.
	b.plan("big", 1, signup, "api_calls 900 month calendar")
	b.tenant("mover", "pro", signup, signup, "UTC")
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone) VALUES ('mover', $1, 'big', $2, 'UTC')`, first.AddDate(0, -1, 5), signup)
	got = b.mustBalance("mover", "api_calls")
	assert.True(t, got.Granted == 900 && got.Plan == "big",
		"the plan in force at the boundary does not apply: %+v", got)
	b.mustDebit(debitOf("mover", "k1", 900))
	plans := list[string](b, `SELECT plan FROM periods WHERE tenant_id = 'mover' ORDER BY period_start`)
	wantEqual(t, "plans of the closed periods", plans, []string{"pro", "pro"})
	b.mustVerify()
}

func TestPeriods_End_ExpiresAllowance_KeepsPrepaid(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 100)
	b.mustGrant("acme", "g1", "api_calls", 50)
	b.mustDebit(debitOf("acme", "k1", 120))
	b.rewind("acme", 2*time.Hour)
	b.wantSums("acme", "api_calls", ledger.Sums{Opening: 30, Granted: 100})
	b.mustDebit(debitOf("acme", "k2", 130))
	b.mustVerify()
}

func TestGrant_TakesEffectAndExpiresOnTime(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	now := time.Now().UTC()
	coming := topupOf("acme", "g1", "credits", 40)
	coming.EffectiveAt, coming.ExpiresAt = now.Add(30*time.Minute), now.Add(90*time.Minute)
	b.meter("credits")
	r := mustDo(b, coming)
	wantEqual(t, "status", r.Grant.Status, ledger.GrantPending)
	wantEqual(t, "remaining", r.Position.Remaining, 0)
	debit := &ledger.Debit{Tenant: "acme", Key: "k1", Items: []ledger.Item{{Meter: "credits", Amount: 15}}}
	e := wantRefusal(b, errcode.QuotaExceeded, debit)
	assert.True(t, ledger.DenialOf(e).WouldSucceedAt.Equal(period.Micros(coming.EffectiveAt)),
		"would succeed at %v, want %v", ledger.DenialOf(e).WouldSucceedAt, coming.EffectiveAt)
	b.rewind("acme", time.Hour)
	mustDo(b, debit)
	b.rewind("acme", time.Hour)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 40, Used: 15, Expired: 25})
	b.roll()
	b.mustVerify()
}

func TestBurnOrder_PriorityThenExpiryThenEffectThenID(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	soon := time.Now().Add(time.Hour)
	issue := func(id string, source ledger.Source, priority *int32, expires time.Time) {
		g := topupOf("acme", id, "api_calls", 5)
		g.GrantID, g.Source, g.Priority, g.ExpiresAt = id, source, priority, expires
		mustDo(b, g)
	}
	early := int32(1)
	issue("paid-late", ledger.SourceTopup, nil, time.Time{})
	issue("paid-soon", ledger.SourceTopup, nil, soon)
	issue("promo", ledger.SourcePromo, nil, time.Time{})
	issue("first", ledger.SourceTopup, &early, time.Time{})
	got := b.mustDebit(debitOf("acme", "k1", 29))
	order := ""
	for _, d := range got.Items[0].Draws {
		order += fmt.Sprintf("%s:%d ", d.Grant, d.Amount)
	}
	want := "first:5 " + b.mustBalance("acme", "api_calls").PeriodStart.Format("allowance:"+time.RFC3339) + ":10 promo:5 paid-soon:5 paid-late:4 "
	wantEqual(t, "order of draws", order, want)
	b.mustVerify()
}

// The first use after idle periods costs the same after one period and after more than a year of hours.
func TestDebit_AfterIdlePeriods_WritesSameRows(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := time.Now().UTC()
	b.plan("pro", 1, now.AddDate(-2, 0, 0), "api_calls 3 hour tenant")
	var want string
	for _, idle := range []int{1, 100, 10_000} {
		tenant := fmt.Sprint("idle-", idle)
		signup := now.Add(-time.Duration(idle+1)*time.Hour - time.Minute) // the debit's period, then idle periods
		b.tenant(tenant, "pro", signup, signup, "UTC")
		b.mustDebit(debitOf(tenant, "k1", 3))
		got := one[string](b, `SELECT format('%s entries, %s periods, %s grants', (SELECT count(*) FROM entries WHERE tenant_id = $1),
			(SELECT count(*) FROM periods WHERE tenant_id = $1), (SELECT count(*) FROM grants WHERE tenant_id = $1))`, tenant)
		want = cmp.Or(want, got)
		wantEqual(t, fmt.Sprint("rows after ", idle, " idle periods"), got, want)
		wantEqual(t, "idle periods", one[int](b, "SELECT sum(idle) FROM periods WHERE tenant_id = $1", tenant), idle)
	}
	b.mustVerify()
	run := one[int](b, "SELECT max(pg_column_size(p.*)) FROM periods p WHERE idle > 0")
	used := one[int](b, "SELECT max(pg_column_size(p.*)) FROM periods p WHERE idle = 0")
	t.Logf("each: %s; the row of a run has %d bytes, that of a period %d", want, run, used)
}

// A read passes over the 43,800 idle hours of five years, or ten times as many, in one step. With one step per hour
// it would take more than 30 s.
func TestBalance_IdleForYears_AnswersAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	now := time.Now().UTC()
	for name, kind := range map[string]string{"plain": "NULL, NULL", "rolls": "5, 1000000000000"} {
		at := now.AddDate(-51, 0, 0)
		b.meter("api_calls")
		b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, 1, $2)", name, at)
		b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max)
			VALUES ($1, 1, 'api_calls', 0, 3, 'hour', 'calendar', `+kind+`)`, name)
	}
	for _, years := range []int{5, 50} {
		for _, plan := range []string{"plain", "rolls"} {
			tenant := fmt.Sprint(plan, years)
			signup := now.AddDate(-years, 0, 0)
			b.tenant(tenant, plan, signup, signup, "Australia/Lord_Howe")
			b.mustBalance(tenant, "api_calls") // must end within readTimeout
			require.NoError(t, errOf(b.Check(t.Context(), tenant, "", []ledger.Item{{Meter: "api_calls", Amount: 1}})))
			k := ledger.BalanceKey{Tenant: tenant, Meter: "api_calls"}
			seen, err := b.viewBalances(t.Context(), time.Time{}, k)
			require.NoError(t, err)
			n := len(seen.Books[k].Unwritten)
			assert.LessOrEqual(t, n, 10, "%s after %d years: one step per period", plan, years)
		}
	}
}

func TestRoll_CatchesUpIdleBalances_SecondRollDoesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	other := openLedger(t, b.url)
	const tenants = 600 // more than two chunks
	b.hourlies(tenants)
	b.rewind("", 3*time.Hour)
	done := make(chan Roll, 2)
	for _, l := range []*Ledger{b.Ledger, other} {
		go func() {
			r, err := l.RunRoll(t.Context(), nil, func(Roll) {})
			assert.NoError(t, err)
			done <- r
		}()
	}
	one, two := <-done, <-done
	assert.True(t, one.Status == RollDone && two.Status == RollDone && one.Processed+two.Processed == tenants,
		"got %+v and %+v", one, two)
	assert.Zero(t, b.roll().Processed, "balances that a second roll processed")
	status, err := b.RollStatus(t.Context(), one.ID)
	assert.True(t, err == nil && status.Status == RollDone, "got %+v, %v", status, err)
	_, err = b.RunRoll(t.Context(), new(time.Now().Add(time.Hour)), func(Roll) {})
	wantCode(t, err, errcode.InvalidArgument)
	wantEqual(t, "rows of closed periods: one that was used, and one for the two idle ones", b.mustVerify().Periods, tenants*2)
}

func TestPeriods_MeterEntersPlanLater_GrantedFromThen(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	b.mustGrant("acme", "g1", "credits", 5)
	b.plan("plan-10", 2, time.Now().UTC(), "api_calls 10 month calendar", "credits 20 month calendar")
	got := b.mustBalance("acme", "credits")
	wantSums(t, got, ledger.Sums{Opening: 5, Granted: 20})
	wantEqual(t, "plan", got.Plan, "plan-10")
	mustDo(b, &ledger.Debit{Tenant: "acme", Key: "k1", Items: []ledger.Item{{Meter: "credits", Amount: 25}}})
	b.mustVerify()
}

// hourly signs a tenant up for an hourly allowance. The tenant's open period began a minute ago.
func (b *bundle) hourly(id string, amount int64) *bundle {
	b.t.Helper()
	at := time.Now().UTC().Add(-time.Minute)
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ('hourly', 1, $1) ON CONFLICT DO NOTHING", at.AddDate(-1, 0, 0))
	b.meter("api_calls")
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
		VALUES ('hourly', 1, 'api_calls', 0, $1, 'hour', 'tenant') ON CONFLICT DO NOTHING`, amount)
	b.tenant(id, "hourly", at, at, "UTC")
	return b
}

// hourlies signs up n tenants t000, t001 and so on, at most ledger.BatchMax. Each tenant has an hourly allowance of
// 10 units, as created by hourly. One unit of each allowance is debited.
func (b *bundle) hourlies(n int) {
	b.t.Helper()
	b.hourly("t000", 10)
	var debits []*ledger.Debit
	for i := range n {
		debits = append(debits, debitOf(fmt.Sprintf("t%03d", i), "k", 1))
	}
	for _, table := range []string{"tenants", "tenant_terms"} {
		b.exec(fmt.Sprintf(`INSERT INTO %[1]s SELECT (jsonb_populate_record(o, jsonb_build_object('tenant_id', 't' || lpad(g::text, 3, '0')))).*
			FROM %[1]s o, generate_series(1, $1::integer) g`, table), n-1)
	}
	for _, out := range b.DebitBatch(b.t.Context(), debits) {
		require.True(b.t, out.Err == nil, out.Err)
	}
}

// rewind moves all rows of a tenant into the past, as if the given time had passed. An empty tenant means all
// tenants. It adds seven seconds, because the id of an allowance contains the start of its period. After a move by
// whole periods, the ids would repeat.
func (b *bundle) rewind(tenant string, by time.Duration) {
	b.t.Helper()
	by += 7 * time.Second
	for _, sql := range slices.Concat(testenv.Rewind(testenv.OfTenant), testenv.Rewound) {
		b.exec(sql, tenant, by)
	}
}
