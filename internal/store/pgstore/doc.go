// Package pgstore reads and writes PostgreSQL for packages whose changes are rare: the catalogue, keys, links,
// webhooks. (The ledger has its own package: ledger/pg.)
//
// # Terms
//
//   - write: one transaction that changes something. view: a transaction that only reads, from one snapshot of the
//     database.
//   - announcement: kind:id of an object that was changed. Every instance receives it on the channel
//     quotasvc_catalog.
//
// # Invariants
//
//  1. A write is stored completely or not at all. Its function may run more than once: if another transaction
//     conflicts, or if the connection fails before the commit is sent.
//  2. An announcement is sent by the transaction of its change, so instances receive it if and only if the change is
//     committed.
//  3. Writers take at most half of the pool, so that readers, on which requests wait, find a connection.
//
// # Clock
//
// Transaction.Now returns the instant on which PostgreSQL's clock and the process's agree (package clock). If the
// clocks disagree, it returns the time of the earlier clock: a change that is made meanwhile holds at once.
//
// # Concurrency and failure
//
// All methods of Store may be called from any goroutine. Errors are *errcode.Error: errcode.Unavailable says that
// PostgreSQL did not answer in time, and that the same call may be sent again. While PostgreSQL is known to be away,
// no statement is sent.
package pgstore
