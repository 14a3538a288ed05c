// Package backoff waits between attempts. Each pause is longer than the pause before, up to a maximum.
//
// # Terms
//
// Sleep waits for a given time. A Backoff waits for a random time between half of the current pause and the whole
// pause. So callers that failed at the same time do not retry at the same time. Every repeats work at a fixed interval.
//
// # Clock
//
// The package uses the clock of the process.
//
// # Concurrency
//
// A Backoff is for one goroutine.
package backoff
