package history

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// sleeping is a report that sleeps in PostgreSQL for an hour. No test waits so long, so it always runs until it is
// cancelled.
func sleeping(ctx context.Context, q *report) (int, error) {
	if _, err := q.pool.Exec(ctx, "SELECT pg_sleep(3600)"); err != nil {
		return 0, Failed("sleep", err)
	}
	return 1, nil
}

// reportsRunning returns the number of report statements that PostgreSQL is running.
func (b *bundle) reportsRunning() int {
	b.t.Helper()
	return one[int](b, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'quotasvc-reports' AND state = 'active'`)
}

func TestReports_TooMany_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	r := b.reader(b.ledger, Config{Reports: 1})
	leave, err := r.queue.enter(t.Context())
	b.check(err)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range queueMax {
		waiting.Go(func() { _, _ = r.queue.enter(ctx) })
	}
	testenv.Eventually(t, func() bool { return r.queue.waiting.Load() == queueMax })
	e := wantCode(t, errOf(r.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1})), errcode.QueueFull)
	assert.True(t, e.RetryAfter > 0, "no Retry-After: %+v", e)
	cancel()
	waiting.Wait()
	leave(nil)
	assert.NoError(t, errOf(r.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1})), "after the rush")
	wantEqual(t, "refused reports", testutil.ToFloat64(r.queue.finished.WithLabelValues("queue_full")), queueMax+1)
}

func TestReports_TimeOver_TooSlow_DatabaseStopsWorking(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	e := wantCode(t, errOf(reported(t.Context(), b.Reader, sleeping)), errcode.ReportTooSlow)
	assert.True(t, e.RetryAfter > 0, "no Retry-After: %+v", e)
	testenv.Eventually(t, func() bool { return b.reportsRunning() == 0 }, "the database stops working")
}

// When a client cancels its request, PostgreSQL stops the statement of its report.
func TestReports_ClientGone_DatabaseStopsWorking(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for { // each report ends at its time limit
			if _, err := reported(ctx, b.Reader, sleeping); ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	testenv.Eventually(t, func() bool { return b.reportsRunning() == 1 })
	cancel()
	assert.Error(t, <-done, "the report was answered")
	testenv.Eventually(t, func() bool { return b.reportsRunning() == 0 }, "the database stops working")
}

// Reads of balances have their own connections. So they do not wait, even if reports use all report connections and
// other reports wait in the queue.
func TestReports_AllPlacesTaken_BalancesReadAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.hourly("other", 10)
	must(b, debitOf("acme", "k1", 1))
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range reportsDefault {
		clients.Go(func() {
			for ctx.Err() == nil { // each report ends at its time limit
				_, _ = reported(ctx, b.Reader, sleeping)
			}
		})
	}
	testenv.Eventually(t, func() bool { return b.reportsRunning() == reportsDefault })
	for range 24 {
		clients.Go(func() {
			for ctx.Err() == nil {
				_, _ = b.Usage(ctx, UsageQuery{Tenant: "acme", Meter: "api_calls", From: time.Now().Add(-time.Hour), To: time.Now(), Step: UsageByHour})
			}
		})
	}
	testenv.Eventually(t, func() bool { return b.queue.waiting.Load() == 24 })
	b.mustBalance("other", "api_calls")
	waits := b.ledger.Readers().Stat().EmptyAcquireCount()
	for range 50 {
		b.mustBalance("other", "api_calls")
	}
	assert.Zero(t, b.ledger.Readers().Stat().EmptyAcquireCount()-waits,
		"of 50 reads of a balance waited for a connection")
	cancel()
	clients.Wait()
}

func TestPing_AllReadersTaken_Answers(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for range b.ledger.Readers().Config().MaxConns {
		conn, err := b.ledger.Readers().Acquire(t.Context())
		b.check(err)
		defer conn.Release()
	}
	b.check(b.ledger.Ping(t.Context()))
}

// A replica that lags causes no wrong sums: the missing entries are read from the primary.
func TestReports_ReplicaLags_AnswersOfPrimary(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	must(b, debitOf("acme", "k1", 4))
	then := b.mustBalance("acme", "api_calls")
	must(b, debitOf("acme", "k2", 1))
	r := b.reader(b.ledger, Config{ReplicaURL: testenv.Postgres(t)}) // the replica has the tables and no rows
	was, err := r.BalanceAsOf(t.Context(), "acme", "api_calls", "", then.AsOf)
	b.check(err)
	wantSums(t, was, ledger.Sums{Granted: 10, Used: 4})
	s, err := r.StatementAt(t.Context(), "acme", "api_calls", "", time.Now())
	b.check(err)
	assert.NoError(t, checkStatement(s), "%+v", s)
	wantEqual(t, "used", s.Used, 5)
	page, err := r.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 10})
	assert.True(t, err == nil && len(page.Items) == 0,
		"lists come from the replica: %d entries, %v", len(page.Items), err)
}
