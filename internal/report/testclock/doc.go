// Package testclock moves the ledger's time forward, so that the end of a month, of a trial or of a grant can be seen in a minute. Only
// `quotasvc dev` has it.
//
// # Terms
//
//   - ahead: how far the ledger's time is ahead of the clocks. It is stored in the table test_clock, which Install makes in the database of dev
//     and no migration makes anywhere else. It is below 0 only in a new database, until its demo has come to the present (package demo).
//
// # Invariants
//
//  1. The time only moves forward, by 1 s at least, and at most Most in all. What has closed stays closed.
//  2. Ahead is stored before it applies. A process that starts on the database reads it, so no balance sees an instant before its newest entry.
//  3. The line of the audit log is written in the transaction that stores it.
//
// # What moves, and what does not
//
// Everything that goes by clock.Clock moves: periods, grants, holds, terms, the memory of idempotency keys, copies of balances, blocks, months of the
// journal. Rate limits, leases and bans (Redis), keys of callers, overrides of limits, the audit log, seals and archives stay on real time.
//
// # Concurrency and failure
//
// One process at a time has a database of dev. Its requests take turns. A request that fails before the commit has moved nothing; one whose commit has
// an unknown outcome may have moved the time at the next start.
package testclock
