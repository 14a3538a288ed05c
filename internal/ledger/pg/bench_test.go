package pg

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// benchCallers is the number of callers that wait for answers at the same time, as in a busy service.
	benchCallers = 1024

	benchTenants = 10_000

	// benchUnits is the amount with which each balance starts. No run can use it up.
	benchUnits = 1 << 50
)

// durableLedger opens a ledger on a server that waits for its disk, unlike the servers of the other tests. Tenants
// t0, t1, ... have benchUnits of api_calls each, and their balances are opened.
func durableLedger(b *testing.B, tenants int) (*Ledger, string) {
	b.Helper()
	ctx := b.Context()
	p, err := localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir: filepath.Join(b.TempDir(), "postgres"), Durable: true,
		// With these settings no checkpoint runs during a measurement. A checkpoint would make runs incomparable.
		Extra: map[string]string{"max_wal_size": "8GB", "checkpoint_timeout": "30min", "shared_buffers": "512MB"},
	})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, p.Stop(context.Background()))
		require.NoError(b, os.RemoveAll(p.Dir())) // it may be outside b.TempDir()
	})
	require.NoError(b, errOf(testenv.Migrator(b, p.URL()).Up(ctx)))
	seedForBench(b, p.URL(), tenants)
	l, err := Open(ctx, Config{
		DatabaseURL: p.URL(), Readers: 2, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Stop(context.Background())) })
	require.NoError(b, l.Start(ctx))
	// The first debit of a balance inserts its row and opens its period.
	for from := 0; from < tenants; from += ledger.BatchMax {
		var debits []*ledger.Debit
		for i := from; i < min(from+ledger.BatchMax, tenants); i++ {
			debits = append(debits, debitOf(fmt.Sprint("t", i), "open", 1))
		}
		for _, o := range l.DebitBatch(ctx, debits) {
			require.NoError(b, o.Err)
		}
	}
	return l, p.URL()
}

func seedForBench(b *testing.B, url string, tenants int) {
	b.Helper()
	db, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer db.Close(context.Background())
	for _, statement := range []string{
		"INSERT INTO meters (meter, unit) VALUES ('api_calls', 'call')",
		"INSERT INTO plans (plan, version) VALUES ('bench', 1)",
		fmt.Sprintf(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
			VALUES ('bench', 1, 'api_calls', 0, %d, 'month', 'calendar')`, benchUnits),
		fmt.Sprintf(`INSERT INTO tenants (tenant_id, plan, anchor)
			SELECT 't' || i, 'bench', clock_timestamp() FROM generate_series(0, %d) AS i`, tenants-1),
		`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
			SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants`,
	} {
		require.NoError(b, errOf(db.Exec(b.Context(), statement)))
	}
}

// callAtOnce makes b.N calls, with the numbers from 1 to b.N. The given number of callers wait for answers at the same
// time. A caller stops at its first error.
func callAtOnce(b *testing.B, callers int, call func(n int64) error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	calling.Wait()
}

// BenchmarkDebit measures the ledger's throughput without HTTP, with callers that wait for durable answers.
func BenchmarkDebit(b *testing.B) {
	for name, tenants := range map[string]int{"many": benchTenants, "hot": 1} {
		b.Run(name, func(b *testing.B) {
			l, _ := durableLedger(b, tenants)
			names := make([]string, tenants)
			for i := range names {
				names[i] = fmt.Sprint("t", i)
			}
			callAtOnce(b, benchCallers, func(n int64) error {
				// The factor 7919 visits all tenants in an order that differs from the order of the index.
				tenant := names[int(n*7919)%tenants]
				_, err := Do(b.Context(), l, debitOf(tenant, fmt.Sprintf("key-%016x", uint64(n)*0x9e3779b97f4a7c15), 1))
				return err
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "debits/s")
		})
	}
}

// BenchmarkDebitBatch measures the throughput of four callers that send full batches.
func BenchmarkDebitBatch(b *testing.B) {
	const callers = 4
	l, _ := durableLedger(b, benchTenants)
	callAtOnce(b, callers, func(n int64) error {
		debits := make([]*ledger.Debit, ledger.BatchMax)
		for i := range debits {
			tenant := (int(n)*ledger.BatchMax + i) * 7919 % benchTenants
			debits[i] = debitOf(fmt.Sprint("t", tenant), fmt.Sprintf("batch-%d-%d", n, i), 1)
		}
		for _, o := range l.DebitBatch(b.Context(), debits) {
			if o.Err != nil {
				return o.Err
			}
		}
		return nil
	})
	b.ReportMetric(float64(b.N)*ledger.BatchMax/b.Elapsed().Seconds(), "debits/s")
}

// BenchmarkDecide measures only the decisions of a batch, without reads and writes of the database.
func BenchmarkDecide(b *testing.B) {
	q := namedsql.Must(namedsql.Plain, sqlFiles)
	now := time.Date(2030, 5, 10, 12, 0, 0, 0, time.UTC)
	debits := make([]*ledger.Debit, batchDefault)
	for i := range debits {
		debits[i] = debitOf(fmt.Sprint("t", i), fmt.Sprint("key-", i), 1)
	}
	terms := &ledger.Allowance{Amount: benchUnits, Every: period.Month, Anchor: period.Calendar}
	b.ReportAllocs()
	for b.Loop() {
		calls := make([]*ledger.Call, len(debits))
		for i, d := range debits {
			calls[i] = ledger.NewCall(d)
		}
		p := newPlan(calls)
		p.arrange()
		batch := ledger.NewBatch()
		batch.Now = now
		for _, k := range p.keys {
			book := ledger.NewBook(ledger.BalanceRow{
				BalanceKey: k, Plan: "bench", Sums: ledger.Sums{Granted: benchUnits},
				HeadID: "g", HeadSource: ledger.SourceAllowance, HeadRemaining: benchUnits,
				Start: now.AddDate(0, 0, -9), End: now.AddDate(0, 0, 22), NextEvent: now.AddDate(0, 0, 22), UpdatedAt: now,
			})
			book.Terms = terms
			batch.Books[k] = book
		}
		if next := batch.Decide(calls); !next.Done() {
			b.Fatalf("the batch was not decided: %+v", next)
		}
		for _, c := range calls {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
		changes := batch.Changes()
		if len(changes.Books) == 0 {
			b.Fatal("nothing to write")
		}
		queueChanges(q, &pgx.Batch{}, &changes, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batchDefault), "ns/debit")
}

// BenchmarkCheckBatch measures the reads of balances for checks, one check alone and many together.
func BenchmarkCheckBatch(b *testing.B) {
	l, _ := durableLedger(b, benchTenants)
	for i := range 1000 {
		require.NoError(b, errOf(Do(b.Context(), l, debitOf(fmt.Sprint("t", i), "open", 1))))
	}
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			questions, n := make([]ledger.CheckRequest, size), 0
			for b.Loop() {
				for i := range questions {
					n++
					questions[i] = ledger.CheckRequest{Tenant: fmt.Sprint("t", n*7919%1000), Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}}
				}
				for _, o := range l.CheckBatch(b.Context(), questions) {
					if o.Err != nil {
						b.Fatal(o.Err)
					}
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "checks/s")
		})
	}
}
