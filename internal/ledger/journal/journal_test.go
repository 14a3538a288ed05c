package journal

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// stand is a Journal on a separate database, for one test.
type stand struct {
	*Journal
	t    *testing.T
	url  string
	conn *pgx.Conn
	now  Month
}

func newStand(t *testing.T) *stand {
	t.Helper()
	return newStandOn(t, testenv.Postgres(t))
}

func newStandOn(t *testing.T, url string) *stand {
	t.Helper()
	s := &stand{Journal: New(slog.New(slog.DiscardHandler)), t: t, url: url, now: MonthOf(time.Now())}
	s.conn = s.connect()
	return s
}

func (s *stand) connect() *pgx.Conn {
	s.t.Helper()
	return testenv.Connect(s.t, s.url)
}

func (s *stand) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.conn.Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
}

func (s *stand) months() []Month {
	s.t.Helper()
	partitions, err := s.Partitions(s.t.Context(), s.conn)
	require.NoError(s.t, err)
	var out []Month
	for _, p := range partitions {
		assert.True(s.t, p.To == p.From+1 && p.Name == p.From.Partition(), "%s holds %s to %s", p.Name, p.From, p.To)
		out = append(out, p.From)
	}
	return out
}

func count[V any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v V) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// errOf returns the error of a call, without its answer.
func errOf[V any](_ V, err error) error { return err }

const insertEntry = `INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
	remaining_after, item, created_at) VALUES ($1, $2, 1, $3, 1, 'debit', 'm', '', now(), '', '', 1, 1, 0, now())`

func TestMonth_ParseStringAndSuccessor_Agree(t *testing.T) {
	t.Parallel()
	m, err := ParseMonth("2026-12")
	assert.True(t, err == nil && m.String() == "2026-12" && (m+1).String() == "2027-01" && m.Partition() == "entries_2026_12" &&
		m.End().Equal((m+1).Start()), "%v, %v", m, err)
	got := MonthOf(time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600)))
	assert.True(t, got == m+1, "got %v, want the month in UTC", got)
	for _, text := range []string{"", "2026", "2026-13", "2026-1", "2026-01-01", "x"} {
		assert.Error(t, errOf(ParseMonth(text)), "%q passes", text)
	}
}

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, newStand(t).sql)
}

