package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPeriods_AnchorOn31st_EndOnLastDayOfShortMonths(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	anchor := time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC)
	b.allowance("pro", "api_calls", 100, "month", "tenant")
	b.tenant("acme", "pro", time.Now().Add(-time.Hour), anchor)
	list, err := b.Periods(t.Context(), "acme", "api_calls", 24)
	require.NoError(t, err)
	ends := map[string]bool{}
	for i, p := range list {
		ends[p.End.Format(time.DateOnly)] = true
		if i > 0 && !p.Start.Equal(list[i-1].End) {
			t.Errorf("period %d starts at %s, the one before ends at %s", i, p.Start, list[i-1].End)
		}
	}
	year := time.Now().UTC().AddDate(0, 2, 0).Year() // a February within the next 24 months
	february := time.Date(year+1, 3, 0, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	for _, want := range []string{february, fmt.Sprintf("%d-03-31", year+1), fmt.Sprintf("%d-04-30", year+1)} {
		assert.True(t, ends[want], "no period ends on %s: %v", want, ends)
	}
}
