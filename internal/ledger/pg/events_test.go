package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// newMovedBundle returns a bundle and PostgreSQL's clock, which the test moves. This clock alone decides.
func newMovedBundle(t *testing.T) (*bundle, *testenv.DatabaseClock) {
	t.Helper()
	url := testenv.Postgres(t)
	moved := testenv.MoveClock(t, url)
	b := newBundleOn(t, url, func(c *Config) { c.Clock = clock.New(clock.Config{SkewMax: 365 * 24 * time.Hour}) })
	return b, moved
}

// servicePool returns connections with the role of the service.
func (b *bundle) servicePool() *pgxpool.Pool { return testenv.Pool(b.t, testenv.AsService(b.url)) }

// remind reads the agreed time, and emits the events of grants that end soon.
func (b *bundle) remind(pool *pgxpool.Pool) {
	b.t.Helper()
	require.NoError(b.t, b.Ping(b.t.Context()))
	_, _, err := events.Remind(b.t.Context(), pool, b.Now())
	require.NoError(b.t, err)
}

// told returns the events that were emitted so far, as text: tenant, type, meter, subject, and the fields of data
// that the tests compare.
func (b *bundle) told() []string {
	b.t.Helper()
	lines := list[string](b, `SELECT concat_ws(' ', tenant_id, type, nullif(meter, ''), nullif(subject, ''), data->>'threshold', data->>'grant_id',
		data->>'hold_id', data->>'used', data->>'limit', data->>'amount') FROM events ORDER BY at, type, data->>'used', data->>'threshold'`)
	slices.Sort(lines)
	return lines
}

func (b *bundle) wantTold(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	wantEqual(b.t, "events", b.told(), append([]string{}, want...))
}

// mustGrantUntil makes a grant of credits with an end, for tenant acme.
func (b *bundle) mustGrantUntil(id string, amount int64, end time.Time) {
	b.t.Helper()
	g := topupOf("acme", "key-"+id, "credits", amount)
	g.GrantID, g.ExpiresAt = id, end
	mustDo(b, g)
}

func TestEvents_DebitCrossesThresholds_EachToldOnceInThePeriod(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.debit("acme", "k1", 79)
	b.wantTold()
	b.debit("acme", "k2", 1)
	b.wantTold("acme balance.threshold_reached api_calls 80 80 100")
	b.debit("acme", "k2", 1) // a replay
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r", OperationID: "k2"})
	b.debit("acme", "k3", 21) // crosses 80 again, and 100
	want := []string{
		"acme balance.threshold_reached api_calls 80 80 100", "acme balance.threshold_reached api_calls 100 100 100", "acme balance.exhausted api_calls 100 100",
	}
	b.wantTold(want...)
	// If the limit is the same, a refund and a new debit emit no event again. A top-up raises the limit and arms what the
	// share is below then.
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r3", OperationID: "k3", Amount: 5})
	b.debit("acme", "k4", 5)
	b.wantTold(want...)
	b.mustGrant("acme", "t", "api_calls", 50)
	b.debit("acme", "k5", 50)
	b.wantTold(append(want, "acme grant.created api_calls "+"grant-e3b98a4da31a127d 50", "acme balance.threshold_reached api_calls 80 150 150",
		"acme balance.threshold_reached api_calls 100 150 150", "acme balance.exhausted api_calls 150 150")...)
	b.mustVerify()
}

func TestEvents_OneDebitCrossesTwo_BothTold_AlsoInOneBatchWithARefund(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { c.Lanes = 1 }).simple("acme", 100)
	b.simple("globex", 100)
	b.debit("acme", "k1", 100)
	both := func(tenant string) []string {
		return []string{
			tenant + " balance.threshold_reached api_calls 80 100 100", tenant + " balance.threshold_reached api_calls 100 100 100",
			tenant + " balance.exhausted api_calls 100 100",
		}
	}
	b.wantTold(both("acme")...)

	// The first operation of a batch crosses a threshold. Its event is emitted although the next operation raises the
	// limit.
	calls := []*ledger.Call{ledger.NewCall(debitOf("globex", "d", 100)), ledger.NewCall(topupOf("globex", "t", "api_calls", 100))}
	b.runQueued(t.Context(), []group{{calls: calls, by: time.Now().Add(5 * time.Second)}})
	for _, c := range calls {
		require.True(t, c.Err == nil, c.Err)
	}
	b.wantTold(slices.Concat(both("acme"), both("globex"), []string{"globex grant.created api_calls grant-e3b98a4da31a127d 100"})...)
	b.mustVerify()
}