// While a partition is created and dropped, the list of partitions contains all other partitions.
func TestPartitions_OneIsDroppedMeanwhile_TheOthersAreListed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	want := len(s.months())
	other := s.connect()
	ctx, stop := context.WithCancel(t.Context())
	var dropping sync.WaitGroup
	dropping.Go(func() {
		for ctx.Err() == nil {
			_, err := other.Exec(context.Background(), `CREATE TABLE short_lived PARTITION OF entries FOR VALUES FROM ('1999-01-01') TO ('1999-02-01')`)
			if err == nil {
				_, err = other.Exec(context.Background(), `DROP TABLE short_lived`)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer dropping.Wait()
	defer stop()
	var listing sync.WaitGroup
	for range 4 {
		conn := s.connect()
		listing.Go(func() {
			for range 100 {
				if got, err := s.Partitions(context.Background(), conn); err != nil || len(got) != want && len(got) != want+1 {
					t.Errorf("%d partitions, want %d or one more; %v", len(got), want, err)
					return
				}
			}
		})
	}
	listing.Wait()
}

func TestMakeAhead_MissingMonths_MadeOnce_ByWhoeverComes(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	later := s.now + 3
	failures := make(chan error, 3)
	for range cap(failures) {
		conn := s.connect()
		go func() { failures <- s.MakeAhead(t.Context(), conn, later) }()
	}
	for range cap(failures) {
		assert.NoError(t, <-failures)
	}
	months := s.months()
	for m := s.now - MonthsKept; m <= later+MonthsAhead; m++ {
		assert.True(t, slices.Contains(months, m), "%s is missing", m)
	}
	partitions, err := s.Partitions(t.Context(), s.conn)
	require.NoError(t, err)
	assert.Equal(t, MonthsAhead+3, Ahead(partitions, s.now), "months ahead")
	assert.Equal(t, -1, Ahead(partitions, later+MonthsAhead+1), "months ahead of a month without a partition")
}

func TestMake_NewPartition_HasIndexesAndChecksOfEntries(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	m := s.now + MonthsAhead + 7
	require.NoError(t, s.Make(t.Context(), s.conn, m))
	const indexes = `SELECT count(*) FROM pg_index WHERE indrelid = $1::regclass AND indisvalid`
	want, got := count[int](t, s.conn, indexes, "entries"), count[int](t, s.conn, indexes, m.Partition())
	assert.True(t, got == want && want >= 2, "%d indexes, entries has %d", got, want)
	const attached = `SELECT count(*) FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid WHERE x.indrelid = $1::regclass`
	assert.Equal(t, want, count[int](t, s.conn, attached, m.Partition()), "indexes that belong to those of entries")
	const checks = `SELECT count(*) FROM pg_constraint WHERE conrelid = $1::regclass AND contype IN ('c', 'p')`
	want, got = count[int](t, s.conn, checks, "entries"), count[int](t, s.conn, checks, m.Partition())
	assert.Equal(t, want, got, "constraints")
}

func TestMake_TableOfThatName_NamedInError(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	m := s.now + MonthsAhead + 7
	s.exec("CREATE TABLE " + m.Partition() + " (x integer)")
	assert.ErrorContains(t, s.Make(t.Context(), s.conn, m), m.Partition())
}

func TestMake_ArchivedMonth_Refused(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	m := s.now - 12
	s.exec("INSERT INTO archives (month, manifest, archived_at) VALUES ($1, '', now())", (m + 1).Start())
	assert.ErrorContains(t, s.Make(t.Context(), s.conn, m), "archived")
	assert.NoError(t, s.Make(t.Context(), s.conn, m+2), "the month after")
}

func TestMissingMonth_InsertWithoutPartition_NamesMonth(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	m := s.now + 40
	_, err := s.conn.Exec(t.Context(), insertEntry, "t", "k", m.Start())
	got, ok := MissingMonth(err)
	assert.True(t, ok && got == m, "got %v, %t of %v", got, ok, err)
	_, err = s.conn.Exec(t.Context(), strings.Replace(insertEntry, "'', 1, 1, 0,", "'', -1, 1, 0,", 1), "t", "k", s.now.Start())
	require.Error(t, err, "no error")
	got, ok = MissingMonth(err)
	assert.False(t, ok, "a violated check counts as a missing partition of %s", got)
	_, ok = MissingMonth(&pgconn.PgError{Code: "23505", TableName: "entries"})
	assert.False(t, ok, "a duplicate counts as a missing partition")
}

func TestDetach_OldMonth_LeavesTable_DropTakesIt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	m := s.now - 9
	require.NoError(t, s.Make(t.Context(), s.conn, m))
	s.exec(insertEntry, "t", "k", m.Start())
	assert.Error(t, s.Drop(t.Context(), s.conn, m), "an attached partition was dropped")
	for range 2 { // the second time there is nothing to do
		require.NoError(t, s.Detach(t.Context(), s.conn, m))
	}
	assert.Zero(t, count[int](t, s.conn, "SELECT count(*) FROM entries"), "entries are still there")
	assert.Equal(t, 1, count[int](t, s.conn, "SELECT count(*) FROM "+m.Partition()), "entries of the detached table")
	for range 2 {
		require.NoError(t, s.Drop(t.Context(), s.conn, m))
	}
	assert.True(t, !slices.Contains(s.months(), m) &&
		!count[bool](t, s.conn, "SELECT to_regclass($1) IS NOT NULL", m.Partition()), "the table is still there")
}

// If Detach is interrupted while it waits for readers, the partition stays half detached. Only ALTER TABLE ... DETACH
// PARTITION ... FINALIZE can complete the detach, so the next call must use it.
func TestDetach_Interrupted_ContinuedByNextCall(t *testing.T) {
	testenv.NotOnCitus(t, "a partition cannot be detached concurrently there, so that nothing is left to be continued")
	t.Parallel()
	s := newStand(t)
	m := s.now - 9
	require.NoError(t, s.Make(t.Context(), s.conn, m))
	reader := s.connect()
	require.NoError(t, errOf(reader.Exec(t.Context(), "BEGIN; SELECT count(*) FROM entries")))
	impatient := s.connect()
	require.NoError(t, errOf(impatient.Exec(t.Context(), "SET statement_timeout = 300")))
	require.Error(t, s.Detach(t.Context(), impatient, m), "it did not wait for the reader")
	partitions, err := s.Partitions(t.Context(), s.conn)
	require.NoError(t, err)
	pending := func(p Partition) bool { return p.From == m && p.Pending }
	require.True(t, slices.ContainsFunc(partitions, pending), "%v: no detachment is pending", partitions)
	require.NoError(t, reader.Close(t.Context()))
	require.NoError(t, s.Detach(t.Context(), s.conn, m))
	assert.False(t, slices.Contains(s.months(), m), "still attached")
}
