package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// answered is the result of one call, and the time that the caller waited for it.
type answered struct {
	tenant string
	err    error
	took   time.Duration
}

// load starts one client for each of the tenants. A client makes up to `most` debits and stops at its first error.
// The function `got` waits for the clients and returns the results of their calls.
func (b *bundle) load(most int, tenants ...string) (got func() []answered) {
	var mu sync.Mutex
	var all []answered
	var wg sync.WaitGroup
	for client, tenant := range tenants {
		wg.Go(func() {
			failed := false
			for i := 0; i < most && !failed; i++ {
				began := time.Now()
				_, err := Do(context.Background(), b.Ledger, debitOf(tenant, fmt.Sprint(client, "-", i), 1))
				failed = err != nil
				mu.Lock()
				all = append(all, answered{tenant, err, time.Since(began)})
				mu.Unlock()
			}
		})
	}
	return func() []answered {
		wg.Wait()
		return all
	}
}

// lockRow locks the tenant's balance in a transaction outside the ledger, until the returned function is called.
func (b *bundle) lockRow(tenant string) (unlock func()) {
	b.t.Helper()
	other := b.another()
	other.exec("BEGIN")
	other.exec("SELECT 1 FROM balances WHERE tenant_id = $1 FOR UPDATE", tenant)
	return func() {
		b.t.Helper()
		other.exec("COMMIT")
	}
}

// promised is the time within which the ledger answers each call. Tests allow ten times as much, because the machine
// may be busy.
const promised = 5 * time.Second

// If another transaction has locked the row of a balance, no other tenant is delayed, in any lane. Calls on the
// locked balance are refused within five seconds, with the reason. They succeed after the lock has ended.
func TestBatch_LockedBalance_DelaysNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tenants := b.answersInTime().several(12, 1_000_000)
	for _, tenant := range tenants {
		b.debit(tenant, "first", 1)
	}
	unlock := b.lockRow("t0")
	refused := b.load(1, "t0", "t0", "t0")
	testenv.Eventually(t, func() bool { return b.lockWait.lockedBalances() > 0 }, "a parked call")
	served := b.load(100, tenants[1:]...)()
	for _, a := range served {
		assert.NoError(t, a.err, "a call of %s failed", a.tenant)
		// On an idle machine the longest call takes less than a second.
		assert.LessOrEqual(t, a.took, 10*time.Second, "a call of %s waited", a.tenant)
	}
	for _, a := range refused() {
		e := wantCode(t, a.err, errcode.Unavailable)
		assert.True(t, strings.Contains(e.Detail, "locked by another transaction") && e.RetryAfter >= time.Second &&
			a.took <= 10*promised, "the locked tenant got %q, retry after %v, after %v", e.Detail, e.RetryAfter, a.took)
	}
	unlock()
	b.awaitDebit("t0", "after") // the lock has gone
	b.mustVerify()
}

// An instance that freezes inside a transaction keeps the balances of its batch locked. Another instance continues
// with all other balances.
func TestBatch_FrozenInstance_OtherTenantsGoOn(t *testing.T) {
	testenv.NotOnCitus(t, "the frozen batch of the test spans two shard groups, which no batch does there")
	t.Parallel()
	b := newBundle(t).answersInTime()
	for _, tenant := range []string{"a", "b", "c"} {
		b.simple(tenant, 1000)
		b.mustDebit(debitOf(tenant, "first", 1))
	}
	// The frozen instance has sent the first round trip of a batch of tenants a and b. It never sends the rest of the
	// batch.
	frozen := b.another()
	frozen.exec("BEGIN")
	frozen.exec(b.sql["LockBalances"], []string{"a", "b"}, []string{"api_calls", "api_calls"}, []string{"", ""})
	var debits []*ledger.Debit
	for i := range 9 {
		debits = append(debits, debitOf([]string{"a", "b", "c"}[i%3], fmt.Sprint("k", i), 1))
	}
	began := time.Now()
	for i, out := range b.DebitBatch(t.Context(), debits) {
		if i%3 == 2 {
			assert.True(t, out.Err == nil, "a debit of the tenant that is not locked failed: %v", out.Err)
			continue
		}
		wantCode(t, out.Err, errcode.Unavailable)
	}
	assert.LessOrEqual(t, time.Since(began), 10*promised, "the batch was answered")
	frozen.exec("ROLLBACK")
	for _, out := range b.DebitBatch(t.Context(), debits) {
		assert.True(t, out.Err == nil, "after the lock is gone: %v", out.Err)
	}
	for _, tenant := range []string{"a", "b", "c"} {
		wantEqual(t, "used by tenant "+tenant, b.mustBalance(tenant, "api_calls").Used, 4)
	}
	b.mustVerify()
}

