// Package backoff waits between attempts, longer and longer.
//
// # Terms
//
// Sleep waits for a given time. A pause is a random time between half of its length and all of it, so that many who failed together do not return together.
//
// # Clock
//
// The process's.
//
// # Concurrency
//
// A Backoff is for one goroutine.
package backoff
