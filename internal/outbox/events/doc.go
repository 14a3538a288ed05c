// Package events is the list of what happened that users want to know: a threshold that was crossed, a grant that ends, a tenant that
// was suspended.
//
// # Terms
//
//   - event: one thing that happened, with its type, its instant, its tenant, and data of its type.
//   - position: the number of an event in the list. Its id contains it.
//   - mark: a row which says that an event was emitted in a period, so that it is not emitted twice.
//   - reminder: a row which says when the end of a grant is to be announced.
//
// # Invariants
//
//  1. An event is inserted by the transaction that causes it. A threshold is never crossed without its event, and a transaction that is
//     rolled back leaves no event.
//  2. Positions are given after the commit, by one instance at a time, and they grow. A reader who has read up to a position can continue
//     from there and misses nothing. An event without a position is in no list and in no delivery yet.
//  3. The event of a threshold is emitted once per period. The lock on the balance prevents that two transactions emit it.
//  4. An event never changes, except that it gets its position. A month's events are dropped once the newest of them is 90 days old.
//
// # Clock
//
// The instant of an event is that of its cause. Positions are microseconds of PostgreSQL's clock, adjusted so that they always grow. The
// caller names the instant at which things are due.
//
// # Concurrency
//
// All functions may be called from any goroutine, and by any number of instances. A Dispatcher has two goroutines, from Start to Stop: one
// gives positions, the other emits what comes due on idle tenants.
//
// # Failure
//
// Errors of the driver are returned wrapped. If an event cannot be inserted, the transaction that causes it fails.
package events
