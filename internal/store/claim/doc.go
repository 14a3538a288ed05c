// Package claim stores short texts under names for a time, so that an action happens only once: a charge under an
// idempotency key, or the refund of a charge.
//
// # Invariants
//
//  1. Of all callers that claim a name while it is stored, one is the first. This holds across processes while Redis
//     answers, and within a process while Redis is away or not configured.
//  2. Memory is bounded: in Redis by the times that callers give, in the process by localMax names. A full process
//     forgets some names early.
//
// # Clock
//
// Names expire by Redis's clock, or by the process's own.
//
// # Failure
//
// While Redis is away names are stored in the process. Names in Redis and names in the process do not know each other.
package claim
