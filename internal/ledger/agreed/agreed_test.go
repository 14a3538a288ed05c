package agreed

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, namedsql.Must(namedsql.Plain, SQL))
}
