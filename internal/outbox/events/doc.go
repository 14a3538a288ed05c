// Package events keeps the list of events that users want to know about, for example: a threshold was crossed, a
// grant will end, a tenant was suspended.
//
// # Terms
//
//   - event: a fact with its type, its instant, its tenant, and data that depends on the type.
//   - position: the number of an event in the list. Its id contains it.
//   - mark: a row that records that an event was emitted in a period, so that it is not emitted twice.
//   - reminder: a row with the time at which the end of a grant must be announced.
//
// # Invariants
//
//  1. An event is inserted by the transaction that causes it. A threshold is never crossed without its event, and a transaction that is
//     rolled back leaves no event.
//  2. Positions are assigned after the commit, by one instance at a time, and they grow. A reader that has read up to
//     a position can continue there and misses no event. An event without a position is not yet in the list and not
//     yet delivered.
//  3. The event of a threshold is emitted once per period. The lock on the balance prevents two transactions from
//     emitting it.
//  4. An event never changes, except that it gets its position. The events of a month are dropped when all of them
//     are 90 days old.
//
// # Clock
//
// The instant of an event is the instant of its cause. Positions are microseconds of PostgreSQL's clock, adjusted so
// that they always grow. The caller passes the current instant that decides which reminders and events are due.
//
// # Concurrency
//
// All functions may be called from any goroutine, and by any number of instances. A Dispatcher has two goroutines,
// from Start to Stop: one assigns positions, the other emits events that come due on idle tenants.
//
// # Failure
//
// Errors of the driver are returned wrapped. If an event cannot be inserted, the transaction that causes it fails.
package events
