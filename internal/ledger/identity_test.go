package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeyMonths_EveryDay_CoverRetention(t *testing.T) {
	t.Parallel()
	for day := time.Date(2023, 12, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2025; day = day.AddDate(0, 0, 1) {
		first, last := KeyMonths(day)
		assert.True(t, MonthOf(day.Add(-KeyRetention)) >= first && MonthOf(day) <= last && last-first <= 2,
			"on %s keys are looked for from %s to %s", day.Format(time.DateOnly), first.First(), last.First())
	}
}

func TestMonth_AnyInstant_BeginsNotAfterIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 253402300799).Draw(rt, "at"), 0)
		m := MonthOf(at)
		require.True(rt, !m.First().After(at) && (m+1).First().After(at) && MonthOf(m.First()) == m,
			"%s is in the month that begins at %s", at.UTC(), m.First())
	})
}

// If operations share an id, a reference without an instant names the newest operation. A reference with an instant
// names the newest operation at or before it.
func TestOperationRef_SharedID_NamesOneOperation(t *testing.T) {
	t.Parallel()
	day := func(month time.Month, d int) time.Time { return time.Date(2026, month, d, 12, 0, 0, 0, time.UTC) }
	var all []Entry
	for _, at := range []time.Time{day(6, 3), day(1, 7), day(9, 30)} {
		for line := int32(2); line > 0; line-- {
			all = append(all, Entry{OperationID: "order", Line: line, CreatedAt: at})
		}
	}
	for at, want := range map[time.Time]time.Time{
		{}: day(9, 30), day(9, 30): day(9, 30), day(9, 29): day(6, 3), day(6, 3): day(6, 3), day(6, 2): day(1, 7), day(1, 6): {},
	} {
		got := OperationRef{At: at}.Among(all)
		switch {
		case want.IsZero() && len(got) == 0:
		case len(got) != 2 || got[0].Line != 1 || got[1].Line != 2 || !got[0].CreatedAt.Equal(want) || !got[1].CreatedAt.Equal(want):
			t.Errorf("at %s: got %+v, want both lines of %s", at, got, want)
		}
	}
}
