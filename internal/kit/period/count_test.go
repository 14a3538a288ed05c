package period_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// chain computes one period after the other, from the instant `from` on. It returns the periods that end by the
// instant `until`, at most `most` periods.
func chain(t require.TestingT, s period.Schedule, from, until time.Time, most int) []period.Period {
	var out []period.Period
	for len(out) < most {
		p, err := s.Containing(from)
		require.NoError(t, err)
		if p.End.After(until) {
			break
		}
		p.Start, from = from, p.End
		out = append(out, p)
	}
	return out
}

func TestCount_AnySchedule_CountsWhatSteppingFinds(t *testing.T) {
	t.Parallel()
	for name, years := range map[string][2]int{"all of time": {2, 8000}, "on record": {1840, 2040}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s := schedules(years[0], years[1]).Draw(t, "schedule")
				from := instants(s.Location, years[0], years[1]).Draw(t, "from")
				steps := chain(t, s, from, period.Latest, rapid.IntRange(0, 1500).Draw(t, "periods"))
				until := from
				if len(steps) > 0 {
					until = steps[len(steps)-1].End
				}
				if rapid.Bool().Draw(t, "within a period") {
					p, err := s.Containing(until)
					require.NoError(t, err)
					until = until.Add(p.End.Sub(until) / 2)
				}
				n, last, err := s.Count(from, until)
				require.NoError(t, err)
				require.Equal(t, len(steps), n)
				if n == 0 {
					require.Equal(t, from, last)
					return
				}
				require.Equal(t, steps[n-1].End, last)
				i := rapid.IntRange(0, n-1).Draw(t, "nth")
				p, err := s.Nth(from, i)
				require.NoError(t, err)
				require.Equal(t, steps[i], p)
			})
		})
	}
}

// Each of these zones skipped a day: Apia 30 December 2011, Kwajalein 21 August 1993.
func TestCount_DayThatDoesNotExist_IsNotCounted(t *testing.T) {
	t.Parallel()
	for name, day := range map[string]time.Time{
		"Pacific/Apia":      time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC),
		"Pacific/Kwajalein": time.Date(1993, 8, 21, 12, 0, 0, 0, time.UTC),
	} {
		loc, err := time.LoadLocation(name)
		require.NoError(t, err)
		s := period.Schedule{Every: period.Day, Anchor: period.Calendar, Location: loc}
		from, err := s.Containing(day.AddDate(0, 0, -40))
		require.NoError(t, err)
		want := chain(t, s, from.Start, day.AddDate(0, 0, 40), 1000)
		n, last, err := s.Count(from.Start, day.AddDate(0, 0, 40))
		require.NoError(t, err)
		require.Equal(t, len(want), n, name)
		require.Equal(t, want[n-1].End, last, name)
		for i := range want {
			p, err := s.Nth(from.Start, i)
			require.NoError(t, err)
			require.Equal(t, want[i], p, "%s, period %d", name, i)
		}
	}
}

// Computing the periods one by one takes some 200 ms; Count takes less than 1 ms. The test compares Count with the slow
// way on the same machine: Count may take a fraction of that time. So the test works on any machine.
func TestCount_FiftyYearsOfHours_CostLessThanSteps(t *testing.T) {
	t.Parallel()
	loc, err := time.LoadLocation("Australia/Lord_Howe")
	require.NoError(t, err)
	s := period.Schedule{Every: period.Hour, Anchor: period.Calendar, Location: loc}
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	stepping := time.Now()
	chain(t, s, from, from.AddDate(5, 0, 0), math.MaxInt)
	steps := 10 * time.Since(stepping)
	best := time.Hour
	for range 10 {
		began := time.Now()
		n, _, err := s.Count(from, from.AddDate(50, 0, 0))
		require.NoError(t, err)
		require.InDelta(t, 50*365.25*24, n, 60)
		best = min(best, time.Since(began))
	}
	require.Less(t, best, steps/8)
}
