package journal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// versionBefore is the last version of the schema with a DEFAULT partition.
const versionBefore = 8

// countLate is a query that older versions of the service run at their start. It reads the default partition.
const countLate = "SELECT count(*) FROM (SELECT 1 FROM entries_default LIMIT 1000) AS late"

func TestMigration_RowsInDefaultPartition_MovedToTheirMonths_AndBack(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	s := newStandOn(t, testenv.PostgresEmpty(t))
	p := testenv.Migrator(t, s.url)
	require.NoError(t, errOf(p.UpTo(t.Context(), versionBefore)))
	const months, rows = 3, 400
	for m := range Month(months) {
		s.exec(`INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
			remaining_after, item, created_at) SELECT 't', 'k' || n, 1, $1::date, n, 'debit', 'm', '', now(), '', '', 1, 1, 0, now()
			FROM generate_series(1, $2::integer) n`, (s.now + 100 + 7*m).Start(), rows)
	}
	require.Equal(t, 1000, count[int](t, s.conn, countLate), "rows in the default partition")
	// An earlier attempt was interrupted: it created a partition and copied some rows.
	first := (s.now + 100).Partition()
	s.exec(fmt.Sprintf("CREATE TABLE %s (LIKE entries INCLUDING ALL); INSERT INTO %s SELECT * FROM entries_default WHERE month = '%s' LIMIT 10",
		first, first, (s.now + 100).Start().Format(time.DateOnly)))
	require.NoError(t, errOf(p.Up(t.Context())))
	for m := range Month(months) {
		table := (s.now + 100 + 7*m).Partition()
		const entries = "SELECT count(*) FROM entries WHERE tableoid = $1::regclass"
		assert.Equal(t, rows, count[int](t, s.conn, entries, table), "entries of %s", table)
	}
	assert.Zero(t, count[int](t, s.conn, countLate), "late rows that the version before sees")
	assert.Zero(t, count[int](t, s.conn, "SELECT count(*) FROM pg_constraint WHERE conname = 'of_month'"),
		"checks of the move are left")
	s.months()
	require.NoError(t, errOf(p.DownTo(t.Context(), versionBefore)))
	s.exec(insertEntry, "t", "late", (s.now + 300).Start())
	assert.Equal(t, 1, count[int](t, s.conn, countLate), "rows in the default partition after the way back")
	require.NoError(t, errOf(p.Up(t.Context())))
	assert.Equal(t, months*rows+1, count[int](t, s.conn, "SELECT count(*) FROM entries"), "entries in the end")
}

func TestMigration_ReaderHoldsJournal_WaitsWithoutStallingWriters(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	s := newStandOn(t, testenv.PostgresEmpty(t))
	p := testenv.Migrator(t, s.url)
	require.NoError(t, errOf(p.UpTo(t.Context(), versionBefore)))
	s.exec(insertEntry, "t", "late", (s.now + 100).Start())
	reader := s.connect()
	require.NoError(t, errOf(reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM entries")))
	done := make(chan error, 1)
	go func() { _, err := p.Up(t.Context()); done <- err }()
	const besides = 3
	s.exec(fmt.Sprintf("SET lock_timeout = %d", (20 * lockWait).Milliseconds()))
	for i := range besides {
		testenv.Eventually(t, func() bool { return count[int](t, s.conn, testenv.Waiting()) > 0 }, "the migration waits")
		s.exec(insertEntry, "t", fmt.Sprint("beside-", i), s.now.Start())
		select {
		case err := <-done:
			t.Fatalf("it did not wait for the reader: %v", err)
		default:
		}
	}
	require.NoError(t, reader.Close(t.Context()))
	require.NoError(t, <-done)
	assert.Equal(t, besides+1, count[int](t, s.conn, "SELECT count(*) FROM entries"), "entries")
}
