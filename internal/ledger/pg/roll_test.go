package pg

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// backlog signs up the given number of tenants for an hourly allowance, the given number of hours ago. Their balances
// have not been used since then.
func (b *bundle) backlog(tenants, hours int) *bundle {
	b.t.Helper()
	at := time.Now().UTC().Add(-time.Duration(hours) * time.Hour)
	b.plan("hourly", 1, at, "api_calls 10 hour tenant")
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at)
		SELECT 'idle-' || lpad(n::text, 7, '0'), 'hourly', $2, 'UTC', $2 FROM generate_series(1, $1::integer) AS n`, tenants, at)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
		SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants WHERE tenant_id LIKE 'idle-%'`)
	b.exec(`INSERT INTO balances (tenant_id, meter) SELECT tenant_id, 'api_calls' FROM tenants WHERE tenant_id LIKE 'idle-%'`)
	return b
}

// dueNow counts the balances whose next event is due.
const dueNow = "SELECT count(*) FROM balances WHERE next_event_at <= clock_timestamp()"

// Idle periods are derived from the terms. So a roll writes nothing for them, for any number of balances.
func TestRoll_OnlyIdlePeriodsPass_HasNothingToDo(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tenants := 2000
	if n, err := strconv.Atoi(os.Getenv("QUOTASVC_IDLE_BALANCES")); err == nil {
		tenants = n
	}
	b.backlog(0, 24)
	b.exec(`INSERT INTO balances (tenant_id, meter, plan, plan_version, renews, allowance, period_start, period_end, next_event_at, updated_at, roll_at)
		SELECT 'idle-' || n, 'api_calls', 'hourly', 1, true, 10, h - interval '9 hours', h - interval '8 hours', h - interval '8 hours',
			h - interval '9 hours', '9999-12-31T23:59:59Z'
		FROM generate_series(1, $1::integer) AS n, date_trunc('hour', clock_timestamp()) AS h`, tenants)
	b.exec("ANALYZE balances")
	began := time.Now()
	roll := b.roll()
	require.True(t, roll.Total == 0 && roll.Processed == 0, "got %+v", roll)
	t.Logf("%d idle balances: the roll took %s", tenants, time.Since(began).Round(time.Millisecond))
	size := one[int](b, "SELECT pg_relation_size('balances_by_due')")
	assert.LessOrEqual(t, size, 16384, "the index of what is to be rolled has idle balances, want none of them in it")
}

// The first debit of an open period sets the time at which a roll must close the period. Later debits do not change
// that time.
func TestDebit_FirstInOpenedPeriod_MakesItDueAtItsEnd(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	// A denied debit opens the period and leaves it unused.
	wantRefusal(b, errcode.CreditsExhausted, debitOf("acme", "denied", 11))
	due := func() time.Time { return one[time.Time](b, "SELECT roll_at FROM balances").UTC() }
	assert.True(t, due().Equal(period.Forever), "a period that was only opened is due for a roll at %s", due())
	for i := range 3 {
		b.mustDebit(debitOf("acme", fmt.Sprint("k", i), 1))
		end := one[time.Time](b, "SELECT period_end FROM balances").UTC()
		wantEqual(t, fmt.Sprint("due for a roll after debit ", i, ": the period's end"), due(), end)
	}
	b.mustVerify()
}

func TestRoll_WeekOfHourlyBacklog_IsCaughtUp(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const tenants, hours = 512, 7 * 24
	b.backlog(tenants, hours)
	wantEqual(t, "status", b.roll().Status, RollDone)
	assert.Zero(t, b.roll().Total, "balances that a second roll found due")
	b.mustVerify()
}

// The open period of one balance is already in the table of closed periods, so no roll can close it. The roll must
// set this balance aside and process the other balances.
func TestRoll_BalanceThatCannotBeWritten_IsSetAside_OthersAreRolled(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const tenants = 40
	b.hourlies(tenants)
	b.rewind("", 90*time.Minute)
	b.exec("UPDATE balances SET roll_at = roll_at - interval '1 minute' WHERE tenant_id = 't007'") // t007 is always first
	b.exec(`INSERT INTO periods (tenant_id, meter, subject, period_start, period_end, plan, plan_version, opening, granted, refunded, used, expired,
			adjusted, overage, held, closing, last_seq, closed_at)
		SELECT tenant_id, meter, subject, period_start, period_end, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, period_end FROM balances WHERE tenant_id = 't007'`)
	roll := b.roll()
	due := one[int](b, dueNow)
	assert.True(t, due == 1 && roll.Status == RollDone && roll.SetAside == 1 && roll.Processed == tenants-1,
		"%d balances are still due, want the one that cannot be written; the roll is %+v", due, roll)
}

