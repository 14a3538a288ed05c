package auditlog

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestRecord_Lines_InTheTransaction(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t, testenv.PostgresService(t))
	actor := &Actor{KeyID: "key_1", Name: "support", RequestID: "r1", IP: "192.0.2.1"}
	lines := []Line{
		{Actor: actor, Action: "limit.put", Object: Object{Kind: "limit", ID: "search"}, After: map[string]any{"rate": "1/s"}},
		{Actor: actor, Action: "grant.create", Object: Object{Kind: "grant", ID: "g", Tenant: "acme"}, Before: 1, Reason: "order 17"},
	}
	count := func() (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM audit").Scan(&n))
		return n
	}
	for _, commit := range []bool{false, true} {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, Record(t.Context(), tx, lines))
		if !commit {
			err = tx.Rollback(t.Context())
		} else {
			err = tx.Commit(t.Context())
		}
		require.NoError(t, err)
		assert.Equal(t, map[bool]int{false: 0, true: 2}[commit], count(), "commit %v", commit)
	}
	var batch pgx.Batch
	require.NoError(t, Queue(&batch, lines[:1]))
	require.NoError(t, pool.SendBatch(t.Context(), &batch).Close())
	assert.Equal(t, 3, count())
}

func TestFrom_ActorOfTheContext_NobodyWithoutOne(t *testing.T) {
	t.Parallel()
	assert.Equal(t, &Actor{}, From(context.Background()))
	actor := &Actor{KeyID: Command, Name: "quotasvc apply"}
	assert.Same(t, actor, From(With(t.Context(), actor)))
}
