package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// answered is what a caller got, and after what time.
type answered struct {
	tenant string
	err    error
	took   time.Duration
}

// load debits from each of tenants with one client until stop is closed, and returns what the clients got.
func (b *bundle) load(l *Ledger, stop <-chan struct{}, tenants ...string) (got func() []answered) {
	var mu sync.Mutex
	var all []answered
	var wg sync.WaitGroup
	for _, tenant := range tenants {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				_, err := Do(context.Background(), l, debitOf(tenant, fmt.Sprint(tenant, "-", i), 1))
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

// lockRow locks the tenant's balance in a transaction that is not the ledger's, until the returned function is called.
func (b *bundle) lockRow(tenant string) (unlock func()) {
	b.t.Helper()
	other := &bundle{t: b.t, url: b.url}
	other.reconnect()
	other.exec("BEGIN")
	other.exec("SELECT 1 FROM balances WHERE tenant_id = $1 FOR UPDATE", tenant)
	return func() {
		b.t.Helper()
		other.exec("COMMIT")
	}
}

// busy is what other tests of a busy machine may add to a bound on waiting.
const busy = time.Second

func longest(all []answered, of func(answered) bool) (longest time.Duration, n int) {
	for _, a := range all {
		if of(a) {
			longest, n = max(longest, a.took), n+1
		}
	}
	return longest, n
}

// One row that a stranger has locked delays no other tenant, whichever lane it is in. Its own callers are refused within five seconds with
// the reason, and served when the lock goes.
func TestBatch_LockedBalance_DelaysNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var tenants []string
	for i := range 12 {
		tenants = append(tenants, fmt.Sprint("n", i))
		b.simple(tenants[i], 1_000_000)
		b.mustDebit(debitOf(tenants[i], "first", 1))
	}
	unlock := b.lockRow("n0")
	stop := make(chan struct{})
	got := b.load(b.Ledger, stop, append(tenants, "n0", "n0")...)
	time.Sleep(7 * time.Second) // a lock that lasts: longer than any caller waits
	unlock()
	testenv.Eventually(t, func() bool {
		_, err := Do(t.Context(), b.Ledger, debitOf("n0", fmt.Sprint("after", time.Now().UnixNano()), 1))
		return err == nil
	})
	close(stop)
	all := got()

	others := func(a answered) bool { return a.tenant != "n0" }
	if took, n := longest(all, others); took > time.Second || n < 1000 {
		t.Errorf("%d calls of the other tenants waited up to %v", n, took)
	}
	if i := slices.IndexFunc(all, func(a answered) bool { return others(a) && a.err != nil }); i >= 0 {
		t.Errorf("a call of %s failed: %v", all[i].tenant, all[i].err)
	}
	refused := func(a answered) bool { return !others(a) && a.err != nil }
	if took, n := longest(all, refused); took > 5*time.Second+busy || n == 0 {
		t.Errorf("%d calls of the locked tenant were refused after up to %v", n, took)
	}
	for _, a := range all {
		if !refused(a) {
			continue
		}
		e := wantCode(t, a.err, ledger.CodeUnavailable)
		if !strings.Contains(e.Detail, "locked by another transaction") || e.RetryAfter < time.Second {
			t.Errorf("the locked tenant was told %q, retry after %v", e.Detail, e.RetryAfter)
		}
	}
	b.mustVerify()
}

// An instance that freezes inside a transaction keeps the balances of its batch locked. Another instance goes on with all other balances.
func TestBatch_FrozenInstance_OtherTenantsGoOn(t *testing.T) {
	testenv.NotOnCitus(t, "the frozen batch of the test spans two shard groups, which no batch does there")
	t.Parallel()
	b := newBundle(t)
	for _, tenant := range []string{"a", "b", "c"} {
		b.simple(tenant, 1000)
		b.mustDebit(debitOf(tenant, "first", 1))
	}
	// The first round trip of a batch of a and b, and then nothing.
	frozen := &bundle{t: t, url: b.url}
	frozen.reconnect()
	frozen.exec("BEGIN")
	frozen.exec(b.sql["LockBalances"], []string{"a", "b"}, []string{"api_calls", "api_calls"}, []string{"", ""})
	var debits []*ledger.Debit
	for i := range 9 {
		debits = append(debits, debitOf([]string{"a", "b", "c"}[i%3], fmt.Sprint("k", i), 1))
	}
	began := time.Now()
	for i, out := range b.DebitBatch(t.Context(), debits) {
		if i%3 == 2 {
			if out.Err != nil {
				t.Errorf("a debit of the tenant that is not locked failed: %v", out.Err)
			}
			continue
		}
		wantCode(t, out.Err, ledger.CodeUnavailable)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the batch was answered after %v", took)
	}
	frozen.exec("ROLLBACK")
	for _, out := range b.DebitBatch(t.Context(), debits) {
		if out.Err != nil {
			t.Errorf("after the lock is gone: %v", out.Err)
		}
	}
	for _, tenant := range []string{"a", "b", "c"} {
		if got := b.mustBalance(tenant, "api_calls").Used; got != 4 {
			t.Errorf("tenant %s used %d, want 4", tenant, got)
		}
	}
	b.mustVerify()
}

// Calls on a locked balance are answered in the order in which they came, and an operation over several balances of which one is locked
// waits as a whole.
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
	other := &bundle{t: t, url: b.url}
	other.reconnect()
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
			if _, err := Do(context.Background(), b.Ledger, both(fmt.Sprintf("k%02d", i), meters...)); err != nil {
				t.Errorf("debit %d: %v", i, err)
			}
		})
		testenv.Eventually(t, func() bool { return b.shelfCalls() == i+1 })
	}
	began := time.Now()
	b.mustDebit(both("free", "m2"))
	if took := time.Since(began); took > time.Second {
		t.Errorf("a debit on the other meter took %v", took)
	}
	other.exec("COMMIT")
	wg.Wait()
	var keys []string
	rows, err := b.db.Query(t.Context(), "SELECT operation_id FROM entries WHERE tenant_id = 'acme' AND meter = 'm1' AND operation_id LIKE 'k%' ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if len(keys) != n || !slices.IsSorted(keys) {
		t.Errorf("served in the order %v", keys)
	}
	b.mustVerify()
}

