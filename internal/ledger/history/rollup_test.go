package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Rows of rollups stand where a half hour ends, on a large balance where a quarter ends, but not closer than needed. The half hours have 3, 1, 12, 1 and 25
// entries, and their quarters 2 and 1, 1, 5 and 7, 1, 13 and 12.
func TestRollups_Rows_StandWhereHalfHoursAndQuartersEnd(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.hourly("acme", 100)
	for i := range 41 { // and the allowance
		must(b, debitOf("acme", fmt.Sprint("k", i), 1))
	}
	b.exec(`UPDATE entries SET created_at = $1::timestamptz - interval '1 minute' * CASE WHEN seq <= 2 THEN 150 WHEN seq <= 3 THEN 135 WHEN seq <= 4 THEN 120
		WHEN seq <= 9 THEN 90 WHEN seq <= 16 THEN 75 WHEN seq <= 17 THEN 60 WHEN seq <= 30 THEN 30 ELSE 15 END`, time.Now().UTC().Truncate(30*time.Minute))
	for _, sql := range testenv.Rewound {
		b.exec(sql, "", time.Duration(0))
	}
	b.check(b.rollups(10).CatchUp(t.Context(), ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}))
	rows, err := b.db.Query(t.Context(), "SELECT seq FROM rollups ORDER BY seq")
	b.check(err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	b.check(err)
	// 3: the first half hour's end after two entries. 4: there is no later one within ten. 9, 30: no half hour ends within ten, a quarter does. 27, 40:
	// nothing ends.
	wantEqual(t, "rows", got, []int64{3, 4, 9, 16, 17, 27, 30, 40})
}
