package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

func TestStatements_PrepareOnMigratedSchema(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for name, sql := range b.sql {
		if _, err := b.db.Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.db.Prepare(t.Context(), name+"-backwards", b.ordered(name, NewestFirst)); err != nil {
			t.Errorf("%s, newest first: %v", name, err)
		}
	}
}

func TestStatements_AreUsed(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
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
	for name := range newBundle(t).sql {
		if !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("no code uses statement %s", name)
		}
	}
}

func TestRead_BadQueries_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.monthly("acme", 10)
	_, err := b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: pg.PageMax + 1})
	wantRefused(t, err, "limit")
	_, err = b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1, Cursor: "!"})
	wantRefused(t, err, "cursor")
	_, err = b.Periods(t.Context(), "acme", "api_calls", PeriodsMax+1)
	wantRefused(t, err, "next")
}
