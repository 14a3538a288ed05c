package archive

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestStatements_PrepareOnMigratedSchema(t *testing.T) {
	t.Parallel()
	q, err := namedsql.Load(sqlFiles)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), testenv.Postgres(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for name, sql := range q {
		_, err = conn.Prepare(t.Context(), name, sql)
		assert.NoError(t, err, "%s", name)
	}
}
