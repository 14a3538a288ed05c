// Package listener follows the notifications of a channel of PostgreSQL on a connection of its own.
//
// # Invariants
//
// Nothing that was notified is missed unnoticed: if the connection is lost, Listening is false until there is a new one, and Back is called
// then, because what was notified in the meantime is lost. A connection that has died silently is noticed after two heartbeats.
//
// # Clock, concurrency, failure
//
// Run is for one goroutine; Listening may be asked by any. Connecting is bounded by 5 s. Pauses between attempts double from 50 ms to 2 s, with
// jitter: after an outage the instances do not all return at the same moment.
package listener
