// Package claim remembers short texts under names for a time, so that what must happen once happens once: a charge under an idempotency key,
// the refund of a charge.
//
// # Invariants
//
//  1. Of all callers that claim a name while it is remembered, one is the first. This holds across processes while Redis answers, and within
//     a process while Redis is away or not configured.
//  2. Memory is bounded: in Redis by the times that callers give, in the process by localMax names. A full process forgets some names early.
//
// # Clock
//
// Names end by Redis's clock, or by the process's own.
//
// # Failure
//
// While Redis is away names are remembered in the process. What one side remembers, the other does not know.
package claim
