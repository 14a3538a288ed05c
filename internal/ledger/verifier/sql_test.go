package verifier

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	sql, err := namedsql.Load(sqlFiles)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Statements(t, sql)
}
