// Package status reports the state of the service: the requests that an instance answers now, the parts that do not
// work, the tenants with the most refusals, and the results of the last jobs.
//
// # Terms
//
//   - answered, refused, failed: requests of this instance's API by their status. 402, 403 and 429 are refusals, 500 and above are failures.
//   - fault: a part that does not work correctly, with the reason.
//   - records: data that all instances have written to PostgreSQL: refusals of the last hour, the last verification,
//     roll, seal and archived month.
//
// # Invariants
//
//  1. Read always returns an answer, even if other systems are down. If some data cannot be read, it is missing, and
//     a fault names the reason.
//  2. No request is measured for this package: it reads the counters of the metrics every few seconds.
//  3. An instance reads the records at most every recordsFor, for any number of callers. The reads take at most one
//     part in restShare of the time.
//
// # Clock
//
// Refusals have the ledger's clock, which a test clock moves. Requests have the process's clock.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Board has one goroutine, from Start to Stop.
//
// # Failure
//
// Read has no error. If the records cannot be read, the next caller tries again.
package status
