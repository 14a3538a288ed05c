// Package denial stores refusals, so that somebody can explain tomorrow why a request was refused today. It stores
// the number of refusals in each minute, and the latest refusals of each tenant with explanations.
//
// # Terms
//
//   - denial: one refused debit, consume, hold, capture, charge or authorize. These are not denials: a check, a dry
//     run, a fault of the request (400), and a failure of the service (503).
//   - count: the number of denials of a tenant with the same code, meter and rule in one minute.
//   - shadow: the decision of a limit in shadow mode about a request that was granted or refused. It is not a denial
//     and is never listed as one. It is counted if the limit would have denied the request, or if another limit
//     denied the request and this one would have let it pass. Counts are by limit, tenant, minute and outcome of the
//     request.
//   - explanation: one denial with the data of its request. The latest Kept explanations of a tenant are kept.
//   - flush: writes the denials since the previous flush to PostgreSQL. A transaction has up to chunkTenants tenants.
//
// # Invariants
//
//  1. Note and NoteShadow do not wait, and write only to memory. In a flood of refusals, PostgreSQL gets one
//     transaction per flush, not one per request.
//  2. Memory and rows are bounded for any requests of clients. Denials without room are counted under Other, or in
//     quotasvc_denials_lost_total.
//  3. Only tenants that exist have rows. A tenant has at most Kept explanations. Their length is bounded.
//  4. A count is never too high. If the outcome of a flush is unknown, its denials are not written again. They are
//     counted as lost.
//  5. If a limit refuses Config.RejectionsHigh requests of a tenant in a minute, on all instances together, the
//     transaction that counts them emits events.RejectionsHigh, once for each tenant, limit and hour. If the event
//     cannot be written, the denials are still counted.
//  6. Shadows have their own memory and transactions, so they never cause the loss of denials. Shadows without room
//     are counted in quotasvc_shadow_counts_lost_total.
//  7. Denials have no effect on decisions, balances and proofs.
//
// # Clock
//
// The time is the ledger's, as the caller reads it, so denials move with the test clock. A week has seven days and
// starts on a Monday at 00:00 UTC. Each week has a partition.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Recorder has one goroutine, which Stop ends. All instances add to the
// same counts.
//
// # Failure
//
// While PostgreSQL is down, denials stay in memory as long as there is room. A process that is killed loses the
// denials since the last flush. That is about a second. It is more only if more than chunkTenants tenants a second
// are refused. Stop flushes.
package denial
