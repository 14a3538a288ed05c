package catalog

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The ledger creates the row of a balance before it decides whether the tenant has the meter. So refused requests
// leave rows without entries.
func TestDeleteMeter_RowsWithoutEntry_Deleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "m", Unit: "unit"})
	put(t, s.PutMeter, Meter{ID: "other", Unit: "unit"})
	testenv.Exec(t, s.db.Pool(), `INSERT INTO balances (tenant_id, meter, subject, seq) VALUES
		('acme', 'm', '', 0), ('acme', 'm', 'ann', 0), ('bolt', 'm', '', 0), ('acme', 'other', '', 0)`)
	require.NoError(t, s.DeleteMeter(ctx, "m"))
	require.Equal(t, []string{"acme other 0"}, balancesOf(t, s))
}

func TestDeleteMeter_Refused_KeepsRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "m", Unit: "unit"})
	testenv.Exec(t, s.db.Pool(), "INSERT INTO balances (tenant_id, meter, seq) VALUES ('acme', 'm', 0), ('bolt', 'm', 1)")
	require.Equal(t, errcode.Conflict, errcode.Of(s.DeleteMeter(ctx, "m")))
	require.Equal(t, []string{"acme m 0", "bolt m 1"}, balancesOf(t, s))
}

// A deletion of a meter waits for the ledger's open changes of the meter's balances, and decides afterwards.
func TestDeleteMeter_WaitsForBalances(t *testing.T) {
	t.Parallel()
	strength := "KEY SHARE" // the lock strength of the ledger's own statements
	if testenv.OnCitus() {
		strength = "SHARE"
	}
	create := "INSERT INTO balances (tenant_id, meter) SELECT 'acme', m.meter FROM meters m WHERE m.meter = 'm' FOR " + strength + " OF m"
	const (
		empty = "INSERT INTO balances (tenant_id, meter) VALUES ('acme', 'm')"
		lock  = "SELECT seq FROM balances WHERE tenant_id = 'acme' AND meter = 'm' FOR NO KEY UPDATE"
	)
	for name, c := range map[string]struct {
		before string   // the statement that has ended before the deletion
		ledger []string // statements of a transaction that is still open at the deletion
		want   errcode.Code
		left   []string
	}{
		"made":             {"", []string{create}, "", []string{}},
		"made and used":    {"", []string{create, "UPDATE balances SET seq = 1"}, errcode.Conflict, []string{"acme m 1"}},
		"refused":          {empty, []string{lock}, "", []string{}},
		"opened, refused":  {empty, []string{lock, "UPDATE balances SET period_end = '9999-12-31T23:59:59Z'"}, "", []string{}},
		"granted":          {empty, []string{lock, "UPDATE balances SET seq = 1"}, errcode.Conflict, []string{"acme m 1"}},
		"another is there": {"INSERT INTO balances (tenant_id, meter, seq) VALUES ('bolt', 'm', 3)", []string{create}, errcode.Conflict, []string{"acme m 0", "bolt m 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := newStore(t)
			put(t, s.PutMeter, Meter{ID: "m", Unit: "unit"})
			if c.before != "" {
				testenv.Exec(t, s.db.Pool(), c.before)
			}
			batch, err := s.db.Pool().Begin(ctx)
			require.NoError(t, err)
			t.Cleanup(func() { _ = batch.Rollback(context.Background()) })
			for _, statement := range c.ledger {
				testenv.Exec(t, batch, statement)
			}
			deleted := make(chan error, 1)
			go func() { deleted <- s.DeleteMeter(ctx, "m") }()
			if name != "another is there" { // the deletion finds that balance without waiting
				testenv.Eventually(t, func() bool { return count(t, s, testenv.Waiting()) > 0 }, "the deletion waits")
			}
			require.NoError(t, batch.Commit(ctx))
			require.Equal(t, c.want, errcode.Of(<-deleted))
			require.Equal(t, c.left, balancesOf(t, s))
		})
	}
}

// balancesOf returns every balance: tenant, meter and number of entries.
func balancesOf(t *testing.T, s *Store) []string {
	t.Helper()
	rows, err := s.db.Pool().Query(t.Context(), "SELECT concat_ws(' ', tenant_id, meter, seq) FROM balances ORDER BY 1")
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}
