// Package status says how the service is: what an instance answers now, what does not work and why, who is refused most, and what the last jobs found.
//
// # Terms
//
//   - answered, refused, failed: requests of this instance's API by their status. 402, 403 and 429 are refusals, 500 and above are failures.
//   - fault: a part that does not work as it should, with the reason.
//   - records: what all instances have written to PostgreSQL: refusals of the last hour, the last verification, roll, seal and archived month.
//
// # Invariants
//
//  1. Read answers whatever is away. What cannot be read is missing, and a fault says why.
//  2. Nothing is measured for it in a request: the counters of the metrics are read every few seconds.
//  3. However many ask, an instance reads the records at most every recordsFor, and spends at most one part in restShare of its time on them.
//
// # Clock
//
// Refusals are of the ledger's clock, which a test clock moves; requests are of the process's.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Board has one goroutine, from Start to Stop.
//
// # Failure
//
// Read has no error. Records that cannot be read are asked for again by the next reader.
package status
