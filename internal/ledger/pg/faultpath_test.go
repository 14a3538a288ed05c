package pg

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refuse makes PostgreSQL refuse every entry of the named operations, with an error of the given SQLSTATE.
func (b *bundle) refuse(code string, operations ...string) {
	b.t.Helper()
	testenv.NotOnCitus(b.t, "a trigger of a shard does not find the table of this test")
	b.exec(`CREATE TABLE refused (operation_id text PRIMARY KEY, code text NOT NULL); GRANT SELECT ON refused TO PUBLIC`)
	b.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE wrong text;
		BEGIN
			SELECT code INTO wrong FROM refused WHERE operation_id = NEW.operation_id;
			IF FOUND THEN
				RAISE EXCEPTION 'refused by the test' USING ERRCODE = wrong;
			END IF;
			RETURN NEW;
		END $$`)
	b.exec(`CREATE TRIGGER refuse BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION refuse()`)
	for _, id := range operations {
		b.exec("INSERT INTO refused VALUES ($1, $2)", id, code)
	}
}

// I13 of docs/proof.md: if PostgreSQL refuses some operations of a batch, only these operations fail. They may have
// any number and any position in the batch.
func TestBatch_RefusedOperation_KeepsNeighboursAnswers(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"22P02", "23514", "23505"} {
		for name, bad := range map[string][]int{"first": {0}, "last": {15}, "middle": {7}, "several": {0, 6, 7, 15}} {
			t.Run(code+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBundle(t).simple("acme", 1000)
				var refused []string
				for _, i := range bad {
					refused = append(refused, fmt.Sprint("k", i))
				}
				b.refuse(code, refused...)
				debits := make([]*ledger.Debit, 16)
				for i := range debits {
					debits[i] = debitOf("acme", fmt.Sprint("k", i), int64(i)+1)
				}
				left := int64(1000)
				for i, out := range b.DebitBatch(t.Context(), debits) {
					if slices.Contains(bad, i) {
						wantCode(t, out.Err, errcode.Internal)
						continue
					}
					left -= int64(i) + 1
					assert.True(t, out.Err == nil && out.Result.Items[0].Remaining == left && !out.Result.Replayed,
						"neighbour %d: %+v, %v; alone it would leave %d", i, out.Result, out.Err, left)
				}
				wantEqual(t, "remaining", b.mustBalance("acme", "api_calls").Remaining, left)
				kept := one[int](b, "SELECT count(*) FROM entries WHERE operation_id = ANY($1)", refused)
				assert.Zero(t, kept, "entries of refused operations are kept")
				// A refusal stores nothing. When its cause is removed, the same key succeeds and is not a replay.
				b.exec("DELETE FROM refused")
				r := b.mustDebit(debits[bad[0]])
				assert.False(t, r.Replayed, "a refused operation was stored: %+v", r)
				b.mustVerify()
			})
		}
	}
}

// A batch waits for a lock in the middle of its transaction. The test terminates its backend there, twice, and the
// batch must run again.
func TestBatch_TerminatedBackend_RunsAgain(t *testing.T) {
	testenv.NotOnCitus(t, "the test looks for a backend that waits for a lock: those are on the nodes")
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 100)
	first := b.mustDebit(debitOf("acme", "k0", 1))
	// The blocker has its own connection, because pg_stat_activity does not change within a transaction.
	blocker := b.another()
	blocker.exec("BEGIN")
	blocker.exec("SELECT 1 FROM balances WHERE tenant_id = 'acme' FOR UPDATE")
	var wg sync.WaitGroup
	answers := make([]*ledger.DebitResult, 8)
	for i := range answers {
		wg.Go(func() {
			var err error
			answers[i], err = Do(context.Background(), b.Ledger, debitOf("acme", fmt.Sprint("k", i+1), 1))
			assert.NoError(t, err, "debit")
		})
	}
	for range 2 {
		testenv.Eventually(t, func() bool {
			var killed int
			err := b.db.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = 'quotasvc-writer' AND wait_event_type = 'Lock' AND datname = current_database()`).Scan(&killed)
			return err == nil && killed > 0
		})
	}
	blocker.exec("COMMIT")
	wg.Wait()
	if t.Failed() {
		return
	}
	lefts := []int64{first.Items[0].Remaining}
	for _, r := range answers {
		assert.False(t, r.Replayed, "a terminated batch was stored: %+v", r)
		lefts = append(lefts, r.Items[0].Remaining)
	}
	slices.Sort(lefts)
	want := []int64{91, 92, 93, 94, 95, 96, 97, 98, 99}
	assert.True(t, slices.Equal(lefts, want), "the debits left %v, want each of %v once", lefts, want)
	b.mustVerify()
}

// I8 and I9 of docs/proof.md: an operation that was acknowledged before the server was killed is still stored after
// the restart. If the client retries, either instance returns the same answer. A denied operation is not stored.
func TestBatch_ServerKilled_AcknowledgedAnswersStay(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	b := newBundleOn(t, server.URL).simple("acme", 1_000_000)
	b.simple("tiny", 40)
	p, through := startProxy(t, server.URL)
	p.every.Store(5) // from now on one in five answers to COMMIT is lost
	ledgers := []*Ledger{b.Ledger, openLedger(t, through, throughCoordinator)}
	var mu sync.Mutex
	acknowledged := map[string]*ledger.DebitResult{}
	denied := map[string]bool{}
	var answers atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for client := range 12 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				tenant := []string{"acme", "tiny"}[client%2]
				key := fmt.Sprintf("c%d-%d", client, i)
				r, err := Do(context.Background(), ledgers[i%2], debitOf(tenant, key, 1+int64(i%3)))
				if err == nil || errcode.Of(err) == errcode.QuotaExceeded {
					answers.Add(1)
				} else {
					backOff()
				}
				mu.Lock()
				switch errcode.Of(err) {
				case "":
					acknowledged[tenant+"/"+key] = r
				case errcode.QuotaExceeded, errcode.Unavailable, errcode.QueueFull:
					denied[tenant+"/"+key] = true
				case errcode.OutcomeUnknown: // the debit may be stored or not
				default:
					t.Errorf("debit: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	wait := func(n int64) { testenv.Eventually(t, func() bool { return answers.Load() >= n }) }
	for range 2 {
		wait(answers.Load() + 150)
		server.Kill()
		server.Start()
	}
	wait(answers.Load() + 100)
	stop()
	wg.Wait()
	b.reconnect()
	stored := map[string]bool{}
	for _, id := range list[string](b, "SELECT tenant_id || '/' || operation_id FROM entries WHERE kind = 'debit'") {
		assert.False(t, stored[id], "%s is stored twice", id)
		stored[id] = true
	}
	for id := range denied {
		assert.False(t, stored[id], "%s was denied and is stored", id)
	}
	p.every.Store(0)
	for _, l := range ledgers { // each instance notices by itself that the server is back
		testenv.Eventually(t, func() bool { return l.breaker.Cause() == nil })
	}
	for id, first := range acknowledged {
		amount := first.Items[0].Requested
		again, err := Do(t.Context(), ledgers[amount%2], debitOf(first.Tenant, first.OperationID, amount))
		require.True(t, err == nil && again.Replayed && stored[id],
			"%s was acknowledged; stored: %v, again: %+v, %v", id, stored[id], again, err)
		again.Replayed = first.Replayed
		require.Equal(t, first, again, "%s is answered differently now", id)
	}
	assert.True(t, p.lost.Load() != 0 && len(acknowledged) >= 100,
		"%d acknowledged, %d answers to COMMIT lost: the test proves too little", len(acknowledged), p.lost.Load())
	b.mustVerify()
}
