package auditlog

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestRecord_Lines_InTheTransaction(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testenv.PostgresService(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	actor := &Actor{KeyID: "key_1", Name: "support", RequestID: "r1", IP: "192.0.2.1"}
	lines := []Line{
		{Actor: actor, Action: "limit.put", Object: Object{Kind: "limit", ID: "search"}, After: map[string]any{"rate": "1/s"}},
		{Actor: actor, Action: "grant.create", Object: Object{Kind: "grant", ID: "g", Tenant: "acme"}, Before: 1, Reason: "order 17"},
	}
	count := func() (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM audit").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, commit := range []bool{false, true} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := Record(t.Context(), tx, lines); err != nil {
			t.Fatal(err)
		}
		if !commit {
			err = tx.Rollback(t.Context())
		} else {
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := count(); n != map[bool]int{false: 0, true: 2}[commit] {
			t.Errorf("commit %v: %d lines", commit, n)
		}
	}
	var batch pgx.Batch
	if err := Queue(&batch, lines[:1]); err != nil {
		t.Fatal(err)
	}
	if err := pool.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 3 {
		t.Errorf("%d lines", n)
	}
}

func TestFrom_ActorOfTheContext_NobodyWithoutOne(t *testing.T) {
	t.Parallel()
	assert.Equal(t, &Actor{}, From(context.Background()))
	actor := &Actor{KeyID: Command, Name: "quotasvc apply"}
	if got := From(With(t.Context(), actor)); got != actor {
		t.Errorf("%+v", got)
	}
}
