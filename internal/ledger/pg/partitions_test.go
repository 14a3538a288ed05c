package pg

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// readJournal starts a transaction that locks entries as a long report does, until the returned function is called.
// If a statement must wait for this lock, debits wait behind that statement and are refused.
func (b *bundle) readJournal() (end func()) {
	b.t.Helper()
	reader := b.another()
	reader.exec("BEGIN; SELECT count(*) FROM entries")
	return func() { _ = reader.db.Close(context.WithoutCancel(b.t.Context())) }
}

// newestPartition returns the name of the partition of the latest month.
func (b *bundle) newestPartition() string {
	b.t.Helper()
	return one[string](b, `SELECT max(c.relname::text) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'entries'::regclass AND c.relname <> 'entries_default'`)
}

func (b *bundle) exists(table string) bool {
	b.t.Helper()
	return one[bool](b, "SELECT to_regclass($1) IS NOT NULL", table)
}

// debitUntil makes debits one after another until the channel `done` has a value. It calls the function `each` after
// every debit.
func (b *bundle) debitUntil(done <-chan error, each func()) error {
	b.t.Helper()
	for i := 0; ; i++ {
		b.mustDebit(debitOf("acme", fmt.Sprintf("beside-%d", i), 1))
		each()
		select {
		case err := <-done:
			return err
		default:
		}
	}
}

// asOwner calls the function `do` with a ledger whose database role owns the tables.
func (b *bundle) asOwner(do func(*Ledger) error) {
	b.t.Helper()
	require.NoError(b.t, do(openLedger(b.t, b.url, func(c *Config) { c.DatabaseURL = b.url })))
}

// startSecond starts another instance and stops it. The role in url may create tables.
func startSecond(t *testing.T, url string) error {
	t.Helper()
	l, err := Open(t.Context(), Config{DatabaseURL: url, Log: logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer func() { _ = l.Stop(context.WithoutCancel(t.Context())) }()
	return l.Start(t.Context())
}

func TestPartitions_ReaderHoldsJournal_StartMakesThem_NoDebitWaits(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1_000_000)
	newest := b.newestPartition()
	b.exec("DROP TABLE " + newest)
	b.readJournal()
	done := make(chan error, 1)
	go func() { done <- startSecond(t, b.url) }()
	assert.NoError(t, b.debitUntil(done, func() {}), "the second instance did not start")
	assert.True(t, b.exists(newest), "%s was not made", newest)
}

// If PostgreSQL's clock was far ahead for a while, entries may belong to a month that has no partition yet. Such a
// month must not prevent the start of an instance.
func TestPartitions_EntriesOfMonthWithoutOne_MadeThen_NothingStopsStart(t *testing.T) {
	testenv.NotOnCitus(t, "the test looks for a table that is on the nodes")
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.mustDebit(debitOf("acme", "k1", 4))
	ahead := time.Now().UTC().AddDate(0, 14, 0)
	b.exec("UPDATE balances SET period_end = '9999-12-31T23:59:59Z', next_event_at = '9999-12-31T23:59:59Z', updated_at = $1", ahead)
	b.asOwner(func(l *Ledger) error {
		_, err := Do(t.Context(), l, debitOf("acme", "k2", 4))
		return err
	})
	// When the month of the entry comes near, an instance creates the partition of that month.
	partition := "entries_" + ahead.Format("2006_01")
	b.exec("UPDATE balances SET updated_at = now()")
	b.asOwner(func(l *Ledger) error { return l.makePartitions(t.Context(), time.Now().AddDate(0, 12, 0)) })
	assert.True(t, b.exists(partition), "%s does not exist", partition)
	const elsewhere = "SELECT count(*) FROM entries WHERE operation_id = 'k2' AND tableoid <> $1::regclass"
	assert.Zero(t, one[int](b, elsewhere, partition), "the entries lie elsewhere")
	assert.NoError(t, startSecond(t, b.url), "the next instance did not start")
}

func TestPartitions_DetachBehindReader_NoDebitWaits(t *testing.T) {
	testenv.NotOnCitus(t, "a partition cannot be detached concurrently there")
	t.Parallel()
	b := newBundle(t).simple("acme", 1_000_000)
	end := b.readJournal()
	done := make(chan error, 1)
	go func() {
		_, err := b.db.Exec(t.Context(), "ALTER TABLE entries DETACH PARTITION "+b.newestPartition()+" CONCURRENTLY")
		done <- err
	}()
	besides, waits := 0, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%'"
	watcher := b.another()
	err := b.debitUntil(done, func() {
		if besides += one[int](watcher, waits); besides == 20 {
			end()
		}
	})
	assert.True(t, err == nil && besides >= 20, "%d debits beside the detachment, %v", besides, err)
}

func TestPartitions_RoleWithoutDDL_StartsAndServes_NamesMissingMonth(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.exec("DROP TABLE " + b.newestPartition())
	service := b.on(openLedger(t, b.url)) // with the role of the service; if it does not start, the test fails
	service.mustDebit(debitOf("acme", "k1", 4))
	ahead := time.Now().UTC().AddDate(0, 14, 0)
	b.exec("UPDATE balances SET period_end = '9999-12-31T23:59:59Z', next_event_at = '9999-12-31T23:59:59Z', updated_at = $1", ahead)
	e := wantRefusal(service, errcode.Unavailable, debitOf("acme", "k2", 4))
	assert.ErrorContains(t, e, ahead.Format("2006-01"))
	assert.ErrorContains(t, e, "quotasvc migrate partitions")
	b.asOwner(func(l *Ledger) error { return l.makePartitions(t.Context(), ahead) })
	service.mustDebit(debitOf("acme", "k2", 4)) // the partition was made
}
