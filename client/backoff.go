package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// defaultBase is several times the latency of quotasvc. An earlier retry would find the same queue.
	defaultBase = 100 * time.Millisecond

	// defaultCap bounds the time until a caller notices that the service is back.
	defaultCap = 10 * time.Second
)

// Backoff computes the wait before a retry. The zero value is ready to use.
type Backoff struct {
	// Base is the maximum of the first wait. The maximum doubles with each retry. 0 means 100 ms.
	Base time.Duration

	// Cap is the maximum of the random part of every wait, which is added to the service's Retry-After. 0 means 10 s.
	Cap time.Duration

	// Random returns a number in [0, n). It must be safe for concurrent use. nil means rand.Int64N.
	Random func(n int64) int64
}

// Wait returns the wait before a retry. The first retry has number 1. after is the service's Retry-After, or 0 if
// there is none.
//
// The wait is after plus a random time from 0 to a bound ("full jitter"). The bound doubles with each retry, up to Cap. So no
// caller retries too early, and callers with the same Retry-After retry at different times.
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

// RetryAfter returns the wait that a response's Retry-After header demands. The header has seconds or a date. It
// returns 0 if the header is missing or invalid.
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
