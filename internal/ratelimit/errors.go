package ratelimit

import "errors"

var (
	// ErrUnavailable says that no decision can be made: Redis is away and a matched rule is closed then, or a refund
	// could not be delivered. For a decision: nothing was charged locally; whether Redis was charged may be unknown.
	ErrUnavailable = errors.New("ratelimit: backend unavailable")

	// ErrStopped says that the limiter has been stopped. Nothing was charged.
	ErrStopped = errors.New("ratelimit: stopped")
)
