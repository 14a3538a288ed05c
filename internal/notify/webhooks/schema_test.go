package webhooks

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// schema returns a description of River's objects: columns, constraints and indexes of its tables, and its function.
func schema(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT 'column ' || concat_ws(' ', table_name, column_name, data_type, udt_name, is_nullable, column_default, character_maximum_length)
		FROM information_schema.columns WHERE table_name LIKE 'river%' AND table_schema = current_schema()
		UNION ALL
		SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid::regclass::text LIKE 'river%'
		UNION ALL
		SELECT 'index ' || regexp_replace(indexdef, 'INDEX \S+ ON', 'INDEX ON') FROM pg_indexes WHERE tablename LIKE 'river%' AND schemaname = current_schema()
		UNION ALL
		SELECT 'table ' || relname || ' ' || relpersistence::text FROM pg_class WHERE relname LIKE 'river%' AND relkind = 'r'
		UNION ALL
		SELECT 'function ' || proname || regexp_replace(prosrc, '\s+', ' ', 'g') FROM pg_proc WHERE proname LIKE 'river%'
		UNION ALL
		SELECT 'type ' || t.typname || ' ' || string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
		WHERE t.typname LIKE 'river%' GROUP BY t.typname`)
	require.NoError(t, err)
	lines := testenv.Must(t).Get(pgx.CollectRows(rows, pgx.RowTo[string]))
	slices.Sort(lines)
	return lines
}

// A migration of this service creates River's tables. They must equal the tables that River's version in go.mod
// expects.
func TestMigration_RiversTables_AsItsOwnMigrationsMakeThem(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "Citus adds triggers to tables")
	own, ours := connect(t, testenv.PostgresEmpty(t)), connect(t, testenv.Postgres(t))
	for _, c := range []struct {
		pool *pgxpool.Pool
		do   func(context.Context, *rivermigrate.Migrator[pgx.Tx]) error
	}{
		{own, func(ctx context.Context, m *rivermigrate.Migrator[pgx.Tx]) error {
			_, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
			return err
		}},
		{ours, func(ctx context.Context, m *rivermigrate.Migrator[pgx.Tx]) error {
			result, err := m.Validate(ctx, nil)
			if err == nil && !result.OK {
				t.Errorf("River has migrations that ours lack: %v", result.Messages)
			}
			return err
		}},
	} {
		m := testenv.Must(t).Get(rivermigrate.New(riverpgxv5.New(c.pool), nil))
		require.NoError(t, c.do(t.Context(), m))
	}
	assert.Equal(t, schema(t, own), schema(t, ours))
}
