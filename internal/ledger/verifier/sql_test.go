package verifier

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/namedsql"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestStatements_PrepareOnMigratedSchema(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for name, sql := range statements(t) {
		if _, err := conn.Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatements_AreUsed(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for name := range statements(t) {
		if !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("no code uses statement %s", name)
		}
	}
}

func statements(t *testing.T) map[string]string {
	t.Helper()
	all, err := namedsql.Load(sqlFiles)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
