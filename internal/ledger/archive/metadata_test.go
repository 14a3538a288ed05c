package archive

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// TestArchive_OddMetadata_SameInTheFile: the file has each accepted value as PostgreSQL had it.
func TestArchive_OddMetadata_SameInTheFile(t *testing.T) {
	t.Parallel()
	begin := journal.MonthOf(time.Now()) - 4
	b := newBundle(t, begin)
	b.catalogue()
	b.tenant("acme")
	b.topup("acme", 1000)
	sent := map[string]string{}
	for i, text := range testenv.OddMetadata() {
		op := fmt.Sprint("odd-", i)
		sent[op] = text
		items := []ledger.Item{{Meter: "calls", Amount: 1}}
		do(b, &ledger.Debit{Tenant: "acme", Key: op, Items: items, Metadata: []byte(text)})
	}
	b.clock(time.Now())
	dir := filepath.Join(t.TempDir(), "a")
	b.run(b.options(begin+1, dir))
	files, err := filepath.Glob(filepath.Join(dir, "entries-*.parquet"))
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		rows, err := parquet.ReadFile[struct {
			OperationID *string `parquet:"operation_id,optional"`
			Metadata    *string `parquet:"metadata,optional,json"`
		}](file)
		require.NoError(t, err)
		for _, row := range rows {
			if row.OperationID == nil || sent[*row.OperationID] == "" {
				continue
			}
			found++
			require.NotNil(t, row.Metadata, *row.OperationID)
			var same bool
			want := sent[*row.OperationID]
			b.check(b.db.QueryRow(t.Context(), "SELECT $1::jsonb = $2::jsonb", want, *row.Metadata).Scan(&same))
			assert.True(t, same, "%s: %.200s", want, *row.Metadata)
		}
	}
	assert.Equal(t, len(sent), found)
}
