// Package backoff waits between attempts. Each pause is longer than the last.
//
// # Terms
//
// Sleep waits for a given time. A pause is a random time between half of its length and its whole length. So callers
// that failed at the same time do not retry at the same time.
//
// # Clock
//
// It uses the clock of the process.
//
// # Concurrency
//
// A Backoff is for one goroutine.
package backoff
