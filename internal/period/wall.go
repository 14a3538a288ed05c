package period

import "time"

// A wall time is what a clock on the wall shows, held as a time.Time in UTC: its fields count, not the instant.

const (
	secondsPerHour = 3600
	secondsPerDay  = 24 * secondsPerHour

	// beforeAnyWall is how long before a wall time, read as UTC, every zone's clock shows less: more than the largest
	// offset ever in use (Manila's -15:56 and Alaska's +15:02 of 1844 and 1867).
	beforeAnyWall = 30 * time.Hour
)

// wallOf is the wall time at instant t.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf is the first instant at which the wall clock shows w or more: the earlier of two, or the end of a gap.
func instantOf(w time.Time, loc *time.Location) time.Time {
	// Walk the stretches of constant offset, from one in which the clock cannot show w yet.
	for t := w.Add(-beforeAnyWall).In(loc); ; {
		_, offset := t.Zone()
		_, end := stretch(t)
		if at := w.Add(-time.Duration(offset) * time.Second); end.IsZero() || at.Before(end) {
			if at.Before(t) {
				at = t // the stretch begins beyond w: a gap
			}
			return at.UTC()
		}
		t = end
	}
}

// stretch is a stretch of constant offset, in t's zone, that contains t. A zero begin or end means that there is none. The
// offset need not change at its ends.
//
// It is ZoneBounds with a remedy: where a zone's rules and not its table apply (from 2038 on), ZoneBounds lets a stretch end
// 365 days after the start of the year, which in leap years is before 31 December ends (seen in Go 1.26).
func stretch(t time.Time) (begin, end time.Time) {
	begin, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return begin, end
}

// addMonths adds n months to wall time w and clamps the day to the month's last.
func addMonths(w time.Time, n int) time.Time {
	y, m, d := w.Date()
	first := time.Date(y, m+time.Month(n), 1, w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(d, last)-1)
}

// monthsBetween is the largest n for which addMonths(from, n) is not after to.
func monthsBetween(from, to time.Time) int {
	n := (to.Year()-from.Year())*12 + int(to.Month()) - int(from.Month())
	if addMonths(from, n).After(to) {
		n--
	}
	return n
}

// stepsBetween is the largest n for which from plus n steps of that many seconds is not after to.
func stepsBetween(from, to time.Time, seconds int64) int {
	elapsed := to.Unix() - from.Unix()
	if to.Nanosecond() < from.Nanosecond() {
		elapsed--
	}
	return int(floorDiv(elapsed, seconds))
}

// addSeconds is t plus seconds, also where a time.Duration would overflow.
func addSeconds(t time.Time, seconds int64) time.Time {
	return time.Unix(t.Unix()+seconds, int64(t.Nanosecond())).UTC()
}

// floorDiv divides and rounds down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
