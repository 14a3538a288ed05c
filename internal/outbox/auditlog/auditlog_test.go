package auditlog

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
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

// TestShare_OfATenantsCaller: what the caller and the stored keys of its tenant have created counts. A person who has
// signed in to the console is such a caller, and is not a stored key.
func TestShare_OfATenantsCaller(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	testenv.Exec(t, testenv.Pool(t, url),
		"INSERT INTO keys (key_id, name, scopes, tenant_id) VALUES ('own', 'n', '{admin}', 'acme')")
	tx, err := testenv.Pool(t, testenv.AsService(url)).Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	made := []Made{{ID: "a", At: time.Now()}, {ID: "b", At: time.Now()}, {ID: "c", At: time.Now()}}
	for i, by := range []string{"own", "oidc:ada", Bootstrap} {
		object := Object{Kind: "webhook", ID: made[i].ID, Tenant: "acme"}
		line := Line{Actor: &Actor{KeyID: by}, Action: "webhook.create", Object: object, After: 1}
		require.NoError(t, Record(t.Context(), tx, []Line{line}))
	}
	for _, tc := range []struct {
		caller string
		own    int
	}{{"oidc:ada", 2}, {"oidc:eve", 1}, {"own", 1}} {
		ctx := With(t.Context(), &Actor{KeyID: tc.caller, Tenant: "acme"})
		for most, want := range map[int]errcode.Code{tc.own: errcode.TooMany, tc.own + 1: ""} {
			share := Share{Kind: "webhook", Most: most}
			err := share.Check(ctx, tx, 0, func(string) ([]Made, error) { return made, nil })
			assert.Equal(t, want, errcode.Of(err), "%s, at most %d: %v", tc.caller, most, err)
		}
	}
}
