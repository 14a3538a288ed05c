// Package pgstore reads and writes PostgreSQL for packages whose changes are rare: the catalogue, keys, links,
// webhooks. (The ledger has its own package: ledger/pg.)
//
// # Terms
//
//   - write: one transaction that changes data. view: a transaction that only reads, from one snapshot of the
//     database.
//   - announcement: the text kind:id, which names an object that was changed. Every instance receives it on the
//     channel quotasvc_catalog.
//   - room: a purpose of work, with its own connections: see Room.
//
// # Invariants
//
//  1. A write is stored completely or not at all. The function that makes the changes may run more than once: if
//     another transaction conflicts, or if the connection fails before the commit is sent.
//  2. An announcement is sent by the transaction of its change, so instances receive it if and only if the change is
//     committed.
//  3. Work of one room never waits for work of another. One caller uses at most half of a room at a time, however
//     many requests it sends. A store without rooms has one pool, of which writers use at most half.
//
// # Clock
//
// Transaction.Now returns PostgreSQL's time. If PostgreSQL's clock and the process's clock disagree, it returns the
// time of the earlier clock (package clock). So no change is stamped with a time that is still in the future.
//
// # Concurrency and failure
//
// All methods of Store may be called from any goroutine. Errors are *errcode.Error. errcode.Unavailable means that
// PostgreSQL did not answer in time, and that the caller may send the same request again. While PostgreSQL is known
// to be away, no statement is sent.
package pgstore
