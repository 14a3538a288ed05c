package period_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests must exist on every machine

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

func zone(t require.TestingT, name string) *time.Location {
	loc, err := period.ParseZone(name)
	require.NoError(t, err)
	return loc
}

func at(t require.TestingT, s string) time.Time {
	instant, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return instant
}

// contains reports whether t is in p.
func contains(p period.Period, t time.Time) bool { return !t.Before(p.Start) && t.Before(p.End) }

// following returns n periods, of which the first contains the given instant. If a period does not end, it is the
// last one.
func following(t require.TestingT, s period.Schedule, in time.Time, n int) []period.Period {
	var periods []period.Period
	for len(periods) < n {
		p, err := s.Containing(in)
		require.NoError(t, err)
		periods = append(periods, p)
		if p.Endless() {
			break
		}
		in = p.End
	}
	return periods
}

// TestSchedule_KnownBoundaries lists boundaries as local times with the offset, so that a reader can check them in a
// calendar. The field `from` is an instant in the first period.
func TestSchedule_KnownBoundaries(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		every      period.Interval
		anchor     string // empty: the anchor kind is Calendar
		zone, from string
		want       []string
	}{
		"month from 31 January, leap year": {
			period.Month, "2024-01-31T00:00:00Z", "UTC", "2024-01-31T00:00:00Z",
			[]string{
				"2024-01-31T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z", "2024-04-30T00:00:00Z",
				"2024-05-31T00:00:00Z",
			},
		},
		"month from 31 January, common year": {
			period.Month, "2023-01-31T00:00:00Z", "UTC", "2023-02-10T00:00:00Z",
			[]string{"2023-01-31T00:00:00Z", "2023-02-28T00:00:00Z", "2023-03-31T00:00:00Z"},
		},
		"month from 30 January, before the anchor": {
			period.Month, "2026-01-30T00:00:00Z", "UTC", "2023-02-10T00:00:00Z",
			[]string{"2023-01-30T00:00:00Z", "2023-02-28T00:00:00Z", "2023-03-30T00:00:00Z"},
		},
		"year from 29 February": {
			period.Year, "2024-02-29T12:00:00Z", "UTC", "2026-12-31T00:00:00Z",
			[]string{"2026-02-28T12:00:00Z", "2027-02-28T12:00:00Z", "2028-02-29T12:00:00Z", "2029-02-28T12:00:00Z"},
		},
		"calendar month keeps local midnight over DST": {
			period.Month, "", "Europe/Berlin", "2026-03-15T00:00:00Z",
			[]string{"2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00"},
		},
		"calendar week begins on Monday": {
			period.Week, "", "Europe/Berlin", "2026-10-25T12:00:00Z", // a Sunday of 25 hours
			[]string{"2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-11-02T00:00:00+01:00"},
		},
		"calendar year": {
			period.Year, "", "Asia/Kathmandu", "2026-06-01T00:00:00Z",
			[]string{"2026-01-01T00:00:00+05:45", "2027-01-01T00:00:00+05:45"},
		},
		"day at a time of day in a gap": {
			period.Day, "2026-01-05T02:30:00+01:00", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		"day at a time of day in an overlap": {
			period.Day, "2026-01-05T02:30:00+01:00", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"an instant in the second pass of an overlap is after the boundary in the first": {
			period.Day, "2026-01-05T02:30:00+01:00", "Europe/Berlin", "2026-10-25T02:15:00+01:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"day where midnight is skipped": {
			period.Day, "", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
			[]string{"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		"day where midnight is skipped, Cairo": {
			period.Day, "", "Africa/Cairo", "2024-04-25T12:00:00Z",
			[]string{"2024-04-25T00:00:00+02:00", "2024-04-26T01:00:00+03:00", "2024-04-27T00:00:00+03:00"},
		},
		"a skipped day does not exist": {
			period.Day, "", "Pacific/Apia", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		},
		"calendar hour over a whole-hour change": {
			period.Hour, "", "America/New_York", "2026-11-01T05:59:59Z",
			[]string{
				"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00",
			},
		},
		"calendar hour at +5:45": {
			period.Hour, "", "Asia/Kathmandu", "2026-01-01T00:00:00Z",
			[]string{"2026-01-01T05:00:00+05:45", "2026-01-01T06:00:00+05:45"},
		},
		"calendar hour over a half-hour change forward": {
			period.Hour, "", "Australia/Lord_Howe", "2026-10-04T00:30:00+10:30",
			[]string{"2026-10-04T00:00:00+10:30", "2026-10-04T01:00:00+10:30", "2026-10-04T03:00:00+11:00"},
		},
		"calendar hour over a half-hour change back": {
			period.Hour, "", "Australia/Lord_Howe", "2026-04-05T01:45:00+10:30",
			[]string{"2026-04-05T01:00:00+11:00", "2026-04-05T02:00:00+10:30", "2026-04-05T03:00:00+10:30"},
		},
		"tenant hour is exact over a half-hour change": {
			period.Hour, "2026-04-04T00:10:00+11:00", "Australia/Lord_Howe", "2026-04-05T01:15:00+11:00",
			[]string{"2026-04-05T01:10:00+11:00", "2026-04-05T01:40:00+10:30", "2026-04-05T02:40:00+10:30"},
		},
		"last day of a leap year beyond the zone's table": {
			period.Day, "", "Europe/Berlin", "2040-12-30T12:00:00Z",
			[]string{"2040-12-30T00:00:00+01:00", "2040-12-31T00:00:00+01:00", "2041-01-01T00:00:00+01:00"},
		},
		"last hours of a leap year beyond the zone's table": {
			period.Hour, "", "Australia/Lord_Howe", "2040-12-31T09:30:00Z",
			[]string{"2040-12-31T20:00:00+11:00", "2040-12-31T21:00:00+11:00", "2040-12-31T22:00:00+11:00"},
		},
		"microseconds of the anchor": {
			period.Week, "2026-01-05T10:00:00.123456789Z", "UTC", "2026-01-12T10:00:00.123455Z",
			[]string{"2026-01-05T10:00:00.123456Z", "2026-01-12T10:00:00.123456Z", "2026-01-19T10:00:00.123456Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := period.Schedule{Every: tc.every, Anchor: period.Calendar, Location: zone(t, tc.zone)}
			if tc.anchor != "" {
				s.Anchor, s.AnchorAt = period.Tenant, at(t, tc.anchor)
			}
			periods := following(t, s, at(t, tc.from), len(tc.want)-1)
			got := make([]string, 0, len(tc.want))
			for _, p := range periods {
				got = append(got, p.Start.In(s.Location).Format(time.RFC3339Nano))
				require.Equal(t, time.UTC, p.Start.Location())
				require.Equal(t, time.UTC, p.End.Location())
			}
			got = append(got, periods[len(periods)-1].End.In(s.Location).Format(time.RFC3339Nano))
			require.Equal(t, tc.want, got)
		})
	}
}

func TestSchedule_Once_IsOnePeriodFromTheAnchorForever(t *testing.T) {
	t.Parallel()
	for _, kind := range []period.AnchorKind{period.Calendar, period.Tenant} {
		s := period.Schedule{Every: period.Once, Anchor: kind, AnchorAt: at(t, "2026-01-31T10:00:00.1234567Z")}
		want := period.Period{Start: at(t, "2026-01-31T10:00:00.123456Z"), End: period.Forever}

		p, err := s.Containing(want.Start)
		require.NoError(t, err)
		require.Equal(t, want, p)
		require.True(t, p.Endless())
		require.Equal(t, []period.Period{want}, following(t, s, at(t, "2500-01-01T00:00:00Z"), 12))

		_, err = s.Containing(want.Start.Add(-time.Microsecond))
		require.ErrorIs(t, err, period.ErrNotStarted)
		require.ErrorContains(t, err, "2026-01-31T10:00:00.123456Z")
	}
}

func TestContaining_OutOfRange_NamesTheBound(t *testing.T) {
	t.Parallel()
	us := time.Microsecond
	good := at(t, "2026-01-01T00:00:00Z")
	for _, every := range []period.Interval{period.Hour, period.Day, period.Week, period.Month, period.Year} {
		for _, zoneName := range []string{"Pacific/Kiritimati", "Etc/GMT+12", "Asia/Manila", "Europe/Berlin"} {
			for _, kind := range []period.AnchorKind{period.Calendar, period.Tenant} {
				s := period.Schedule{Every: every, Anchor: kind, AnchorAt: good, Location: zone(t, zoneName)}
				for _, in := range []time.Time{period.Earliest, period.Latest.Add(-us)} {
					p, err := s.Containing(in)
					require.NoError(t, err)
					require.True(t, contains(p, in))
					require.GreaterOrEqual(t, p.Start.Year(), 1)
					require.True(t, p.End.Before(period.Forever))
					s.AnchorAt = in
					_, err = s.Containing(good)
					require.NoError(t, err)
					s.AnchorAt = good
				}
				for _, out := range []time.Time{
					period.Earliest.Add(-us), period.Latest, at(t, "9999-12-31T23:59:59Z"), time.Unix(1<<60, 0), {},
				} {
					_, err := s.Containing(out)
					require.ErrorIs(t, err, period.ErrOutOfRange)
					require.ErrorContains(t, err, "must be from 0002-01-01T00:00:00Z to before 9998-01-01T00:00:00Z")
					require.ErrorContains(t, err, "instant")
					if kind == period.Tenant {
						bad := s
						bad.AnchorAt = out
						_, err = bad.Containing(good)
						require.ErrorIs(t, err, period.ErrOutOfRange)
						require.ErrorContains(t, err, "anchor")
					}
				}
			}
		}
	}
}

func TestParse_UnknownWord_ListsTheChoices(t *testing.T) {
	t.Parallel()
	good := at(t, "2026-01-01T00:00:00Z")
	_, err := period.Schedule{Every: "fortnight", Anchor: period.Calendar}.Containing(good)
	require.ErrorIs(t, err, period.ErrInvalid)
	require.ErrorContains(t, err, "must be one of hour, day, week, month, year, once")
	_, err = period.Schedule{Every: period.Day}.Containing(good)
	require.ErrorIs(t, err, period.ErrInvalid)
	require.ErrorContains(t, err, "must be one of calendar, tenant")
	for _, every := range []period.Interval{period.Hour, period.Once} {
		parsed, err := period.ParseInterval(string(every))
		require.NoError(t, err)
		require.Equal(t, every, parsed)
	}
	_, err = period.ParseInterval("Hour")
	require.ErrorIs(t, err, period.ErrInvalid)
	_, err = period.ParseAnchorKind("")
	require.ErrorIs(t, err, period.ErrInvalid)
}

func TestParseZone_RejectsNamesThatDependOnTheMachine(t *testing.T) {
	t.Parallel()
	var zones period.Zones
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Etc/GMT+12"} {
		loc, err := period.ParseZone(name)
		require.NoError(t, err)
		require.Equal(t, name, loc.String())
		first, err := zones.Parse(name)
		require.NoError(t, err)
		again, err := zones.Parse(name)
		require.NoError(t, err)
		require.Same(t, first, again)
	}
	for _, name := range []string{
		"", "Local", "local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "Mars/Olympus",
		"../../etc/passwd", "/etc/localtime", "Europe/Berlin\x00", "Europe\\Berlin", "+01:00", "zone.tab",
		"E" + string(make([]byte, period.MaxZoneName)),
	} {
		_, err := period.ParseZone(name)
		require.ErrorIs(t, err, period.ErrInvalid, name)
		require.ErrorContains(t, err, "timezone")
		_, err = zones.Parse(name)
		require.ErrorIs(t, err, period.ErrInvalid)
	}
}

func BenchmarkContaining(b *testing.B) {
	for name, s := range map[string]period.Schedule{
		"month, tenant, Berlin": {
			Every: period.Month, Anchor: period.Tenant, AnchorAt: at(b, "1999-01-31T10:00:00Z"), Location: zone(b, "Europe/Berlin"),
		},
		"day, calendar, UTC":         {Every: period.Day, Anchor: period.Calendar},
		"hour, calendar, Lord Howe":  {Every: period.Hour, Anchor: period.Calendar, Location: zone(b, "Australia/Lord_Howe")},
		"hour, tenant, a far anchor": {Every: period.Hour, Anchor: period.Tenant, AnchorAt: period.Earliest},
	} {
		b.Run(name, func(b *testing.B) {
			now := at(b, "2046-07-15T12:00:00Z") // beyond the table of the zone, so its rules apply
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Containing(now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
