package client

import (
	"errors"
	"math"
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
	return later(max(after, 0), min(max(jitter, 0), bound))
}

// later returns the sum of two times that are not below 0, or the largest time if the sum is larger.
func later(at, wait time.Duration) time.Duration {
	if at > math.MaxInt64-wait {
		return math.MaxInt64
	}
	return at + wait
}

// RetryAfter returns the wait that a response's Retry-After header demands. The header may have seconds or a date. A
// wait that is longer than the largest Duration (292 years) is the largest Duration. If the header is missing or
// invalid, RetryAfter returns 0.
func RetryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err == nil && seconds <= math.MaxInt64/uint64(time.Second) {
		return time.Duration(seconds) * time.Second
	}
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return math.MaxInt64
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