// shelfCalls returns how many calls wait on the shelf.
func (b *bundle) shelfCalls() int {
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	return len(b.shelf.calls)
}

// A balance that two instances use all the time is not starved: who waits gets its turn.
func TestBatch_SlowNeighbour_IsNotStarved(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 1000)
	b.mustDebit(debitOf("acme", "first", 1))
	neighbour := &bundle{t: t, url: b.url}
	neighbour.reconnect()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // holds the row for 180 ms, again and again
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := neighbour.db.Exec(context.Background(),
				"BEGIN; SELECT 1 FROM balances WHERE tenant_id = 'acme' FOR UPDATE; SELECT pg_sleep(0.18); COMMIT"); err != nil {
				t.Errorf("neighbour: %v", err)
				return
			}
		}
	}()
	for i := range 8 {
		if _, err := Do(t.Context(), b.Ledger, debitOf("acme", fmt.Sprint("k", i), 1)); err != nil {
			t.Errorf("debit %d: %v", i, err)
		}
	}
	close(stop)
	<-ended
	b.mustVerify()
}

// A ledger that stops refuses what waits for a locked balance. It does not wait for the lock.
func TestStop_CallsWaitForLockedBalance_AreRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 1000)
	b.mustDebit(debitOf("acme", "first", 1))
	other := openLedger(t, b.url)
	unlock := b.lockRow("acme")
	defer unlock()
	told := make(chan error, 1)
	go func() {
		_, err := Do(context.Background(), other, debitOf("acme", "k", 1))
		told <- err
	}()
	testenv.Eventually(t, func() bool { return (&bundle{Ledger: other}).shelfCalls() > 0 })
	began := time.Now()
	if err := other.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	e := wantCode(t, <-told, ledger.CodeUnavailable)
	if took := time.Since(began); took > 2*time.Second || !strings.Contains(e.Detail, "stopping") {
		t.Errorf("refused after %v with %q", took, e.Detail)
	}
}

// While PostgreSQL hangs, every caller is refused within five seconds, and soon at once. It is served again about a second after its
// return.
func TestBatch_DatabaseHangs_RefusedWithinFiveSecondsThenAtOnce(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	b := newBundleOn(t, server.URL)
	var tenants []string
	for i := range 20 {
		tenants = append(tenants, fmt.Sprint("n", i))
		b.simple(tenants[i], 1_000_000)
		b.mustDebit(debitOf(tenants[i], "first", 1))
	}
	var done atomic.Int64
	stop := make(chan struct{})
	got := b.load(b.Ledger, stop, tenants...)
	server.Pause()
	time.Sleep(6 * time.Second)
	testenv.Eventually(t, func() bool { return b.Away() != nil }) // after 3 s, on a machine that is not busy with other tests
	for i := range 20 {
		began := time.Now()
		_, err := Do(t.Context(), b.Ledger, debitOf("n1", fmt.Sprint("away-", i), 1))
		wantCode(t, err, ledger.CodeUnavailable)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("PostgreSQL has hung for 6 s, and a caller waited %v", took)
		}
	}
	server.Resume()
	returned := time.Now()
	testenv.Eventually(t, func() bool {
		_, err := Do(t.Context(), b.Ledger, debitOf("n1", fmt.Sprint("back-", done.Add(1)), 1))
		return err == nil
	})
	if took := time.Since(returned); took > 4*time.Second {
		t.Errorf("served again %v after the return", took)
	}
	close(stop)
	all := got()
	if took, n := longest(all, func(answered) bool { return true }); took > 5*time.Second+busy {
		t.Errorf("%d callers waited up to %v", n, took)
	}
	b.reconnect()
	b.mustVerify()
}
