// Package drill breaks a running service on purpose and proves that no confirmed operation was lost.
//
// # Terms
//
// A fault is one thing that goes wrong: a SIGKILL or a SIGSTOP of an instance, of PostgreSQL or of Redis, a failover, a
// rolling restart. A schedule is a list of faults, which follows from a seed. A client makes operations one after
// another and records each: its request, the number of attempts, and the last answer. An operation is open until it
// gets a final answer.
//
// The pair is a primary PostgreSQL and its synchronous standby. A failover kills the primary, promotes the standby, and
// creates a new standby in the old primary's place, from a base backup. All instances have both addresses in their URL.
//
// # Invariants that a run checks
//
//  1. An operation that was acknowledged is in the journal, once, with its amount.
//  2. An operation is not in the journal if every attempt was refused.
//  3. Every operation in the journal is in a client's memory.
//  4. All answers to one key are the same, and no answer is an error that no fault explains.
//  5. No balance is ever below zero.
//  6. An open operation becomes final when it is sent again with its key after the faults.
//  7. `quotasvc verify` is clean: at the end, and in a cluster restored to an instant. Operations acknowledged before
//     that instant are in the restored cluster, and operations sent after it are not.
//
// # Clock, concurrency, failure
//
// One goroutine injects one fault after another, while the clients run. Clients, servers and instances share this
// machine's clock, so instants can be compared. A failed step of the drill, such as a server that does not restart,
// ends the run with an error. A violated invariant does not end the run; the verdict reports it.
package drill
