package null

import "time"

// IfEmpty returns text as the value of a column: NULL if text is empty.
func IfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// IfZero returns an instant as the value of a column: NULL if the instant is zero.
func IfZero(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// OrZero returns the instant that a column has, in UTC. It returns the zero time for NULL.
func OrZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
