package period

import (
	"cmp"
	"time"
)

// A chain is a sequence of periods. The first period begins at any instant and ends at the schedule's next boundary.
// Each further period is the next whole period of the schedule. The periods of a balance under the same terms are a
// chain.

// Count returns the number of periods that end by the instant `until`, in the chain that begins at the instant
// `from`. It also returns the end of the last of these periods, or the start of the chain if there is no such period.
//
// Its cost does not depend on the number of periods. It depends on how often the zone's clock changes between the two
// instants: about twice a year. Errors are those of Containing.
func (s Schedule) Count(from, until time.Time) (n int, last time.Time, err error) {
	first, err := s.Containing(from)
	if err != nil || first.End.After(until) {
		return 0, from, err
	}
	p, err := s.Containing(until)
	if err != nil {
		return 0, from, err
	}
	return 1 + s.between(first.End, p.Start), p.Start, nil
}

// Nth returns period n, counted from 0, of the chain that begins at the instant `from`. Errors are those of
// Containing.
func (s Schedule) Nth(from time.Time, n int) (Period, error) {
	p, err := s.Containing(from)
	if err != nil {
		return Period{}, err
	}
	p.Start = from
	if n == 0 {
		return p, nil
	}
	// Use the nominal length of a period to guess the boundary that comes n-1 boundaries after p.End. Then count the
	// boundaries up to the guess, and correct the guess. For the last periods, step from period to period.
	at := p.End
	for left := n - 1; ; {
		if p, err = s.Containing(at); err != nil || left == 0 {
			return p, err
		}
		switch {
		case left > 2:
			if p, err = s.Containing(s.shift(at, left)); err != nil {
				return Period{}, err
			}
			left -= s.between(at, p.Start)
			at = p.Start
		case left > 0:
			at, left = p.End, left-1
		default:
			if p, err = s.Containing(at.Add(-time.Microsecond)); err != nil {
				return Period{}, err
			}
			at, left = p.Start, left+1
		}
	}
}

// shift returns a guess of the boundary that is n periods after the boundary `at`. Except near changes of the zone's
// clock, the guess is less than one period after the exact boundary. If n is 0, the guess is before the next boundary.
func (s Schedule) shift(at time.Time, n int) time.Time {
	loc := cmp.Or(s.Location, time.UTC)
	if s.Every == Hour {
		return addSeconds(at, secondsPerHour*int64(n))
	}
	wall, half := wallOf(at, loc), 0
	switch s.Every {
	case Day:
		wall = wall.AddDate(0, 0, n)
	case Week:
		wall = wall.AddDate(0, 0, 7*n)
	case Month:
		wall, half = addMonths(wall, n), 4 // a month's boundary may be up to 4 days later than the clamped day
	default: // Year
		wall, half = addMonths(wall, 12*n), 4
	}
	return instantOf(wall.AddDate(0, 0, half), loc)
}

// between returns the number of boundaries after a and up to b. a and b must be boundaries, and a must not be after
// b.
func (s Schedule) between(a, b time.Time) int {
	s.Location = cmp.Or(s.Location, time.UTC)
	switch {
	case s.Every == Hour && s.Anchor == Calendar:
		return calendarHoursBetween(a, b, s.Location)
	case s.Every == Hour:
		return stepsBetween(a, b, secondsPerHour)
	}
	anchor := s.wallAnchor()
	return s.index(anchor, b) - s.index(anchor, a) - s.skipped(anchor, a, b)
}

// wallAnchor returns the wall time from which boundaries are counted.
func (s Schedule) wallAnchor() time.Time {
	if s.Anchor == Tenant {
		return wallOf(s.AnchorAt.UTC().Truncate(time.Microsecond), s.Location)
	}
	return time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC) // the first day of a year, and a Monday
}

// index returns the largest n for which boundary n is not after t.
func (s Schedule) index(anchor, t time.Time) int {
	n := s.steps(anchor, wallOf(t, s.Location))
	for !s.boundary(anchor, n+1).After(t) {
		n++
	}
	return n
}

// skipped returns the number of boundaries after a and up to b that are at the same instant as the preceding boundary.
// Two boundaries are at the same instant if a gap of the zone's clock contains a whole period. This is possible only
// for days, because the longest gap was a day.
func (s Schedule) skipped(anchor, a, b time.Time) int {
	if s.Every != Day {
		return 0
	}
	n := 0
	for t := a.In(s.Location); ; {
		_, before := t.Zone()
		_, end := constantOffset(t)
		if end.IsZero() || end.After(b) {
			return n
		}
		if _, after := end.Zone(); after-before >= secondsPerDay && end.After(a) {
			for i := s.index(anchor, end); s.boundary(anchor, i-1).Equal(end); i-- {
				n++
			}
		}
		t = end
	}
}

// calendarHoursBetween returns the number of calendar hours from a to b. Both must be boundaries of calendar hours.
// While the zone's offset does not change, all hours have the same length.
func calendarHoursBetween(a, b time.Time, loc *time.Location) int {
	n := 0
	for a.Before(b) {
		_, end := constantOffset(a.In(loc))
		if end.IsZero() || end.After(b) {
			end = b
		}
		// All boundaries before end are whole hours after a.
		if whole := stepsBetween(a, end.Add(-time.Microsecond), secondsPerHour); whole > 0 {
			a, n = addSeconds(a, secondsPerHour*int64(whole)), n+whole
		}
		a, n = calendarHour(a, loc).End, n+1
	}
	return n
}