// Calls on a locked balance are answered in the order in which they arrived. If one of an operation's balances is
// locked, the whole operation waits.
func TestBatch_LockedBalance_ServedInOrderAndWhole(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("two", 1, at, "m1 1000 month calendar", "m2 1000 month calendar")
	b.tenant("acme", "two", at, at, "UTC")
	both := func(key string, meters ...string) *ledger.Debit {
		d := &ledger.Debit{Tenant: "acme", Key: key}
		for _, m := range meters {
			d.Items = append(d.Items, ledger.Item{Meter: m, Amount: 1})
		}
		return d
	}
	b.mustDebit(both("first", "m1", "m2"))
	other := b.another()
	other.exec("BEGIN")
	other.exec("SELECT 1 FROM balances WHERE tenant_id = 'acme' AND meter = 'm1' FOR UPDATE")
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		meters := []string{"m1"}
		if i%2 == 1 {
			meters = []string{"m2", "m1"}
		}
		wg.Go(func() {
			_, err := Do(context.Background(), b.Ledger, both(fmt.Sprintf("k%02d", i), meters...))
			assert.NoError(t, err, "debit %d", i)
		})
		testenv.Eventually(t, func() bool { return b.parkedCalls() == i+1 })
	}
	b.mustDebit(both("free", "m2"))
	wantEqual(t, "debits that wait after one on the other meter", b.parkedCalls(), n)
	other.exec("COMMIT")
	wg.Wait()
	keys := list[string](b, `SELECT operation_id FROM entries
		WHERE tenant_id = 'acme' AND meter = 'm1' AND operation_id LIKE 'k%' ORDER BY seq`)
	assert.True(t, len(keys) == n && slices.IsSorted(keys), "served in the order %v", keys)
	b.mustVerify()
}

// parkedCalls returns the number of calls that wait for a locked balance.
func (b *bundle) parkedCalls() int {
	b.lockWait.mu.Lock()
	defer b.lockWait.mu.Unlock()
	return len(b.lockWait.calls)
}

// Another transaction locks the row of a balance nearly all the time. Calls on this balance must still be served.
func TestBatch_SlowNeighbour_IsNotStarved(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 1000)
	b.mustDebit(debitOf("acme", "first", 1))
	neighbour := b.another()
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { // repeatedly holds the row for 180 ms
		for ctx.Err() == nil {
			if _, err := neighbour.db.Exec(context.Background(),
				"BEGIN; SELECT 1 FROM balances WHERE tenant_id = 'acme' FOR UPDATE; SELECT pg_sleep(0.18); COMMIT"); err != nil {
				t.Errorf("neighbour: %v", err)
				return
			}
		}
	})
	for i := range 8 {
		b.debit("acme", fmt.Sprint("k", i), 1)
	}
	stop()
	working.Wait()
	b.mustVerify()
}

// A ledger that stops refuses the calls that wait for a locked balance. It does not wait for the lock.
func TestStop_CallsWaitForLockedBalance_AreRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustDebit(debitOf("acme", "first", 1))
	other := openLedger(t, b.url)
	unlock := b.lockRow("acme")
	defer unlock()
	told := make(chan error, 1)
	go func() {
		_, err := Do(context.Background(), other, debitOf("acme", "k", 1))
		told <- err
	}()
	testenv.Eventually(t, func() bool { return (&bundle{Ledger: other}).parkedCalls() > 0 })
	assert.NoError(t, other.Stop(t.Context()))
	assert.Contains(t, wantCode(t, <-told, errcode.Unavailable).Detail, "stopping", "refused with")
}

// While PostgreSQL hangs, every call is refused. The first calls are refused within five seconds, later calls at
// once. About a second after PostgreSQL answers again, calls are served.
func TestBatch_DatabaseHangs_RefusedWithinFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	b := newBundleOn(t, server.URL)
	tenants := b.several(20, 1_000_000)
	for _, tenant := range tenants {
		b.debit(tenant, "first", 1)
	}
	b.answersInTime()
	server.Pause()
	refused := b.load(1, tenants...)()
	for _, a := range refused {
		assert.True(t, a.err != nil && a.took <= 10*promised,
			"PostgreSQL hangs, and a caller got %v after %v", a.err, a.took)
	}
	testenv.Eventually(t, func() bool { return b.Away() != nil }, "PostgreSQL known to be away")
	for i := range 20 { // these calls are refused without an attempt
		_, err := Do(t.Context(), b.Ledger, debitOf("t1", fmt.Sprint("away-", i), 1))
		assert.Contains(t, wantCode(t, err, errcode.Unavailable).Detail, reasonAway.text(),
			"PostgreSQL is known to be away, and a caller")
	}
	server.Resume()
	returned, tries := time.Now(), 0
	testenv.Eventually(t, func() bool {
		tries++
		_, err := Do(t.Context(), b.Ledger, debitOf("t1", fmt.Sprint("back-", tries), 1))
		return err == nil
	}, "an answer after PostgreSQL's return")
	assert.LessOrEqual(t, time.Since(returned), 40*time.Second, "served again after the return")
	b.reconnect()
	b.mustVerify()
}
