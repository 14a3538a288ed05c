package journal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// beforeIndexes is the last version of the schema without the indexes of entries by kind and by op_subject.
const beforeIndexes = 6

const unfinishedIndexes = "SELECT count(*) FROM pg_index i WHERE NOT i.indisvalid AND i.indrelid IN (SELECT 'entries'::regclass UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = 'entries'::regclass)"

// BuildIndexes creates the new indexes of a journal with entries. The tables are not locked while the indexes are
// created.
func TestBuildIndexes_JournalWithEntries_MadeAndAttached(t *testing.T) {
	testenv.NotOnCitus(t, "no database was distributed before this migration")
	t.Parallel()
	s := newStand(t)
	p := testenv.Migrator(t, s.url)
	require.NoError(t, errOf(p.DownTo(t.Context(), beforeIndexes)))
	s.exec(insertEntry, "t", "k", s.now.Start())
	require.NoError(t, errOf(p.Up(t.Context())))
	require.NotZero(t, count[int](t, s.conn, unfinishedIndexes),
		"the migration has built the indexes itself, under its lock")
	// An earlier attempt was interrupted: one partition has a part of the indexes.
	s.exec("CREATE INDEX " + s.now.Partition() + "_rare ON " + s.now.Partition() + " (seq)")
	for range 2 {
		require.NoError(t, s.BuildIndexes(t.Context(), s.conn))
	}
	assert.Zero(t, count[int](t, s.conn, unfinishedIndexes), "indexes are not valid")
	// A partition that is created later has the indexes, too.
	require.NoError(t, s.Make(t.Context(), s.conn, s.now+50))
	assert.Zero(t, count[int](t, s.conn, unfinishedIndexes), "indexes are not valid after a new partition")
	got := count[int](t, s.conn, "SELECT count(*) FROM pg_indexes WHERE tablename = $1", (s.now + 50).Partition())
	assert.Equal(t, 4, got, "indexes of a new partition")
	const named = "SELECT count(*) FROM pg_indexes WHERE indexname = $1 AND indexdef LIKE '%kind%'"
	got = count[int](t, s.conn, named, s.now.Partition()+"_rare")
	assert.Equal(t, 1, got, "the interrupted index was not made again")
}
