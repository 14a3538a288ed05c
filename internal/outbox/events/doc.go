// Package events is the list of what happened that somebody wants to know: a threshold that was crossed, a grant that ends, a tenant that was
// suspended.
//
// # Terms
//
//   - event: one thing that happened, with its type, its instant, its tenant, and data of its type.
//   - position: an event's place in the list. Its id is made of it.
//   - mark: that something was told of a period, and is not told again.
//   - reminder: a grant's end that is announced ahead.
//
// # Invariants
//
//  1. An event is inserted by the transaction of what it tells. There is no threshold crossed without its event, and no event of what was rolled back.
//  2. Positions are given after the commit, by one instance at a time, and grow. Whoever has read up to a position misses nothing by going on from
//     there. An event without a position is in no list and in no delivery yet.
//  3. A threshold is told once in a period. The lock on the balance keeps two transactions from telling it both.
//  4. Events are never changed, but for their position. Whole months are dropped once their newest event is 90 days old.
//
// # Clock
//
// An event's instant is that of what it tells. Positions are microseconds of PostgreSQL's clock, made to grow. What comes due is looked for at the
// instant that the caller names.
//
// # Concurrency
//
// All functions may be called from any goroutine, and by any number of instances. A Teller has two goroutines, from Start to Stop: one gives
// positions, the other looks for what comes due on tenants that nobody uses.
//
// # Failure
//
// Errors of the driver are returned wrapped. A change whose event cannot be inserted fails with it.
package events
