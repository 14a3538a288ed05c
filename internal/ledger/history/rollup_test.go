package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A row of rollups ends at the end of a half hour if possible, else at the end of a quarter of an hour. It comes at
// most ten entries after the row before and, if possible, at least two. The half hours of this test have 3, 1, 12, 1
// and 25 entries. Their quarters have 2 and 1, 1, 5 and 7, 1, 13 and 12 entries.
func TestRollups_Rows_StandWhereHalfHoursAndQuartersEnd(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 100)
	for i := range 41 { // with the grant of the allowance: 42 entries
		must(b, debitOf("acme", fmt.Sprint("k", i), 1))
	}
	b.exec(`UPDATE entries SET created_at = $1::timestamptz - interval '1 minute' * CASE WHEN seq <= 2 THEN 150 WHEN seq <= 3 THEN 135 WHEN seq <= 4 THEN 120
		WHEN seq <= 9 THEN 90 WHEN seq <= 16 THEN 75 WHEN seq <= 17 THEN 60 WHEN seq <= 30 THEN 30 ELSE 15 END`, time.Now().UTC().Truncate(30*time.Minute))
	for _, sql := range testenv.Rewound {
		b.exec(sql, "", time.Duration(0))
	}
	b.check(b.rollups(10).CatchUp(t.Context(), ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}))
	got := list(b, pgx.RowTo[int64], "SELECT seq FROM rollups ORDER BY seq")
	// The numbers are the last entry of each row. Row 3 is the first end of a half hour after two entries. Row 4: no
	// later half hour ends within ten entries. Rows 9 and 30: no half hour ends within ten entries, but a quarter of
	// an hour ends there. Rows 27 and 40: neither ends within ten entries.
	wantEqual(t, "rows", got, []int64{3, 4, 9, 16, 17, 27, 30, 40})
}
