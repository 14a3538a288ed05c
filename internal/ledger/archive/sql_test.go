package archive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	sql, err := namedsql.Load(sqlFiles)
	require.NoError(t, err)
	testenv.Statements(t, sql)
}