func TestEvents_AlertAt_OfThePlan_AlsoForSubjects(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.exec("UPDATE plan_allowances SET alert_at = '{50}', per_subject = 10")
	b.simple("quiet", 200)
	b.exec("UPDATE plan_allowances SET alert_at = '{}', per_subject = 10 WHERE amount = 200")
	b.simple("plain", 300)
	b.exec("UPDATE plan_allowances SET per_subject = 10 WHERE amount = 300")
	for _, tenant := range []string{"acme", "quiet", "plain"} {
		b.mustDebit(debitFor("ann", tenant, "k", 10))
	}
	b.debit("acme", "k2", 40)
	b.debit("quiet", "k2", 180)
	b.wantTold("acme balance.threshold_reached api_calls ann 50 10 10", "acme balance.exhausted api_calls ann 10 10",
		"acme balance.threshold_reached api_calls 50 50 100")
	b.debit("quiet", "k3", 10)
	b.wantTold("acme balance.threshold_reached api_calls ann 50 10 10", "acme balance.exhausted api_calls ann 10 10",
		"acme balance.threshold_reached api_calls 50 50 100", "quiet balance.exhausted api_calls 200 200")
}

func TestEvents_Overage_CountsAsUse(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.exec("UPDATE plan_allowances SET alert_at = '{100,150}', overage_policy = 'allow'")
	b.debit("acme", "k1", 149)
	b.debit("acme", "k2", 1)
	b.wantTold("acme balance.threshold_reached api_calls 100 149 100", "acme balance.exhausted api_calls 149 100", "acme balance.threshold_reached api_calls 150 150 100")
}

// statements collects the statements that are sent to PostgreSQL.
type statements struct {
	mu   sync.Mutex
	sent []string
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sql)
}

func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

// This method and the next ones implement the tracer interfaces of pgx.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.add(d.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.add("round trip")
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.add(d.SQL)
}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// trace replaces a pool of the ledger by a pool that records its statements.
func (b *bundle) trace(pool **pgxpool.Pool) *statements {
	b.t.Helper()
	sent := &statements{}
	cfg := (*pool).Config()
	cfg.ConnConfig.Tracer = sent
	traced, err := pgxpool.NewWithConfig(b.t.Context(), cfg)
	require.NoError(b.t, err)
	(*pool).Close()
	*pool = traced
	return sent
}

// sentByPlainDebit returns what is sent for a debit that the head grant covers.
func (b *bundle) sentByPlainDebit() []string {
	q := b.sql
	return []string{
		"round trip", "BEGIN ISOLATION LEVEL READ COMMITTED", q["LockBalances"], q["Clock"], q["StoredEntries"],
		"round trip", q["InsertPlainDebits"], q["UpdateDrawnBalances"], "COMMIT",
	}
}

