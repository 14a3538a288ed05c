package ratelimit

import "errors"

var (
	// ErrUnavailable means that no decision can be made: Redis is away and a matched rule is closed, or a refund did
	// not arrive. Nothing was charged locally. Whether Redis was charged may be unknown.
	ErrUnavailable = errors.New("ratelimit: backend unavailable")

	// ErrStopped means that the limiter was stopped before the request was sent. Nothing was charged.
	ErrStopped = errors.New("ratelimit: stopped")
)
