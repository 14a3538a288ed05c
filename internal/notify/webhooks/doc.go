// Package webhooks delivers events to receivers over HTTP, with the signatures of Standard Webhooks.
//
// # Terms
//
//   - webhook: a URL that receives events of some types, either of one tenant or of all tenants.
//   - delivery: one event for one webhook. Its state is pending until the receiver accepts it, or until it is dead or
//     skipped.
//   - attempt: one call of the receiver. It succeeds if the status of the answer is from 200 to 299.
//
// # Invariants
//
//  1. A delivery and its job are inserted in the transaction that lists the event. Each delivery is attempted at
//     least once, unless it is skipped.
//  2. Each webhook has its own queue, with a few workers on each instance. So a receiver that is slow, never answers
//     or sends a huge answer delays no other receiver.
//  3. Every call has a deadline. Redirects are not followed. Only the beginning of an answer is read.
//  4. A call goes only to a public address. The address is checked when the connection is opened. So a call to a
//     private address is refused, even if the name had a public address before.
//  5. The header webhook-id is the id of the event, in every attempt and every replay.
//  6. If a process dies during a call, another process takes its job within a minute.
//
// # Clock
//
// PostgreSQL's clock decides when a delivery is due and when it is dead. A signature contains the time of the
// instance's clock.
//
// # Concurrency
//
// All methods may be called from any goroutine. Any number of instances share the queues.
//
// # Failure
//
// The store returns errors of package pgstore. If the outcome of an attempt cannot be stored, the delivery is
// attempted again. Then the receiver gets the event twice and can recognize it by its id.
package webhooks
