// Package denial remembers refusals, so that somebody can say tomorrow why a request was refused today: how many there were in each minute, and the
// last ones of each tenant with their explanation.
//
// # Terms
//
//   - denial: one refused debit, consume, hold, capture, charge or authorize. A check is no denial, nor is a dry run, a fault of the request (400), or
//     a failure of the service (503).
//   - count: how many denials of a tenant had one code, meter and rule in one minute.
//   - shadow: what a limit in shadow mode says about a request that was granted or refused. It is no denial, and appears nowhere among them. It is counted by
//     limit, tenant, minute and what became of the request, if the limit would have denied the request, or would have let it pass instead of another limit.
//   - explanation: one denial with what was asked for. A tenant has its last Kept ones.
//   - flush: what was noted since the flush before goes to PostgreSQL, in one transaction for up to chunkTenants tenants.
//
// # Invariants
//
//  1. Note and NoteShadow wait for nothing and write to memory alone: a flood of refusals costs PostgreSQL one transaction per flush, not one per request.
//  2. Memory and rows are bounded, whatever clients send. What has no room is counted under Other, or in quotasvc_denials_lost_total.
//  3. Only tenants that exist have rows. A tenant has at most Kept explanations, of bounded length.
//  4. A count is never too high. After a flush with an unknown outcome what it had is given up, and counted as lost.
//  5. A limit that refuses Config.RejectionsHigh requests of a tenant in a minute, on all instances together, is told in the transaction that counts them
//     (events.RejectionsHigh): once for each tenant, limit and hour. What cannot be told is counted all the same.
//  6. Shadows have memory and transactions of their own: no denial is lost for them. What has no room is in quotasvc_shadow_counts_lost_total.
//  7. Nothing depends on denials: no decision, no balance, no proof.
//
// # Clock
//
// The ledger's, as the caller reads it: denials move with the test clock. A week is seven days from a Monday 00:00 UTC on; each has its partition.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Recorder has one goroutine, which Stop ends. Several instances add to the same counts.
//
// # Failure
//
// While PostgreSQL is away, denials stay in memory as far as they have room. A process that is killed loses what it has noted since the last flush:
// about a second, and more only while more than chunkTenants tenants a second are refused. Stop flushes.
package denial
