// Package events keeps the list of events. Events are facts that users want to know, for example: a threshold was
// reached, a grant will end, a tenant was suspended.
//
// # Terms
//
//   - event: a fact with its type, its time, its tenant, and data that depend on the type.
//   - position: the number of an event in the list. The id of the event contains it.
//   - mark: a row which records that an event was emitted in a period, so that it is not emitted a second time.
//     Without its mark, the event is armed.
//   - reminder: a row with the time at which an event must announce the end of a grant.
//
// # Invariants
//
//  1. An event is inserted by the transaction that causes it. So no threshold is crossed without its event, and a
//     transaction that is rolled back leaves no event.
//  2. Positions are assigned after the commit, by one instance at a time. Later positions are higher. A reader that
//     has read up to a position can continue there and misses no event. As long as an event has no position, it is
//     neither listed nor delivered. Events of the same instant keep the order in which they were inserted.
//  3. The event of a threshold is emitted once per period, and again after it was armed. The lock on the balance
//     prevents two transactions from emitting the same event.
//  4. An event does not change after it was inserted, except that it gets its position. The events of a month are
//     dropped when all of them are at least 90 days old.
//
// # Clock
//
// The time of an event is the time of its cause. A position is the time of PostgreSQL's clock in microseconds,
// increased if necessary so that positions always grow. The caller passes the current time, which decides which
// reminders are due.
//
// # Concurrency
//
// All functions may be called from any goroutine and on any number of instances. A Dispatcher has two goroutines from
// Start to Stop. One assigns positions. The other emits due events of idle tenants.
//
// # Failure
//
// Errors of the driver are returned wrapped. If an event cannot be inserted, the transaction that causes it fails.
package events