// At a month's end the sweeps of all instances find the same due balances. A sweep processes one transaction's
// balances. Only the sweep that holds the row of roll_turn processes more. While a roll holds that row, no sweep
// processes more.
func TestSweep_MoreThanOneTransaction_WaitsForItsTurn(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const balances = 4 * chunkMin
	b.hourlies(balances)
	b.rewind("", 90*time.Minute)
	due := balances
	sweep := func(s *Sweep, all bool, why string) { // a transaction takes chunkMin balances, on Citus only those in one shard group
		t.Helper()
		before := due
		require.NoError(t, s.Run(t.Context()))
		due = one[int](b, dueNow)
		if done := before - due; all && due > 0 || !all && (done < 1 || done > chunkMin) {
			t.Errorf("%s: of %d balances that were due %d are left after the sweep", why, before, due)
		}
	}
	mine, other := b.NewSweep(), b.NewSweep()
	ok, err := b.takeSlot(t.Context(), other.holder, false)
	require.True(t, ok && err == nil, "%v, %v", ok, err)
	sweep(mine, false, "another instance sweeps")
	require.NoError(t, errOf(b.takeSlot(t.Context(), "roll-1", true)))
	sweep(other, false, "a roll has taken the turn")
	b.exec("UPDATE roll_turn SET until = clock_timestamp() + interval '1 hour'") // PostgreSQL's clock was an hour ahead
	sweep(mine, true, "the turn was given by a wrong clock")
	ok, err = b.takeSlot(t.Context(), other.holder, false)
	assert.True(t, !ok && err == nil, "two sweeps have the turn (%v)", err)
	b.exec("UPDATE roll_turn SET until = clock_timestamp() - interval '1 second'") // its holder was killed
	ok, err = b.takeSlot(t.Context(), other.holder, false)
	assert.True(t, ok && err == nil, "a turn that has ended is not free (%v)", err)
	roll := b.roll()
	wantEqual(t, "holder of the turn: the roll", one[string](b, "SELECT holder FROM roll_turn"), roll.ID)
	b.mustVerify()
}

// While a dump keeps its snapshot, for hours, PostgreSQL keeps each index entry that a roll has made dead. A roll
// must not read these entries repeatedly. Otherwise each of a million balances would cost more than the balance
// before it.
func TestRoll_BesideOpenSnapshot_ReadsNoDeadEntriesAgain(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	const balances = 2000
	b.backlog(balances, 3)
	b.exec("ANALYZE balances")
	snapshot, err := b.db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = snapshot.Rollback(context.WithoutCancel(t.Context())) }()
	require.NoError(t, errOf(snapshot.Exec(t.Context(), "SELECT FROM balances LIMIT 1")))
	now, err := b.askTime(t.Context(), b.readers)
	require.NoError(t, err)
	r := &roller{Roll: &Roll{ID: "roll-1", AsOf: now}, ledger: b.Ledger, chunk: chunkMin}
	for r.Processed < balances*3/4 {
		done, err := r.next(t.Context())
		require.True(t, !done && err == nil, "%v, %v", done, err)
	}
	lock, on := b.sql["LockDueBalances"], b.writers
	if b.cluster != nil {
		lock, on = b.sql["DueBalances"], b.readers
	}
	pages := func(from duePosition) (pages int) {
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		err := pgx.BeginFunc(t.Context(), on, func(tx pgx.Tx) error {
			none := []string{}
			row := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+lock, pgx.QueryExecModeSimpleProtocol, now, chunkMin, none, none, none, toDB(from.due), from.tenant)
			return row.Scan(&plan)
		})
		require.NoError(t, err)
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	whole, rest := pages(duePosition{}), pages(r.from)
	t.Logf("the next %d of %d balances take %d pages, from the beginning %d", chunkMin, balances, rest, whole)
	assert.False(t, b.cluster == nil && (whole < balances/32 || rest > 3*chunkMin),
		"the next %d balances take %d pages from the position of the roll on, want at most %d; from the beginning they take %d", chunkMin, rest, 3*chunkMin, whole)
	b.roll()
	b.mustVerify()
}

// A sweep normally begins at the instant where the last sweep ended. After sweepWhole it begins with the earliest due
// balance, to find an event that was written after the last sweep with a due time before that sweep.
func TestSweep_DueInThePast_IsFoundByTheNextWholeOne(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := b.NewSweep()
	require.NoError(t, s.Run(t.Context()))
	b.backlog(2, 3)
	for _, whole := range []bool{false, true} {
		if whole {
			s.whole = s.whole.Add(-sweepWhole)
		}
		require.NoError(t, s.Run(t.Context()))
		due := one[int](b, "SELECT count(*) FROM balances WHERE coalesce(roll_at, next_event_at) <= clock_timestamp()")
		assert.True(t, (!whole || due == 0) && (whole || due == 2),
			"whole: %v; %d balances are due after the sweep", whole, due)
	}
	b.mustVerify()
}
