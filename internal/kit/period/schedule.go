package period

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

var (
	// Earliest is the first valid instant. A period that contains it begins in year 1 at the earliest.
	Earliest = time.Date(2, time.January, 1, 0, 0, 0, 0, time.UTC)

	// Latest is the first instant that is too late to be valid. In every zone, a period that begins before Latest
	// ends in year 9999 at the latest, and so before Forever.
	Latest = time.Date(9998, time.January, 1, 0, 0, 0, 0, time.UTC)

	// Forever stands for "no end": the last second of the last year that RFC 3339 can express.
	Forever = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
)

var (
	// ErrOutOfRange means that an instant is before Earliest, or not before Latest.
	ErrOutOfRange = errors.New("period: out of range")

	// ErrNotStarted means that an instant is before the start of a once period.
	ErrNotStarted = errors.New("period: not started")
)

// Period is the time range [Start, End). Start and End are in UTC with microsecond precision, and Start is before
// End.
type Period struct {
	Start time.Time
	End   time.Time // Forever if the period does not end
}

// Endless reports whether the period lasts forever.
func (p Period) Endless() bool {
	return p.End.Equal(Forever)
}

// Schedule is a rule that divides time into periods.
type Schedule struct {
	Every    Interval
	Anchor   AnchorKind
	AnchorAt time.Time      // the tenant's anchor instant; the kind Calendar uses it only with Once
	Location *time.Location // the zone of the wall clock; nil is UTC
}

// Containing returns the period of the schedule that contains t.
//
// It returns ErrInvalid for an unknown interval or anchor kind, and ErrOutOfRange if t or the anchor is out of range.
// If the interval is Once and the anchor is after t, it returns ErrNotStarted.
func (s Schedule) Containing(t time.Time) (Period, error) {
	if err := checkRange("instant", t); err != nil {
		return Period{}, err
	}
	s.Location = cmp.Or(s.Location, time.UTC)
	if s.Anchor == Tenant || s.Every == Once {
		if err := checkRange("anchor", s.AnchorAt); err != nil {
			return Period{}, err
		}
		s.AnchorAt = s.AnchorAt.UTC().Truncate(time.Microsecond)
	}
	if _, err := ParseAnchorKind(string(s.Anchor)); err != nil {
		return Period{}, err
	}
	switch s.Every {
	case Once:
		return s.once(t)
	case Hour:
		if s.Anchor == Calendar {
			return calendarHour(t, s.Location), nil
		}
		start := addSeconds(s.AnchorAt, secondsPerHour*int64(stepsBetween(s.AnchorAt, t, secondsPerHour)))
		return Period{Start: start, End: start.Add(time.Hour)}, nil
	case Day, Week, Month, Year:
		return s.wallPeriod(t), nil
	}
	_, err := ParseInterval(string(s.Every))
	return Period{}, err
}

func (s Schedule) once(t time.Time) (Period, error) {
	if t.Before(s.AnchorAt) {
		return Period{}, fmt.Errorf("%w: the only period begins at %s", ErrNotStarted, s.AnchorAt.Format(time.RFC3339Nano))
	}
	return Period{Start: s.AnchorAt, End: Forever}, nil
}

// wallPeriod returns the period that contains t, for the intervals that use the wall clock: day, week, month and
// year.
func (s Schedule) wallPeriod(t time.Time) Period {
	anchor := time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC) // the first day of a year, and a Monday
	if s.Anchor == Tenant {
		anchor = wallOf(s.AnchorAt, s.Location)
	}
	// Boundary n is not after t, because the wall clock at t shows the wall time of boundary n or a later time. If t
	// is in the second half of an overlap, boundaries after n may be at or before t, too. The longest overlap was a
	// day.
	n := s.steps(anchor, wallOf(t, s.Location))
	p := Period{Start: s.boundary(anchor, n), End: s.boundary(anchor, n+1)}
	for !p.End.After(t) {
		n++
		p = Period{Start: p.End, End: s.boundary(anchor, n+1)}
	}
	return p
}

// steps returns the largest n for which the wall time of boundary n is not after wall.
func (s Schedule) steps(anchor, wall time.Time) int {
	switch s.Every {
	case Day:
		return stepsBetween(anchor, wall, secondsPerDay)
	case Week:
		return stepsBetween(anchor, wall, 7*secondsPerDay)
	case Month:
		return monthsBetween(anchor, wall)
	default: // Year
		return int(floorDiv(int64(monthsBetween(anchor, wall)), 12))
	}
}

// boundary returns the instant of boundary n: the anchor plus n intervals.
func (s Schedule) boundary(anchor time.Time, n int) time.Time {
	var wall time.Time
	switch s.Every {
	case Day:
		wall = anchor.AddDate(0, 0, n)
	case Week:
		wall = anchor.AddDate(0, 0, 7*n)
	case Month:
		wall = addMonths(anchor, n)
	default: // Year
		wall = addMonths(anchor, 12*n)
	}
	return instantOf(wall, s.Location)
}

// calendarHour returns the period that contains t. The period begins at a full hour of the wall clock and ends at the
// next full hour.
func calendarHour(t time.Time, loc *time.Location) Period {
	var p Period
	// Each range of constant offset has its own full hours. If no full hour lies from the start of t's range to t,
	// the loop tries the preceding range.
	for at := t.In(loc); ; {
		begin, _ := constantOffset(at)
		p.Start = fullHour(at)
		if begin.IsZero() || !p.Start.Before(begin) {
			break
		}
		at = begin.Add(-time.Microsecond)
	}
	for at := t.In(loc); ; {
		_, end := constantOffset(at)
		p.End = fullHour(at).Add(time.Hour)
		if end.IsZero() || p.End.Before(end) {
			break
		}
		if fullHour(end).Equal(end) {
			p.End = end.UTC()
			break
		}
		at = end
	}
	return p
}

// fullHour returns the last full hour that is not after t. It assumes that the zone always had t's offset.
func fullHour(t time.Time) time.Time {
	_, offset := t.Zone()
	shown := t.Unix() + int64(offset)
	return time.Unix(floorDiv(shown, secondsPerHour)*secondsPerHour-int64(offset), 0).UTC()
}

func checkRange(field string, t time.Time) error {
	if t.Before(Earliest) || !t.Before(Latest) {
		return fmt.Errorf("%w: %s %s: must be from %s to before %s", ErrOutOfRange, field,
			t.UTC().Format(time.RFC3339), Earliest.Format(time.RFC3339), Latest.Format(time.RFC3339))
	}
	return nil
}
