// Package claim stores short texts under names for a time, so that an action happens only once: a charge under an
// idempotency key, or the refund of a charge.
//
// # Invariants
//
//  1. Only one of the callers that claim a name is the first, until the name expires or is dropped. This holds across
//     processes while Redis answers, and within a process while Redis is away or not configured.
//  2. Memory is bounded: in Redis by the lifetimes that callers give, in the process by localMax names. If the
//     process has localMax names, it forgets some of them early.
//
// # Clock
//
// Names in Redis expire by Redis's clock, names in the process by the process's clock.
//
// # Failure
//
// While Redis is away, names are stored in the process. A name that is stored in one of these places can be claimed
// again in the other.
package claim
