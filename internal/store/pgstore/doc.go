// Package pgstore is how PostgreSQL is asked by packages whose changes are rare: the catalogue, keys, links, webhooks.
// (The ledger asks by itself: ledger/pg.)
//
// # Terms
//
//   - write: one transaction that changes something. view: one that only reads, with one view of the database.
//   - announcement: kind:id of an object that was changed. Every instance hears it on the channel quotasvc_catalog.
//
// # Invariants
//
//  1. A write is done or not done. It may run more than once before that: if another transaction conflicts, or if the
//     connection fails before the commit is sent.
//  2. An announcement is sent by the transaction of its change, so it is heard if and only if that is committed.
//  3. Writers take at most half of the pool, so that readers, on which requests wait, find a connection.
//
// # Clock
//
// Transaction.Now returns the instant on which PostgreSQL's clock and the process's agree (package clock). If the two
// disagree, it is that of the earlier clock: a change that is made meanwhile holds at once.
//
// # Concurrency and failure
//
// All methods of Store may be called from any goroutine. Errors are *errcode.Error: errcode.Unavailable says that
// PostgreSQL did not answer in time, and that the same call may be sent again. While PostgreSQL is known to be away
// nothing is tried.
package pgstore
