// Package catalog stores the meters, the plans, the tenants and the rate limits. It stores them in PostgreSQL, and
// gives every instance a copy in memory that is less than a second old.
//
// # Terms
//
//   - meter: what is counted, in its smallest unit.
//   - plan: a named set of allowances (and of limits for its tenants). Each change makes a version. Versions are
//     immutable and never deleted. A tenant has one of them: see ledger.Agreements.
//   - tenant: the billed party, on one plan, with an anchor instant and a zone for its periods.
//   - override: an amount of one meter that a tenant gets per period instead of the amount of its plan.
//   - terms: plan, anchor, zone and overrides of a tenant since an instant. The ledger reads the history of terms: if
//     it opens a period late, it uses the terms that were in force when the period was due.
//   - limit: a rate limit. This package stores it; the limiter defines what its rate means. A limit may replace
//     another limit for requests to which both apply.
//   - pattern: a route with wildcards. If several patterns match a route, they have an order of precedence.
//   - block: it refuses a tenant, a subject or addresses, or exempts them from limits, until an instant (package
//     block).
//   - object: a meter, plan, limit, tenant or block.
//   - snapshot: all meters, the versions of plans that are in force, and all limits at one moment. It is immutable. If
//     an object did not change, the next snapshot has the pointer to the same object.
//
// # Invariants
//
//  1. Every exported method that writes is one transaction. If an object is already stored as given, the write
//     changes nothing: it creates no version and no history, and announces nothing.
//  2. The versions of a plan are 1, 2, 3, ... with strictly rising created_at. From the second one on, created_at rises
//     over all plans. The versions of a tenant are 1, 2, 3,
//     ..., one for each change. The terms of a tenant have strictly rising effective_at.
//  3. The objects to which a plan or limit refers exist. So a meter in use cannot be deleted, nor a limit that
//     another limit replaces. No limit replaces itself, directly or through other limits.
//  4. The transaction that makes a change also announces the change, on the channel quotasvc_catalog. So every
//     instance receives the announcement if and only if the change is committed.
//  5. A reload compares checksums of groups of rows. It reads the limits of the groups that differ; if a checksum of
//     meters or plans differs, it reads all meters or all plans. A checksum covers the ids of the transactions that
//     wrote the rows, so a reload sees changes by hand. If the catalogue is unchanged, a reload costs PostgreSQL a
//     few milliseconds and makes no new snapshot. The rules of a snapshot are compiled before the snapshot is
//     published, and are a part of it.
//  6. The announcement of a tenant's change removes the tenant from the cache. If a row was read before the
//     announcement, it is not cached after the announcement.
//
// # Clock
//
// Some instants affect decisions: terms, versions of plans, and tenants are in force from an instant on, and blocks
// until an instant. While PostgreSQL's clock and the process's clock agree, the present instant is the time of
// PostgreSQL's clock. While they disagree, it is the time of the earlier clock, so that a change is in force at once
// (package clock). The clock is read inside the transaction, after its locks. The columns created_at and updated_at of
// meters and limits are times of PostgreSQL's clock alone, and affect no decision. The process's clock alone measures
// the age of cached rows and decides whether a block in memory has expired.
//
// # Concurrency
//
// All methods may be called from any goroutine. Writers of meters, plans, limits, blocks and files take one advisory
// lock, so they run one after another and cannot deadlock. Writers of a tenant lock its row; a file locks its tenants
// in order of their ids. A Catalog has four goroutines from Start to Stop: the listener, a reloader of the snapshot,
// a reloader of the blocks, and the lane that reads tenants.
//
// # Failure
//
// Errors are *errcode.Error with a Code. errcode.Unavailable means that PostgreSQL did not answer in time; the client
// can always safely send the same write again. While PostgreSQL is down, the snapshot and cached tenants stay in use
// as they are. While only notifications are not received, the snapshot is reloaded periodically and a cached tenant
// is used for at most a second.
package catalog
