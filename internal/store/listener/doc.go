// Package listener receives the notifications of a channel of PostgreSQL on a connection of its own.
//
// # Invariants
//
// A lost notification never goes unnoticed. If the connection is lost, Listening is false until there is a new one.
// Then Back is called, because notifications in between are lost. A connection that has died silently is noticed after
// two heartbeats.
//
// # Clock, concurrency, failure
//
// Run is for one goroutine; Listening may be called from any. Connecting is bounded by 5 s. Pauses between attempts
// double from 50 ms to 2 s, with jitter, so that after an outage the instances do not all return at the same moment.
package listener
