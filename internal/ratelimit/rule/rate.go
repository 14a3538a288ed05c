package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

const (
	// minPeriod and maxPeriod bound the period of a rate. A millisecond is the shortest period that can be observed
	// through HTTP. 366 days are the longest year. With this bound the units per token, which are at most the period in
	// µs, are below 2^45.
	minPeriod = time.Millisecond
	maxPeriod = 366 * 24 * time.Hour

	// maxExact is 2^53-1. Redis's Lua computes with doubles, which are exact up to this number.
	maxExact = bound.MaxAmount

	monthUnit    = "month"
	longestMonth = 31 * 24 * time.Hour
)

// Rate is Count tokens per Period. The zero value is not a rate.
type Rate struct {
	// Count is 1..2^53-1.
	Count int64
	// Period is a whole number of milliseconds, 1 ms..366 days. A day is 24 hours, except in a fixed window that
	// follows a calendar.
	Period time.Duration
	// Month means that the period is a calendar month. Then Period is 31 days. Only fixed windows may have it.
	Month bool
}

// unit is a unit of time in the text of a rate.
type unit struct {
	name   string // the name that Rate.String uses
	other  []string
	length time.Duration
}

// units returns the units of fixed length in a rate, longest first.
func units() []unit {
	return []unit{
		{"week", []string{"weeks", "w"}, 7 * 24 * time.Hour},
		{"day", []string{"days", "d"}, 24 * time.Hour},
		{"h", []string{"hour", "hours"}, time.Hour},
		{"min", []string{"minute", "minutes", "m"}, time.Minute},
		{"s", []string{"sec", "second", "seconds"}, time.Second},
		{"ms", nil, time.Millisecond},
	}
}

// ParseRate reads
//
//	rate   = count "/" [ number ] unit
//	unit   = "ms" | "s" | "sec" | "second" | "seconds" | "m" | "min" | "minute" | "minutes" | "h" | "hour" | "hours"
//	       | "d" | "day" | "days" | "w" | "week" | "weeks" | "month"
//
// where count and number are decimal integers without sign, at least 1: "60/s", "100/min", "5/30s", "10/day". The
// number of months can only be 1. The error is a *FieldError on "rate" that names the bound.
func ParseRate(s string) (Rate, error) {
	count, per, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, rateError("%q is not <count>/<period>, for example 60/s or 5/30s", clip(s))
	}
	n, err := positive(count)
	if err != nil {
		return Rate{}, rateError("the count %q is not an integer from 1 to %d", clip(count), int64(maxExact))
	}
	name := strings.TrimLeft(per, "0123456789")
	multiple := int64(1)
	if digits := per[:len(per)-len(name)]; digits != "" {
		if multiple, err = positive(digits); err != nil {
			return Rate{}, rateError("the period's number %q is not an integer from 1 to %d", clip(digits), int64(maxExact))
		}
	}
	if name == monthUnit && multiple == 1 {
		return Rate{Count: n, Period: longestMonth, Month: true}, nil
	}
	length := unitLength(name)
	if length == 0 {
		return Rate{}, rateError("the unit %q is not one of ms, s, min, h, day, week; or one month", clip(name))
	}
	if multiple > int64(maxPeriod/length) {
		return Rate{}, rateError("the period %s is longer than 366 days", clip(per))
	}
	return Rate{Count: n, Period: time.Duration(multiple) * length}, nil
}

// String returns the shortest text for which ParseRate returns this rate.
func (r Rate) String() string {
	if r.Month {
		return fmt.Sprintf("%d/%s", r.Count, monthUnit)
	}
	for _, u := range units() {
		if r.Period >= u.length && r.Period%u.length == 0 {
			if n := int64(r.Period / u.length); n != 1 {
				return fmt.Sprintf("%d/%d%s", r.Count, n, u.name)
			}
			return fmt.Sprintf("%d/%s", r.Count, u.name)
		}
	}
	return fmt.Sprintf("%d/%s", r.Count, r.Period)
}

// part returns the given percentage of the rate, without rounding. The count and the period of the result can be up
// to a hundred times as large as in a Spec.
func (r Rate) part(percent int64) Rate {
	// The fractions percent/whole and r.Count/longer are reduced to lowest terms.
	g := gcd(percent, whole)
	times, longer := percent/g, whole/g
	g = gcd(r.Count, longer)
	return Rate{Count: r.Count / g * times, Period: r.Period * time.Duration(longer/g), Month: r.Month}
}

// check returns an error if ParseRate cannot return this rate.
func (r Rate) check() error {
	if r.Count < 1 || r.Count > maxExact {
		return rateError("the count %d is not from 1 to %d", r.Count, int64(maxExact))
	}
	if r.Period < minPeriod || r.Period > maxPeriod || r.Period%minPeriod != 0 {
		return rateError("the period %s is not a whole number of milliseconds from 1 ms to 366 days", r.Period)
	}
	return nil
}

func unitLength(name string) time.Duration {
	for _, u := range units() {
		if u.name == name {
			return u.length
		}
		for _, other := range u.other {
			if other == name {
				return u.length
			}
		}
	}
	return 0
}

// positive reads a decimal integer of 1..maxExact that consists of digits only.
func positive(s string) (int64, error) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > maxExact {
		return 0, strconv.ErrRange
	}
	return n, nil
}

// clip returns at most the first 40 characters of s, for an error message.
func clip(s string) string {
	const enough = 40 // longer than any sensible rate, unit or policy
	if len(s) > enough {
		return s[:enough] + "..."
	}
	return s
}

func rateError(format string, args ...any) error {
	return &FieldError{Field: "rate", Reason: fmt.Sprintf(format, args...)}
}
