// Package claim stores short texts under names for a limited time. So an action happens only once, for example a
// charge under an idempotency key, or the refund of a charge.
//
// # Invariants
//
//  1. If several callers claim a name, only one of them is the first, until the name expires or is dropped. This is
//     true for all processes while Redis answers. While Redis is away or not configured, it is true only within a
//     process.
//  2. Memory is bounded. Names in Redis expire after the time that callers give. A process has at most localMax
//     names; if it needs room, it forgets some names early.
//
// # Clock
//
// Names in Redis expire by Redis's clock. Names in a process expire by the clock of that process.
//
// # Failure
//
// While Redis is away, names are stored in the process. A name that was claimed in Redis can then be claimed again in
// a process, and the other way round.
package claim
