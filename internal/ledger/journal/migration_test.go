package journal

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver for goose
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/migrations"
)

// versionBefore is the last version of the schema with a DEFAULT partition.
const versionBefore = 8

func (s *stand) goose() *goose.Provider {
	s.t.Helper()
	db, err := sql.Open("pgx", s.url)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = db.Close() })
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithDisableGlobalRegistry(true))
	require.NoError(s.t, err)
	return p
}

// countLate is the query of the default partition that older versions of the service run at their start.
const countLate = "SELECT count(*) FROM (SELECT 1 FROM entries_default LIMIT 1000) AS late"

func TestMigration_RowsInDefaultPartition_MovedToTheirMonths_AndBack(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	s := newStandOn(t, testenv.PostgresEmpty(t))
	p := s.goose()
	_, err := p.UpTo(t.Context(), versionBefore)
	require.NoError(t, err)
	const months, rows = 3, 400
	for m := range Month(months) {
		s.exec(`INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
			remaining_after, item, created_at) SELECT 't', 'k' || n, 1, $1::date, n, 'debit', 'm', '', now(), '', '', 1, 1, 0, now()
			FROM generate_series(1, $2::integer) n`, (s.now + 100 + 7*m).Start(), rows)
	}
	got := count[int](t, s.conn, countLate)
	require.True(t, got == 1000, "%d rows in the default partition", got)
	// An earlier attempt was interrupted: it created a partition and copied some rows.
	first := (s.now + 100).Partition()
	s.exec(fmt.Sprintf("CREATE TABLE %s (LIKE entries INCLUDING ALL); INSERT INTO %s SELECT * FROM entries_default WHERE month = '%s' LIMIT 10",
		first, first, (s.now + 100).Start().Format(time.DateOnly)))
	_, err = p.Up(t.Context())
	require.NoError(t, err)
	for m := range Month(months) {
		table := (s.now + 100 + 7*m).Partition()
		if got := count[int](t, s.conn, "SELECT count(*) FROM entries WHERE tableoid = $1::regclass", table); got != rows {
			t.Errorf("%s has %d entries, want %d", table, got, rows)
		}
	}
	got = count[int](t, s.conn, countLate)
	assert.Zero(t, got, "the version before sees %d late rows", got)
	assert.Zero(t, count[int](t, s.conn, "SELECT count(*) FROM pg_constraint WHERE conname = 'of_month'"),
		"checks of the move are left")
	s.months()
	_, err = p.DownTo(t.Context(), versionBefore)
	require.NoError(t, err)
	s.exec(insertEntry, "t", "late", (s.now + 300).Start())
	got = count[int](t, s.conn, countLate)
	assert.True(t, got == 1, "%d rows in the default partition after the way back", got)
	_, err = p.Up(t.Context())
	require.NoError(t, err)
	if got := count[int](t, s.conn, "SELECT count(*) FROM entries"); got != months*rows+1 {
		t.Errorf("%d entries in the end", got)
	}
}

func TestMigration_ReaderHoldsJournal_WaitsWithoutStallingWriters(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	s := newStandOn(t, testenv.PostgresEmpty(t))
	p := s.goose()
	if _, err := p.UpTo(t.Context(), versionBefore); err != nil {
		t.Fatal(err)
	}
	s.exec(insertEntry, "t", "late", (s.now + 100).Start())
	reader := s.connect()
	if _, err := reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM entries"); err != nil {
		t.Fatal(err)
	}
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
	got := count[int](t, s.conn, "SELECT count(*) FROM entries")
	assert.True(t, got == besides+1, "%d entries", got)
}
