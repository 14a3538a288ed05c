// Package testclock moves the ledger's time forward, so that the end of a month, of a trial or of a grant can be seen
// within a minute. Only `quotasvc dev` uses it.
//
// # Terms
//
//   - ahead: the time by which the ledger is ahead of the clocks. It is stored in the table test_clock. Install
//     creates this table in the database of dev, and no migration creates it elsewhere. ahead is below 0 only in a
//     new database, until its demo has reached the present (package demo).
//
// # Invariants
//
//  1. The time only moves forward: by at least Least in a step, and by at most Most in all. Closed periods stay
//     closed.
//  2. ahead is stored before it takes effect. A process that starts on the database reads it, so no balance gets an
//     instant before its newest entry.
//  3. The line of the audit log is written in the transaction that stores it.
//
// # What moves, and what does not
//
// Everything that uses clock.Clock moves: periods, grants, holds, terms, the memory of idempotency keys, copies of
// balances, blocks, months of the journal. These stay on real time: rate limits, leases and bans (Redis), keys of
// callers, overrides of limits, the audit log, seals and archives.
//
// # Concurrency and failure
//
// Only one process at a time uses a database of dev. It moves the time for one request at a time. A request that
// fails before the commit has not moved the time. If the outcome of the commit is unknown, the time may have moved at
// the next start.
package testclock
