// Package tenantlist lists tenants by what they are and where they stand: of a plan, suspended, with some metadata, near the end of what they have.
//
// # Terms
//
//   - standing: a tenant's own balance of a meter: used, net of refunds, and remaining, top-ups included. percent is used of (used + remaining), rounded down.
//   - near: a standing of at least so many percent. A balance of which nothing is used and nothing remains is not near.
//   - candidate: a balance that is near by its stored row, or that has something due. What is listed was computed from the ledger's view of it.
//   - step: the rows that one statement reads at most. A page reads steps until it is full or its time is over; then it is short, and has a cursor.
//
// # Invariants
//
//  1. Nothing is stored for these lists and no index follows what is used: a debit costs what it did.
//  2. A list by tenant has each tenant once that is listed all the time, whatever changes meanwhile: its cursor is an id. A list by remaining units is of its
//     time: a tenant whose units change between two pages may be missing or come twice.
//  3. A balance whose period has ended is not near, although nobody has rolled it: its next period has begun, and nothing of it is used.
//  4. A list by remaining units reads all balances for each page, or those of the tenants that match if they are few. It sorts and looks up a bounded number
//     of them. What is examined has a cursor, also if nothing of it matches.
//
// # Clock
//
// The ledger's.
//
// # Concurrency
//
// A Reader is safe for concurrent use. Lists are reports: a few run at once, each within the time limit of reports (package history).
//
// # Failure
//
// Errors are *errcode.Error of reports, or *errcode.Error. Terms that apply at once are in a balance when it is used or rolled next: until then a tenant that
// such a change has brought near is not found. One that it has taken away from the end is not listed.
package tenantlist