// A debit of a balance that stays below its lowest threshold needs no additional statement and no additional round
// trip for events.
func TestEvents_BelowTheThreshold_NoStatementMore(t *testing.T) {
	testenv.NotOnCitus(t, "batches have further statements there")
	t.Parallel()
	b := newBundle(t)
	sent := b.trace(&b.writers)
	b.simple("acme", 1000)
	b.debit("acme", "first", 1) // creates the balance
	b.debit("acme", "terms", 1) // reads its terms
	sent.take()
	b.debit("acme", "second", 1)
	want := b.sentByPlainDebit()
	wantEqual(t, "statements of a debit below the threshold", sent.take(), want)
	b.debit("acme", "k", 700)
	wantEqual(t, "statements of a larger one", sent.take(), want)
	b.debit("acme", "most", 100)
	if got := strings.Join(sent.take(), "\n"); !strings.Contains(got, "INSERT INTO events") || !strings.Contains(got, "FROM event_marks") && !strings.Contains(got, "JOIN event_marks") {
		t.Errorf("a threshold was crossed, and no event was inserted:\n%s", got)
	}
	b.debit("acme", "after", 1) // above an emitted threshold there are no additional statements, either
	wantEqual(t, "statements of a debit above it", sent.take(), want)
	for tenant, levels := range map[string]string{"none": "{}", "ten": "{10,20,30,40,50,60,70,80,90,100}"} { // set in the plan
		b.simple(tenant, 1000)
		b.exec("UPDATE plan_allowances SET alert_at = $2 WHERE plan = (SELECT plan FROM tenants WHERE tenant_id = $1)", tenant, levels)
		b.debit(tenant, "first", 1)
		b.debit(tenant, "terms", 1)
		sent.take()
		b.debit(tenant, "second", 1)
		wantEqual(t, "statements of a debit with these thresholds: "+tenant, sent.take(), want)
	}
}

// Two instances debit one balance at the same time. The debit that crosses the threshold emits the event, once.
func TestEvents_TwoInstances_OneBalance_ToldOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	other := openLedger(t, b.url)
	b.simple("acme", 100)
	var all sync.WaitGroup
	for i := range 100 {
		l := b.Ledger
		if i%2 == 0 {
			l = other
		}
		all.Go(func() {
			assert.NoError(t, errOf(Do(t.Context(), l, debitOf("acme", fmt.Sprint("k", i), 1))))
		})
	}
	all.Wait()
	b.wantTold("acme balance.threshold_reached api_calls 80 80 100", "acme balance.threshold_reached api_calls 100 100 100", "acme balance.exhausted api_calls 100 100")
}

func TestEvents_SweepOfIdleTenant_TellsWhatEnded(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("trial", 1, at, "credits 0 once tenant", "api_calls 100 once tenant")
	b.exec("UPDATE plan_allowances SET expires_in_days = 14 WHERE meter = 'api_calls'")
	b.tenant("acme", "trial", at, at, "UTC")
	b.debit("acme", "k", 10)
	b.mustGrantUntil("pack", 50, time.Now().Add(30*24*time.Hour))
	b.mustGrantUntil("short", 5, time.Now().Add(2*24*time.Hour))
	b.mustGrantUntil("voided", 7, time.Now().Add(9*24*time.Hour))
	mustDo(b, &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: "acme", Key: "v", GrantID: "voided", Reason: "test"})
	credits := []ledger.Item{{Meter: "credits", Amount: 3}}
	mustDo(b, &ledger.Hold{Tenant: "acme", Key: "h", HoldID: "job:7", TTL: time.Minute, Items: credits})
	want := []string{"acme grant.created credits pack 50", "acme grant.created credits short 5", "acme grant.created credits voided 7"}
	b.wantTold(want...)
	pool := b.servicePool()
	sweep := b.NewSweep()
	tick := func(add ...string) {
		t.Helper()
		b.remind(pool)
		require.NoError(t, sweep.Run(t.Context()))
		want = append(want, add...)
		b.wantTold(want...)
	}
	tick("acme grant.expiring credits short 5") // the grant lasts less than 7 days
	tick()
	moved.Advance(2 * time.Minute)
	tick("acme hold.expired credits job:7 3")
	moved.Advance(3 * 24 * time.Hour)
	tick("acme grant.expired credits short 5")
	moved.Advance(5 * 24 * time.Hour) // day 8: the trial's end is announced
	trial := "allowance:" + at.Format("2006-01-02T15:04:05.999999Z")
	tick("acme grant.expiring api_calls " + trial + " 100")
	moved.Advance(7 * 24 * time.Hour)
	tick("acme grant.expired api_calls " + trial + " 90")
	moved.Advance(10 * 24 * time.Hour)
	tick("acme grant.expiring credits pack 50")
	moved.Advance(7 * 24 * time.Hour)
	tick("acme grant.expired credits pack 50", "acme balance.exhausted credits 0 0")
	tick()
	b.mustVerify()
}

