// Package listener receives the notifications of a PostgreSQL channel on a separate connection.
//
// # Invariants
//
// A lost notification never goes unnoticed. If the connection is lost, Listening returns false until there is a new
// connection. Then Back is called, because the notifications in between are lost. A connection that has died silently
// is noticed after two heartbeats.
//
// # Clock, concurrency, failure
//
// Run is for one goroutine; Listening may be called from any. Connecting is bounded by 5 s. Pauses between attempts
// double from 50 ms to 2 s. They have jitter, so that not all instances reconnect at the same moment after an outage.
package listener
