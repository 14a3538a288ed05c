// Package webhooks tells events to receivers over HTTP, signed as Standard Webhooks has it.
//
// # Terms
//
//   - webhook: a URL that is told events of some types, of one tenant or of all.
//   - delivery: one event for one webhook. It is pending until the receiver has accepted it, or it is dead.
//   - attempt: one call of the receiver. It succeeds with a status of 200 to 299.
//
// # Invariants
//
//  1. A delivery is inserted in the transaction that lists its event, with the job that carries it out. It is attempted at least once.
//  2. Each webhook has a queue of its own, with few workers on each instance: a receiver that is slow, never answers or answers too much delays no other
//     one.
//  3. Every call has a deadline. Redirects are not followed, and of an answer only its beginning is read.
//  4. A call goes to a public address, which is checked when the connection is made: a name that resolves to another address later is refused as well.
//  5. webhook-id is the id of the event, on every attempt and every replay.
//  6. A process that dies amid a call leaves a job that another one, or the next one, takes within a minute.
//
// # Clock
//
// PostgreSQL's decides when a delivery is due and when it is dead. The instance's is in signatures.
//
// # Concurrency
//
// All methods may be called from any goroutine. Any number of instances share the queues.
//
// # Failure
//
// Errors of the store are those of package catalog. A delivery whose outcome could not be stored is tried again: receivers see an event twice, and
// know it by its id.
package webhooks