// TestEvents_ExtendedGrant_IsAnnouncedBeforeItsLastEnd extends three grants. An end that was not announced before the
// extension is announced later, at its new time. An end that was already announced is announced again. If the
// extension removes the end, no end is announced.
func TestEvents_ExtendedGrant_IsAnnouncedBeforeItsLastEnd(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	b.simple("acme", 100)
	day := func(n int) time.Time { return time.Now().Add(time.Duration(n) * 24 * time.Hour) }
	var want []string
	for id, ends := range map[string]time.Time{"told": day(5), "untold": day(20), "endless": day(20)} {
		b.mustGrantUntil(id, 10, ends)
		want = append(want, "acme grant.created credits "+id+" 10")
	}
	pool := b.servicePool()
	tick := func(add ...string) {
		t.Helper()
		b.remind(pool)
		want = append(want, add...)
		b.wantTold(want...)
	}
	tick("acme grant.expiring credits told 10")
	for id, ends := range map[string]time.Time{"told": day(40), "untold": day(60), "endless": {}} {
		mustDo(b, &ledger.GrantChange{Action: ledger.ExtendGrant, Tenant: "acme", Key: "x-" + id, GrantID: id, ExpiresAt: ends, Reason: "paid late"})
	}
	tick()
	moved.Advance(19 * 24 * time.Hour) // without the extensions, all ends would have been announced by now
	tick()
	moved.Advance(15 * 24 * time.Hour)
	tick("acme grant.expiring credits told 10")
	moved.Advance(20 * 24 * time.Hour)
	tick("acme grant.expiring credits untold 10")
	moved.Advance(300 * 24 * time.Hour)
	tick()
	b.mustVerify()
}

// A reminder is read as due. Before it is deleted, an extension of the grant moves the reminder to a later time. Then
// the reminder is kept.
func TestEvents_ReminderMovedMeanwhile_StaysForItsNewEnd(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.mustGrantUntil("g", 10, time.Now().Add(3*24*time.Hour))
	pool := b.servicePool()
	// A lock of the reminder's row stops Remind after it has read the reminder and before it deletes it. When the
	// lock ends, the extension is committed.
	hold, err := b.db.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, errOf(hold.Exec(t.Context(), "UPDATE grant_reminders SET due_at = due_at + interval '30 days'")))
	reminded := make(chan error, 1)
	go func() {
		_, _, err := events.Remind(t.Context(), pool, b.Now())
		reminded <- err
	}()
	testenv.Eventually(t, func() bool {
		var waiting int
		return pool.QueryRow(t.Context(), testenv.Waiting()).Scan(&waiting) == nil && waiting > 0
	})
	require.NoError(t, hold.Commit(t.Context()))
	require.NoError(t, <-reminded)
	b.wantTold("acme grant.created credits g 10")
	wantEqual(t, "reminders", list[string](b, "SELECT grant_id FROM grant_reminders"), []string{"g"})
}

func TestEvents_PeriodOpened_OnlyIfAWebhookWantsIt(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	b.simple("acme", 100)
	b.simple("globex", 100)
	b.debit("acme", "k1", 1)
	b.debit("globex", "k1", 1)
	b.wantTold()
	moved.Advance(31 * 24 * time.Hour)
	b.debit("acme", "k2", 1)
	b.wantTold()
	b.exec("INSERT INTO webhooks (webhook_id, url, types, tenant_id, status) VALUES ('w', 'https://example.com', '{period.opened}', 'acme', 'paused')")
	moved.Advance(31 * 24 * time.Hour)
	b.debit("acme", "k3", 1)
	b.debit("globex", "k3", 1)
	b.wantTold("acme period.opened api_calls 100")
	b.mustVerify()
}
