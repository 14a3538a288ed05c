package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// defaultBase is several times the latency of quotasvc. A retry that comes much earlier would meet the same
	// overload.
	defaultBase = 100 * time.Millisecond

	// defaultCap bounds the random part of a wait. So a client notices within about 10 s that the service is back.
	defaultCap = 10 * time.Second
)

// Backoff computes the wait before a retry. The zero value is ready to use.
type Backoff struct {
	// Base is the maximum of the random part of the first wait. The maximum doubles with each retry, up to Cap. 0
	// means 100 ms.
	Base time.Duration

	// Cap bounds the maximum of the random part. The random part is added to the service's Retry-After. 0 means 10 s.
	Cap time.Duration

	// Random returns a number in [0, n). It must be safe for concurrent use. nil means rand.Int64N.
	Random func(n int64) int64
}

// Wait returns the wait before a retry. The first retry has number 1. The argument `after` is the service's
// Retry-After, or 0 if the response has none.
//
// The wait is `after` plus a random time ("full jitter"). The maximum of the random time doubles with each retry, up
// to Cap. So no caller retries before the time of Retry-After has passed, and callers with the same Retry-After retry
// at different times.
func (b Backoff) Wait(retry int, after time.Duration) time.Duration {
	base, limit, random := b.Base, b.Cap, b.Random
	if base <= 0 {
		base = defaultBase
	}
	if limit <= 0 {
		limit = defaultCap
	}
	if random == nil {
		random = rand.Int64N
	}
	bound := min(base, limit)
	for range min(max(retry, 1)-1, 62) {
		if bound > limit/2 {
			bound = limit
			break
		}
		bound *= 2
	}
	jitter := time.Duration(random(int64(bound) + 1))
	return max(after, 0) + min(max(jitter, 0), bound)
}

// RetryAfter returns the wait that a response's Retry-After header demands. The header may have seconds or a date. If
// the header is missing or invalid, RetryAfter returns 0.
func RetryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
