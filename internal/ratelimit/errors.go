package ratelimit

import "errors"

var (
	// ErrUnavailable means that Redis is away and a rule of the request is closed, or that a refund did not reach
	// Redis. Nothing was charged in this process. It may be unknown whether Redis was charged.
	ErrUnavailable = errors.New("ratelimit: backend unavailable")

	// ErrStopped means that the limiter was stopped before the request was sent. Nothing was charged.
	ErrStopped = errors.New("ratelimit: stopped")
)
