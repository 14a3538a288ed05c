package period

import (
	"errors"
	"fmt"
	"slices"
)

// ErrInvalid means that an interval, an anchor kind, a zone or a schedule is not valid.
var ErrInvalid = errors.New("period: invalid")

// Interval is the length of a period.
type Interval string

// The intervals. The REST contract and the tables use the same texts.
const (
	Hour  Interval = "hour"
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
	Year  Interval = "year"
	Once  Interval = "once"
)

// ParseInterval returns the interval with the name s, or an ErrInvalid that lists the valid names.
func ParseInterval(s string) (Interval, error) {
	switch i := Interval(s); i {
	case Hour, Day, Week, Month, Year, Once:
		return i, nil
	}
	return "", fmt.Errorf("%w interval %.40q: must be one of hour, day, week, month, year, once", ErrInvalid, s)
}

// lengths lists the intervals from the shortest to the longest.
var lengths = []Interval{Hour, Day, Week, Month, Year}

// Longer reports whether i is longer than o. Once and the empty interval are shorter than all others.
func (i Interval) Longer(o Interval) bool { return slices.Index(lengths, i) > slices.Index(lengths, o) }

// AnchorKind determines where periods begin.
type AnchorKind string

// The kinds of anchors. The REST contract and the tables use the same texts.
const (
	Calendar AnchorKind = "calendar" // at the start of the calendar's hour, day, week, month or year
	Tenant   AnchorKind = "tenant"   // at the tenant's anchor instant
)

// ParseAnchorKind returns the kind with the name s, or an ErrInvalid that lists the valid names.
func ParseAnchorKind(s string) (AnchorKind, error) {
	switch k := AnchorKind(s); k {
	case Calendar, Tenant:
		return k, nil
	}
	return "", fmt.Errorf("%w anchor %.40q: must be one of calendar, tenant", ErrInvalid, s)
}
