// Package catalog knows what can be counted, what plans grant, who the tenants are and which rate limits apply. It stores
// these facts in PostgreSQL, and gives every instance a copy of them in memory that is less than a second old.
//
// # Terms
//
//   - meter: what is counted, in its smallest unit.
//   - plan: a named set of allowances (and of limits for its tenants). Each change makes a version; versions are immutable
//     and never deleted, because open periods keep the version they were opened with.
//   - tenant: the billed party, on one plan, with an anchor instant and a zone for its periods.
//   - override: an amount of one meter that a tenant gets per period instead of its plan's.
//   - terms: plan, anchor, zone and overrides of a tenant since an instant. Their history is what the ledger reads: a period that is
//     opened late is opened under the terms that were in force when it was due.
//   - limit: a rate limit. This package stores it; what its rate means is the limiter's business. A limit may replace another
//     one where both apply.
//   - pattern: a route with wildcards, and its precedence among others.
//   - block: a tenant, subject or addresses that are refused, or exempt from limits, until an instant (package block).
//   - snapshot: all meters, newest plans and limits at one moment, immutable. What did not change is the same object in the next one.
//
// # Invariants
//
//  1. Every exported method that writes is one transaction: done or not done. Writing what is stored already changes nothing,
//     makes no version and no history, and tells nobody.
//  2. A plan's versions are 1, 2, 3, ... with strictly rising created_at; so are a tenant's, one per change; its terms have
//     strictly rising effective_at.
//  3. What a plan or limit refers to exists: meters in use and limits that are replaced cannot be deleted. No limit replaces
//     itself, not even by way of others.
//  4. A change is announced on the channel quotasvc_catalog in its own transaction, so it is heard by every instance if and
//     only if it is committed.
//  5. A reload compares sums of groups of rows, over the transactions that wrote them, and reads the groups that differ. So it sees changes
//     by hand, and an unchanged catalogue costs a few milliseconds of PostgreSQL and makes no new snapshot. The rules of a snapshot are
//     compiled before it is published, with it.
//  6. A cached tenant is dropped by the announcement of its change. A row that was read before an announcement is not cached
//     after it.
//
// # Clock
//
// Some instants decide something: since when terms, a plan's version or a tenant hold, and whether a block is over. They are those on which
// PostgreSQL's clock and the process's agree (package clock), read inside the transaction after its locks. If the two disagree, they are those of
// the earlier clock: a change that is made meanwhile holds at once. updated_at, and created_at of meters and limits, are PostgreSQL's
// clock_timestamp(). They decide nothing. The process's clock alone measures the age of cached rows, and says when a block in memory is over.
//
// # Concurrency
//
// All methods may be called from any goroutine. Writers of meters, plans, limits and files take one advisory lock, so they
// run one after another and cannot deadlock. Writers of a tenant lock its row; a file locks its tenants in order of their
// ids. A Catalog has four goroutines from Start to Stop: the listener, a reloader of the snapshot, one of the blocks, and the
// lane that reads tenants.
//
// # Failure
//
// Errors are *errcode.Error with a Code. errcode.Unavailable says that PostgreSQL did not answer in time; sending the same write again
// is always safe. While PostgreSQL is away the snapshot and cached tenants stay in use as they are. While only the
// announcements are away, the snapshot is reloaded periodically and a cached tenant is good for a second.
package catalog
