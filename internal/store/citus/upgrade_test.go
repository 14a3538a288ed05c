package citus_test

import (
	"database/sql"
	"log/slog"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver for goose
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/migrations"
)

// firstDistributed is the schema version of the oldest databases that were distributed.
const firstDistributed = 14

// Migrations that are newer than firstDistributed change distributed tables that have rows, and create tables that
// are placed afterwards.
func TestCitus_LaterMigrations_ApplyToADistributedDatabase(t *testing.T) {
	t.Parallel()
	if !testenv.OnCitus() {
		t.Skip("it needs an empty database of a cluster: make test-citus has one")
	}
	url := testenv.PostgresEmpty(t)
	conn := testenv.Connect(t, url)
	db := testenv.CloseAtEnd(t, testenv.Must(t).Get(sql.Open("pgx", url)))
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = p.UpTo(t.Context(), firstDistributed)
	require.NoError(t, err)
	distribute := func() {
		t.Helper()
		require.NoError(t, citus.Distribute(t.Context(), conn, 4, slog.New(slog.DiscardHandler)))
	}
	distribute()
	for _, sql := range []string{
		"INSERT INTO meters (meter, unit) VALUES ('calls', 'call')",
		"INSERT INTO plans (plan, version) VALUES ('pro', 1)",
		"INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ('pro', 1, 'calls', 1, 1000, 'month', 'calendar')",
		"INSERT INTO tenants (tenant_id, plan, anchor) VALUES ('acme', 'pro', '2026-01-01'), ('globex', 'pro', '2026-01-01')",
		"INSERT INTO balances (tenant_id, meter, subject) VALUES ('acme', 'calls', ''), ('globex', 'calls', '')",
	} {
		_, err = conn.Exec(t.Context(), sql)
		require.NoError(t, err, "%s", sql)
	}
	down := func() {
		t.Helper()
		testenv.Must(t).Get(p.DownTo(t.Context(), firstDistributed))
	}
	up := func() {
		t.Helper()
		testenv.Must(t).Get(p.Up(t.Context()))
	}
	up()
	distribute()
	_, err = citus.Detect(t.Context(), conn)
	assert.NoError(t, err)
	down()
	up()
	distribute()
	_, err = citus.Detect(t.Context(), conn)
	assert.NoError(t, err)
}
