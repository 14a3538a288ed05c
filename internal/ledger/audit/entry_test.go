package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// PostgreSQL returns the entries of several balances in order without a sort of all entries. Such a sort would write
// to disk.
func TestVerifyEntries_ManyBalances_AreNotSorted(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "rows of all shards are sorted there")
	sql := namedsql.Must(namedsql.Plain, sqlFiles)
	db := testenv.Connect(t, testenv.Postgres(t))
	// These are the settings of the verifier's connections.
	testenv.Exec(t, db, "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
	names, numbers := []string{"a", "b", "c"}, []int64{1, 2, 3}
	rows, err := db.Query(t.Context(), "EXPLAIN "+sql["VerifyEntries"], pgx.QueryExecModeSimpleProtocol, names, names, names, numbers, numbers, time.Now())
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(plan[0], "Nested Loop"),
		"the plan does not begin with the loop over the balances:\n%s", strings.Join(plan, "\n"))
}

// Entries must be read in the order of their balances. If they are not, some entries belong to a balance whose check
// is already complete, so the read must return an error.
func TestEachEntry_BalancesOutOfOrder_IsAnError(t *testing.T) {
	t.Parallel()
	db := testenv.Connect(t, testenv.Postgres(t))
	for list, ok := range map[string]bool{"(1), (1), (3)": true, "(2), (1)": false} {
		rows, err := db.Query(t.Context(), `SELECT k.n::bigint, 1::bigint, 'op', 1, date '2026-05-01', 'debit', now(), 'g', 'allowance', 1::bigint, 1::bigint, 0, NULL::bigint,
			''::bytea, now(), NULL::timestamptz, '', NULL::text, NULL::text, NULL::text FROM (VALUES `+list+`) AS k (n)`)
		require.NoError(t, err)
		read := 0
		err = eachEntry(rows, func(int, *entry) error {
			read++
			return nil
		})
		assert.True(t, (err == nil) == ok && read >= 1, "%s: %d entries, %v", list, read, err)
	}
}

// An entry needs no additional memory if its texts are the same as in the entry before.
func TestJournal_PlainEntry_TakesNoMemory(t *testing.T) {
	debit := moves{used: 1, left: -1}
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	e := entry{
		operation: []byte("op"), kind: []byte("debit"), period: at.UnixMicro(), createdAt: at.UnixMicro(), month: int32(at.Unix() / 86_400),
		grant: []byte("g"), source: []byte("allowance"), amount: 1, remaining: 1_000_000, fingerprint: make([]byte, 32),
		metadata: []byte(`{"route": "/search"}`), moves: &debit, named: "debit",
	}
	j, h, stored := newJournal(), &hasher{}, &chain{From: 1, Last: 1_000_000}
	add := func() {
		e.seq, e.remaining = e.seq+1, e.remaining-1
		require.NoError(t, j.add(h, Key{"acme", "api_calls", ""}, &e, stored, 0))
	}
	add()
	add()
	faults := len(j.faults) // add has found a fault, because this entry cannot be the first of a balance
	n := testing.AllocsPerRun(1000, add)
	assert.True(t, n <= 0, "%v allocations", n)
	assert.True(t, len(j.faults) == faults && j.chain.Last == e.seq, j.faults)
}
