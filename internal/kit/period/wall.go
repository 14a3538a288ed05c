package period

import "time"

// A wall time is a local date and time. It is stored as a time.Time in UTC whose fields are the local date and time.

const (
	secondsPerHour = 3600
	secondsPerDay  = 24 * secondsPerHour

	// beforeAnyWall is longer than any offset that was ever in use (the largest: Manila -15:56 until 1844, Alaska
	// +15:02 until 1867). Let w be a wall time, read as an instant in UTC. Then at the instant w - beforeAnyWall the
	// wall clock of every zone shows a time before w.
	beforeAnyWall = 30 * time.Hour
)

// wallOf returns the wall time in the zone loc at the instant t.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instantOf returns the first instant at which the wall clock shows w or a later time. In an overlap that is the
// earlier instant. In a gap that is the end of the gap.
func instantOf(w time.Time, loc *time.Location) time.Time {
	// Visit the ranges of constant offset. Start in a range in which the clock shows a time before w.
	for t := w.Add(-beforeAnyWall).In(loc); ; {
		_, offset := t.Zone()
		_, end := constantOffset(t)
		if at := w.Add(-time.Duration(offset) * time.Second); end.IsZero() || at.Before(end) {
			if at.Before(t) {
				at = t // the range begins after w: w is in a gap
			}
			return at.UTC()
		}
		t = end
	}
}

// constantOffset returns a time range around t in which the offset of t's zone is constant. If begin or end is zero,
// the range has no bound on that side. The offset may be the same beyond the range.
//
// It corrects a bug of ZoneBounds (seen in Go 1.26 and 1.27). From 2038 on, where a zone's rules apply instead of its
// table, ZoneBounds ends a range 365 days after the start of the year. In leap years that is a day too early.
func constantOffset(t time.Time) (begin, end time.Time) {
	begin, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return begin, end
}

// addMonths adds n months to the wall time w. A day that the month lacks becomes the last day of the month.
func addMonths(w time.Time, n int) time.Time {
	y, m, d := w.Date()
	first := time.Date(y, m+time.Month(n), 1, w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(d, last)-1)
}

// monthsBetween returns the largest n for which addMonths(from, n) is not after the instant `to`.
func monthsBetween(from, to time.Time) int {
	n := (to.Year()-from.Year())*12 + int(to.Month()) - int(from.Month())
	if addMonths(from, n).After(to) {
		n--
	}
	return n
}

// stepsBetween returns the largest n for which from + n * seconds is not after the instant `to`.
func stepsBetween(from, to time.Time, seconds int64) int {
	elapsed := to.Unix() - from.Unix()
	if to.Nanosecond() < from.Nanosecond() {
		elapsed--
	}
	return int(floorDiv(elapsed, seconds))
}

// addSeconds returns t plus seconds. It works even for seconds that overflow a time.Duration.
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
