// Package drill breaks a running service on purpose and proves that nothing which a client was told was lost.
//
// # Terms
//
// A fault is one thing that goes wrong: a SIGKILL or a SIGSTOP of an instance, of PostgreSQL or of Redis, a failover, a rolling
// restart. A schedule is a list of faults; a seed decides it. A client makes operations one after another and remembers each:
// what it asked, how often, and what the last answer was. An operation is open while no answer was final.
//
// The pair is a primary PostgreSQL and its synchronous standby. A failover kills the primary, promotes the standby, and makes a
// new standby of the old primary's place, from a base backup. All instances have both addresses in their URL.
//
// # Invariants that a run checks
//
//  1. An operation that was acknowledged is in the journal, once, with its amount.
//  2. An operation of which every attempt was refused is not in the journal.
//  3. Every operation in the journal is one that a client remembers.
//  4. All answers to one key are the same, and no answer is an error that no fault explains.
//  5. No balance is ever below zero.
//  6. An open operation becomes final when it is sent again with its key after the faults.
//  7. `quotasvc verify` is clean: at the end, and in a cluster restored to an instant. What was acknowledged before that instant is in
//     the restored cluster, and what was sent after it is not.
//
// # Clock, concurrency, failure
//
// One goroutine injects one fault after another; the clients run beside it. Clients, servers and instances share this machine's
// clock, so instants can be compared. A step of the drill that cannot be carried out, such as a server that does not start
// again, ends the run with an error. A violated invariant does not: the run goes on, and the verdict says so.
package drill
