package pg

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The list of grants has the same grants as the balance. This is also so before the first use, and when a period has
// ended and its end is not yet written. If the list is read in pages, it is also complete.
func TestGrants_PeriodNotYetWritten_AgreeWithBalance(t *testing.T) {
	t.Parallel()
	b := newBundle(t).meter("credits")
	b.hourly("acme", 100)
	agree := func(when string) {
		t.Helper()
		for _, limit := range []int{1, 2, 500} {
			listed := map[string]map[string]int64{"api_calls": {}, "credits": {}}
			for cursor, first := "", true; first || cursor != ""; first = false {
				page, err := b.Grants(t.Context(), GrantQuery{Tenant: "acme", Status: GrantsOpen, Limit: limit, Cursor: cursor})
				require.NoError(t, err)
				require.True(t, len(page.Items) <= limit, "%s: %d grants on a page of %d", when, len(page.Items), limit)
				for _, g := range page.Items {
					listed[g.Meter][g.ID] = g.Remaining
				}
				cursor = page.NextCursor
			}
			for _, meter := range []string{"api_calls", "credits"} {
				want := map[string]int64{}
				if balance, err := b.Balance(t.Context(), "acme", meter, ""); err == nil {
					for _, g := range balance.Grants {
						want[g.ID] = g.Remaining
					}
				}
				assert.Equal(t, want, listed[meter], "%s, %s, pages of %d", when, meter, limit)
			}
		}
	}
	agree("before the first use")
	b.mustDebit(debitOf("acme", "k", 30))
	b.mustGrant("acme", "g", "credits", 5)
	agree("after a debit")
	b.rewind("acme", 3*time.Hour)
	agree("three periods later")
	page, err := b.Grants(t.Context(), GrantQuery{Tenant: "acme", Meter: "api_calls", Status: ledger.GrantExpired, Limit: 500})
	assert.True(t, err == nil && len(page.Items) != 0, "no expired allowance: %+v, %v", page, err)
}
