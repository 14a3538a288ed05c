package pg

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The first debit of a balance inserts the balance's row in the debit's own transaction. The row already has the
// values after the debit, so it is written once.
func TestOpening_RowIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustDebit(debitOf("acme", "first", 3))
	// An update would have moved the row to another position (ctid).
	once := one[bool](b, `SELECT b.ctid = '(0,1)' AND b.xmin = e.xmin
		FROM balances b JOIN entries e USING (tenant_id) WHERE e.operation_id = 'first'`)
	assert.True(t, once, "the row of the balance was written before the debit's transaction, or twice")
	b.wantSums("acme", "api_calls", ledger.Sums{Granted: 1000, Used: 3})
	b.mustVerify()
}

// Two instances open the same balances at the same time. Their batches have the balances in random order, and some
// debits have the same keys. Every key counts once.
func TestOpening_ByTwoInstances_EachDebitCountsOnce(t *testing.T) {
	t.Parallel()
	const tenants = 60
	b := newBundle(t)
	b.several(tenants, 1000)
	instances := []*Ledger{b.Ledger, openLedger(t, b.url), openLedger(t, b.url)}
	var work sync.WaitGroup
	for n, l := range instances {
		for part := range 3 {
			work.Go(func() {
				var debits []*ledger.Debit
				for i := range tenants {
					tenant := (i*7 + n*13 + part*29) % tenants
					debits = append(debits, debitOf(fmt.Sprint("t", tenant), fmt.Sprintf("own-%d-%d", n, part), 1), debitOf(fmt.Sprint("t", tenant), "shared", 1))
				}
				for _, o := range l.DebitBatch(t.Context(), debits) {
					assert.NoError(t, o.Err)
				}
			})
		}
	}
	work.Wait()
	for i := range tenants {
		b.wantSums(fmt.Sprint("t", i), "api_calls", ledger.Sums{Granted: 1000, Used: 10})
	}
	b.mustVerify()
}

// Another transaction has inserted the row of a balance and stays open. Only debits of this balance wait for it.
// Other balances are opened meanwhile.
func TestOpening_RowOfAStranger_DelaysNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.several(5, 1000)
	stranger := b.another()
	stranger.exec("BEGIN")
	stranger.exec("INSERT INTO balances (tenant_id, meter) VALUES ('t2', 'api_calls')")
	waited := make(chan error, 1)
	go func() {
		_, err := Do(t.Context(), b.Ledger, debitOf("t2", "k", 1))
		waited <- err
	}()
	for _, tenant := range []string{"t0", "t1", "t3", "t4"} { // while the other transaction is open
		b.mustDebit(debitOf(tenant, "k", 1))
	}
	testenv.Eventually(t, func() bool { return b.parkedCalls() > 0 })
	stranger.exec("COMMIT")
	assert.NoError(t, <-waited, "the debit of the stranger's balance")
	b.wantSums("t2", "api_calls", ledger.Sums{Granted: 1000, Used: 1})
	b.mustVerify()
}
