package period

import (
	"errors"
	"fmt"
)

// ErrInvalid says that a word or a schedule is not one this package knows.
var ErrInvalid = errors.New("period: invalid")

// Interval is the length of a period.
type Interval string

// The intervals, as the REST contract and the tables spell them.
const (
	Hour  Interval = "hour"
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
	Year  Interval = "year"
	Once  Interval = "once"
)

// ParseInterval returns the interval that s names. Its error is an ErrInvalid that lists the choices.
func ParseInterval(s string) (Interval, error) {
	switch i := Interval(s); i {
	case Hour, Day, Week, Month, Year, Once:
		return i, nil
	}
	return "", fmt.Errorf("%w interval %.40q: must be one of hour, day, week, month, year, once", ErrInvalid, s)
}

// AnchorKind says where periods begin.
type AnchorKind string

// The kinds of anchor, as the REST contract and the tables spell them.
const (
	Calendar AnchorKind = "calendar" // where the calendar's hour, day, week, month or year begins
	Tenant   AnchorKind = "tenant"   // at the tenant's anchor instant
)

// ParseAnchorKind returns the kind that s names. Its error is an ErrInvalid that lists the choices.
func ParseAnchorKind(s string) (AnchorKind, error) {
	switch k := AnchorKind(s); k {
	case Calendar, Tenant:
		return k, nil
	}
	return "", fmt.Errorf("%w anchor %.40q: must be one of calendar, tenant", ErrInvalid, s)
}
