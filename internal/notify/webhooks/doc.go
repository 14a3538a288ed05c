// Package webhooks delivers events to receivers over HTTP, with the signatures of Standard Webhooks.
//
// # Terms
//
//   - webhook: a URL that receives events of some types, of one tenant or of all tenants.
//   - delivery: one event for one webhook. It is pending until the receiver accepts it, it is dead, or it is skipped.
//   - attempt: one call of the receiver. It succeeds with a status of 200 to 299.
//
// # Invariants
//
//  1. A delivery and its job are inserted in the transaction that lists the event. The delivery is attempted at least
//     once, unless it is skipped.
//  2. Each webhook has its own queue, with few workers on each instance. So a receiver that is slow, never answers or
//     answers too much delays no other receiver.
//  3. Every call has a deadline. Redirects are not followed, and only the beginning of an answer is read.
//  4. A call goes to a public address. The address is checked when the connection is opened, so a name that later
//     resolves to a private address is refused, too.
//  5. webhook-id is the id of the event, on every attempt and every replay.
//  6. If a process dies during a call, another process takes the job within a minute.
//
// # Clock
//
// PostgreSQL's clock decides when a delivery is due and when it is dead. Signatures contain the time of the
// instance's clock.
//
// # Concurrency
//
// All methods may be called from any goroutine. Any number of instances share the queues.
//
// # Failure
//
// Errors of the store are those of package pgstore. If the outcome of an attempt cannot be stored, the delivery is
// attempted again: the receiver gets the event twice and recognizes it by its id.
package webhooks
