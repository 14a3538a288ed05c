// Package denial stores refusals, so that somebody can explain tomorrow why a request was refused today. It stores
// the number of refusals in each minute, and the latest refusals of each tenant with explanations.
//
// # Terms
//
//   - denial: one refused debit, consume, hold, capture, charge or authorize. These are not denials: a check, a dry
//     run, a fault of the request (400), and a failure of the service (503).
//   - count: the number of denials of a tenant with the same code, meter and rule in one minute.
//   - shadow: the decision of a limit in shadow mode about a request that was granted or refused. It is not a denial
//     and is never listed as a denial. It is counted if the limit would have denied the request. It is also counted
//     if another limit denied the request and this limit would have let the request pass. Counts are by limit,
//     tenant, minute and outcome of the request.
//   - explanation: one denial with the data of its request. The latest Kept explanations of a tenant are kept.
//   - flush: writes the denials since the previous flush to PostgreSQL. A transaction has up to chunkTenants tenants.
//
// # Invariants
//
//  1. Note and NoteShadow do not wait, and write only to memory. In a flood of refusals, PostgreSQL gets one
//     transaction per flush, not one per request.
//  2. Clients cannot make memory or rows grow without bound. Denials for which there is no room are counted under
//     Other, or in quotasvc_denials_lost_total.
//  3. Only tenants that exist have rows. A tenant has at most Kept explanations. Their length is bounded.
//  4. A count is never too high. If the outcome of a flush is unknown, its denials are not written again. They are
//     counted as lost.
//  5. A limit may refuse Config.RejectionsHigh requests of a tenant in a minute, on all instances together. Then the
//     transaction that counts them emits events.RejectionsHigh, once for each tenant, limit and hour. If the event
//     cannot be written, the denials are still counted.
//  6. Shadows have separate memory and separate transactions, so they never cause the loss of denials. Shadows for
//     which there is no room are counted in quotasvc_shadow_counts_lost_total.
//  7. Denials have no effect on decisions, balances, seals and verifications.
//
// # Clock
//
// The caller passes the time of a denial, which is the time of the ledger's clock. So the test clock also moves
// denials. A week has seven days and starts on a Monday at 00:00 UTC. Each week has a partition.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Recorder has one goroutine, which Stop ends. All instances add to the
// same counts.
//
// # Failure
//
// While PostgreSQL is down, denials stay in memory as long as there is room. If a process is killed, it loses the
// denials since the last flush, usually the denials of about a second. It may lose more if more than chunkTenants
// tenants a second are refused. Stop flushes.
package denial
