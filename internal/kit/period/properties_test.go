package period_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// zones are zones with unusual changes of the clock.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York",
	"Australia/Lord_Howe", // changes by 30 minutes
	"Asia/Kathmandu",      // +5:45, +5:30 until 1986
	"America/Sao_Paulo",   // skipped midnights
	"Africa/Cairo",        // changes at midnight in both directions, not in every year
	"Pacific/Apia",        // skipped a day in 2011
	"Pacific/Kwajalein",   // skipped a day in 1993
	"Asia/Manila",         // skipped a day in 1844; -15:56 before
	"America/Juneau",      // had one day twice in 1867; +15:02 before
	"Africa/Casablanca",   // changes a second time in each year, for Ramadan
	"America/Caracas",     // changed by 30 minutes in 2007 and 2016
	"Antarctica/Troll",    // changes by two hours
}

var intervals = []period.Interval{period.Hour, period.Day, period.Week, period.Month, period.Year}

// instants generates instants in the years [from, to). Half of them are close to a change of the zone's clock.
func instants(loc *time.Location, from, to int) *rapid.Generator[time.Time] {
	first, last := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC)
	return rapid.Custom(func(t *rapid.T) time.Time {
		instant := time.Unix(rapid.Int64Range(first.Unix(), last.Unix()-1).Draw(t, "second"), 0).UTC()
		if rapid.Bool().Draw(t, "near a change") {
			if change, _ := instant.In(loc).ZoneBounds(); change.After(first) {
				instant = change.UTC().Add(time.Duration(rapid.Int64Range(-48*3600, 48*3600).Draw(t, "shift")) * time.Second)
				if instant.Before(first) || !instant.Before(last) {
					instant = change.UTC()
				}
			}
		}
		return instant.Add(time.Duration(rapid.Int64Range(0, 1e6-1).Draw(t, "us")) * time.Microsecond)
	})
}

func schedules(from, to int) *rapid.Generator[period.Schedule] {
	return rapid.Custom(func(t *rapid.T) period.Schedule {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		return period.Schedule{
			Every:    rapid.SampledFrom(intervals).Draw(t, "every"),
			Anchor:   rapid.SampledFrom([]period.AnchorKind{period.Calendar, period.Tenant}).Draw(t, "kind"),
			AnchorAt: instants(loc, from, to).Draw(t, "anchor"),
			Location: loc,
		}
	})
}

// TestSchedule_PeriodsHaveNoHoleAndNoOverlap tests the years 2 to 9997. A second run tests only the years 1840 to
// 2040, which have the most unusual changes of clocks.
func TestSchedule_PeriodsHaveNoHoleAndNoOverlap(t *testing.T) {
	t.Parallel()
	for name, years := range map[string][2]int{"all of time": {2, 9998}, "on record": {1840, 2040}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s := schedules(years[0], years[1]).Draw(t, "schedule")
				in := instants(s.Location, years[0], years[1]).Draw(t, "instant")
				p, err := s.Containing(in)
				require.NoError(t, err)
				require.True(t, contains(p, in), "%v does not contain %v", p, in)
				require.True(t, p.Start.Before(p.End))
				require.Zero(t, p.Start.Nanosecond()%1000)

				if !p.Start.Before(period.Earliest) {
					same, err := s.Containing(p.Start)
					require.NoError(t, err)
					require.Equal(t, p, same, "Containing(p.Start)")
				}
				if !p.End.After(period.Latest) {
					same, err := s.Containing(p.End.Add(-time.Microsecond))
					require.NoError(t, err)
					require.Equal(t, p, same, "Containing(the last microsecond of p)")
				}
				if p.End.Before(period.Latest) {
					next, err := s.Containing(p.End)
					require.NoError(t, err)
					require.Equal(t, p.End, next.Start)
				}
			})
		})
	}
}

// TestSchedule_BoundariesAreAnchorPlusIntervals compares boundaries with a simple calendar. The calendar goes from
// the anchor day by day. Then it tries every quarter of an hour to find the first instant with the wanted wall time.
func TestSchedule_BoundariesAreAnchorPlusIntervals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		every := rapid.SampledFrom([]period.Interval{period.Day, period.Week, period.Month, period.Year}).Draw(t, "every")
		n := rapid.IntRange(0, 100).Draw(t, "n")
		quarter := rapid.IntRange(0, 95).Draw(t, "quarter of an hour")
		d := date{rapid.IntRange(1975, 2030).Draw(t, "year"), rapid.IntRange(1, 12).Draw(t, "month"), 0}
		d.day = rapid.OneOf(rapid.IntRange(28, 31), rapid.IntRange(1, 31)).Draw(t, "day")
		d.day = min(d.day, daysIn(d.year, d.month))
		anchor, ok := firstInstant(d, quarter, loc)
		if !ok {
			t.Skip("the anchor's wall time is in a gap, so no instant has it")
		}
		s := period.Schedule{Every: every, Anchor: period.Tenant, AnchorAt: anchor, Location: loc}

		// Test the boundary itself, because it may be in a gap. Then an instant next to it may be in the next period.
		want, _ := firstInstant(d.plus(n, every), quarter, loc)
		p, err := s.Containing(want)
		require.NoError(t, err)
		require.Equal(t, want, p.Start)
		end, _ := firstInstant(d.plus(n+1, every), quarter, loc)
		if end.After(want) {
			require.Equal(t, end, p.End)
		}
	})
}

func TestSchedule_ThousandMonths_DoNotDrift(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2023, 1, 31, 23, 30, 0, 0, time.UTC)
	s := period.Schedule{Every: period.Month, Anchor: period.Tenant, AnchorAt: anchor}
	p, err := s.Containing(anchor)
	require.NoError(t, err)
	for i := range 1000 {
		year, month := 2023+i/12, i%12+1
		require.Equal(t, time.Date(year, time.Month(month), daysIn(year, month), 23, 30, 0, 0, time.UTC), p.Start)
		p, err = s.Containing(p.End)
		require.NoError(t, err)
	}
}

// date is a day in the simple calendar of this test.
type date struct{ year, month, day int }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// plus returns d plus n intervals. It clamps the day once, at the end.
func (d date) plus(n int, every period.Interval) date {
	switch every {
	case period.Year:
		d.year += n
	case period.Month:
		for range n {
			if d.month++; d.month == 13 {
				d.year, d.month = d.year+1, 1
			}
		}
	case period.Week:
		return d.plus(7*n, period.Day)
	case period.Day:
		for range n {
			if d.day++; d.day > daysIn(d.year, d.month) {
				d.day = 1
				if d.month++; d.month == 13 {
					d.year, d.month = d.year+1, 1
				}
			}
		}
	}
	d.day = min(d.day, daysIn(d.year, d.month))
	return d
}

// firstInstant returns the first quarter of an hour at which the clock shows the wall time or a later time. Since
// 1972, all clocks have changed at quarters of an hour. ok reports whether the clock shows exactly the wall time.
func firstInstant(d date, quarter int, loc *time.Location) (_ time.Time, ok bool) {
	const step = 15 * time.Minute
	wall := time.Date(d.year, time.Month(d.month), d.day, quarter/4, quarter%4*15, 0, 0, time.UTC)
	for in := wall.Add(-26 * time.Hour); ; in = in.Add(step) {
		local := in.In(loc)
		shown := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
		if !shown.Before(wall) {
			return in, shown.Equal(wall)
		}
	}
}
