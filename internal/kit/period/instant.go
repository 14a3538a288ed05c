package period

import "time"

// Earlier returns the earlier of two instants.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Micros cuts an instant to microseconds, which is the precision of PostgreSQL. It returns the result in UTC.
func Micros(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// OrForever returns t, or Forever if t is the zero time.
func OrForever(t time.Time) time.Time {
	if t.IsZero() {
		return Forever
	}
	return t
}

// OrNil returns a pointer to t, or nil if t is the zero time.
func OrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// OrZero returns the instant that t points to, in UTC. It returns the zero time if t is nil.
func OrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
