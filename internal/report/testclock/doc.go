// Package testclock moves the ledger's time forward. So a developer can see the end of a month, a trial or a grant
// within a minute. Only `quotasvc dev` uses it.
//
// # Terms
//
//   - ahead: the time by which the ledger's clock is ahead of the real clocks. It is stored in the table test_clock.
//     Install creates this table in the database of `quotasvc dev`, and no migration creates it. ahead is below 0
//     only in a new database, until its demo data has reached the present (package demo).
//
// # Invariants
//
//  1. The time only moves forward: by at least Least in a step, and by at most Most in total. Closed periods stay
//     closed.
//  2. ahead is stored before it takes effect. A process that starts on the database reads it, so no balance gets an
//     instant before its newest entry.
//  3. The transaction that stores ahead also writes a line of the audit log.
//
// # What moves, and what does not
//
// All times that come from clock.Clock move: periods, grants, holds, terms, the retention of idempotency keys, copies
// of balances, blocks, months of the journal. These use the real time: rate limits, leases and bans (Redis), API
// keys, overrides of limits, the audit log, seals and archives.
//
// # Concurrency and failure
//
// Only one process at a time uses a database of `quotasvc dev`. It moves the time for one request at a time. If a
// request fails before its commit, it has not moved the time. If the outcome of the commit is unknown, the next start
// may move the time.
package testclock
