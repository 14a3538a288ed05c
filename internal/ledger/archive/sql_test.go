package archive

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestStatements_PrepareOnMigratedSchema(t *testing.T) {
	t.Parallel()
	q, err := namedsql.Load(sqlFiles)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for name, sql := range q {
		if _, err := conn.Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
