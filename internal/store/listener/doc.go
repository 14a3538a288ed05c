// Package listener receives the notifications of a PostgreSQL channel on a separate connection.
//
// # Invariants
//
// A lost notification never goes unnoticed. After the connection is lost, Listening returns false until there is a
// new connection. Then Back is called, because notifications may have been lost meanwhile. If the connection dies
// silently, the listener notices it within two heartbeats.
//
// # Clock, concurrency, failure
//
// Run is for one goroutine. Listening may be called from any goroutine. An attempt to connect takes at most 5 s. The
// pauses between attempts double from 50 ms to 2 s. They are random, so that the instances do not all reconnect at
// the same moment after an outage.
package listener
