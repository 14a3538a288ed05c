package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// defaultBase is some times what quotasvc takes to answer: a first retry that comes sooner meets the same queue.
	defaultBase = 100 * time.Millisecond

	// defaultCap keeps callers that have waited long from noticing late that a service is back.
	defaultCap = 10 * time.Second
)

// Backoff says how long to wait before a retry. The zero value is good.
type Backoff struct {
	// Base bounds the first wait; each next one may be twice as long. 0 is 100 ms.
	Base time.Duration

	// Cap bounds every wait that nobody has asked for. 0 is 10 s.
	Cap time.Duration

	// Random returns a number from 0 to below n; nil is math/rand/v2's. It must be safe for concurrent use.
	Random func(n int64) int64
}

// Wait returns the wait before a retry, 1 being the first, when the service has asked for one of after; 0 = it has not.
//
// It is random from 0 to a bound that doubles with each retry, up to Cap ("full jitter"). What the service asked for comes
// before that: nobody returns early, and those that were all told the same return apart.
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

// RetryAfter returns what an answer's Retry-After header asks for, in seconds or as a date; 0 if there is none that can be
// understood.
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
