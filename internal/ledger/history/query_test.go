package history

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

func TestStatements_PrepareAndAreUsed_InBothOrders(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	testenv.Statements(t, b.sql)
	for name := range b.sql {
		_, err := b.db.Prepare(t.Context(), name+"-backwards", b.ordered(name, NewestFirst))
		assert.NoError(t, err, "%s, newest first", name)
	}
}

func TestRead_BadQueries_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t).monthly("acme", 10)
	wantRefused(t, errOf(b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: pg.PageMax + 1})), "limit")
	wantRefused(t, errOf(b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1, Cursor: "!"})), "cursor")
	wantRefused(t, errOf(b.Periods(t.Context(), "acme", "api_calls", PeriodsMax+1)), "next")
}
