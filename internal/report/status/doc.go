// Package status reports the state of the service. It reports the requests that an instance answers now, and the
// parts of the service that do not work. It also reports the tenants with the most refusals, and the results of the
// last jobs.
//
// # Terms
//
//   - answered, refused, failed: requests of this instance's API by their status. 402, 403 and 429 are refusals, 500
//     and above are failures.
//   - fault: a part of the service that does not work correctly, with the reason.
//   - records: data that all instances have written to PostgreSQL: refusals of the last hour, the last verification,
//     roll, seal and archived month.
//
// # Invariants
//
//  1. Read always returns an answer, even if PostgreSQL or Redis is down. If some data cannot be read, it is missing,
//     and a fault names the reason.
//  2. Requests do no additional work for this package: it reads the counters of the metrics every few seconds.
//  3. An instance reads the records at most once per recordsFor, for any number of callers. The reads take at most
//     one part in restShare of the time.
//
// # Clock
//
// Refusals have times of the ledger's clock, which a test clock moves. Requests have times of the process's clock.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Board has one goroutine, from Start to Stop.
//
// # Failure
//
// Read returns no error. If the records cannot be read, the next caller tries again.
package status
