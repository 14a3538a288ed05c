package ratelimit

import "errors"

var (
	// ErrUnavailable says that no decision can be made: Redis is away and a matched rule is closed then, or a refund
	// could not be delivered. For a decision: nothing was charged locally; whether Redis was charged may be unknown.
	ErrUnavailable = errors.New("ratelimit: backend unavailable")

	// ErrStopped says that the limiter has been stopped. Nothing was charged.
	ErrStopped = errors.New("ratelimit: stopped")
)

// FieldError is a refused value: a rule's at Compile, or a request's. Nothing was done.
type FieldError struct {
	// Field is the field's name as the API writes it: "rate", "burst", "charges[2].cost".
	Field string
	// Reason names the bound that was broken. It is meant for people and carries no secret.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
