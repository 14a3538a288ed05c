package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// The periods of a run open with what the ones before them closed with. Earlier versions stored runs that raised a
// balance above MaxAmount, of which this is not true.
func TestIdleRun_Follows_EachOpensWithClosingBefore(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	history := []TenantTerms{{Since: at, Plan: "p", AnchorAt: at, Zone: time.UTC}}
	plans := map[string][]PlanVersion{"p": {{Version: 1, CreatedAt: at, Allowances: map[string]Allowance{
		"m": {Amount: 1000, Every: period.Hour, Anchor: period.Tenant, RolloverMax: new(int64(3000))},
	}}}}
	for _, tc := range []struct {
		opening, closing int64
		fault            string
	}{
		{999, 3000, ""},
		{999, 2999, "the last period closes with 3000"},
		{MaxAmount - 3001, MaxAmount - 1000, ""},
		{MaxAmount - 1500, MaxAmount + 501, "opens with"},
	} {
		row := PeriodRow{
			BalanceKey: BalanceKey{Tenant: "t", Meter: "m"}, Sums: Sums{Opening: tc.opening},
			Start: at, End: at.Add(9 * time.Hour), Plan: "p", PlanVersion: 1, Closing: tc.closing, Idle: 9,
			TermsAt: at, RolledOver: 999, Rollover: 999,
		}
		run, err := NewIdleRun(&row, history, plans)
		require.NoError(t, err)
		if err = run.Follows(); tc.fault == "" {
			assert.NoError(t, err, tc)
		} else {
			assert.ErrorContains(t, err, tc.fault)
		}
	}
}
