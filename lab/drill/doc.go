// Package drill breaks a running service on purpose and proves that no confirmed operation was lost.
//
// # Terms
//
// A fault is one disturbance: a SIGKILL or a SIGSTOP of an instance, of PostgreSQL or of Redis, a failover, a rolling
// restart, a flood of strangers, or a log that nobody reads. A schedule is a list of faults that is computed from a
// seed. A client makes operations one after another. It records the request, the number of attempts and the last
// answer of each operation. An operation is open until it gets a final answer.
//
// The pair is a primary PostgreSQL and its synchronous standby. A failover kills the primary, promotes the standby, and
// creates a new standby in the old primary's place, from a base backup. All instances have both addresses in their URL.
//
// An outage is a time in which Redis did not decide. Chargers are clients that charge limits and take leases, each from
// a bucket. The bound of a bucket is the most that it may admit over its limit by docs/degradation.md.
//
// # Invariants that a run checks
//
//  1. An operation that was acknowledged is in the journal, once, with its amount.
//  2. An operation is not in the journal if every attempt was refused.
//  3. Every operation in the journal is in the record of a client.
//  4. All answers to one key are the same, and no answer is an error that no fault explains.
//  5. No balance is ever below zero.
//  6. An open operation gets a final answer when it is sent again with its key after the faults.
//  7. `quotasvc verify` finds no difference, neither at the end nor in a cluster that was restored to an instant. The
//     restored cluster contains the operations that were acknowledged before that instant, and no operation that was
//     sent after it.
//  8. A bucket admits at most its limit and its bound.
//  9. No stranger is let in. An instance whose log stalls answers, and SIGTERM ends an instance in time with status 0.
//
// # Clock, concurrency, failure
//
// One goroutine injects one fault after another, while the clients run. Clients, servers and instances use the clock
// of one machine, so their instants can be compared. If a step of the drill fails, for example the restart of a
// server, the run ends with an error. A violated invariant does not end the run; the verdict reports it.
package drill
