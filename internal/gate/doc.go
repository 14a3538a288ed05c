// Package gate combines three decisions into one: the rate limits, the balance and the debit. It also defines the
// answers that callers get while PostgreSQL or Redis is down.
//
// # Terms
//
// A check reports what would be decided now and charges nothing. A consume charges the limits that apply, then
// debits. A debit skips the limits. The facts of a request are the data of its tenant in the catalogue (tenantFacts).
// A copy is a balance as of an instant (package balances). A rule is a compiled limit. A rule set has the rules for
// the tenants of one plan: the plan's own rules, and the general rules whose ids the plan does not use. A rule and
// the rules that it replaces, directly or through other rules, form a chain.
//
// # Which limits apply
//
// A rule applies to a request if its match (tenant, plan, route, method, meter of any item) fits and the request
// names every dimension in per. Of each chain one rule applies. Rules that another applicable rule replaces are
// dropped, and the most specific of the remaining rules applies. If more than ratelimit.MaxCharges rules apply, no
// rule is skipped: the request fails with TooManyLimits. A bucket belongs to one tenant if the rule's per has tenant
// or subject. Otherwise all tenants share it.
//
// Blocks come before limits. A block of the tenant, subject or address refuses the request. A block with action allow
// exempts the request from the limits. A feature that a request names is decided after the blocks and before the
// limits, from the catalogue in memory.
//
// # What is queried, in order
//
// Memory comes first, then Redis, then PostgreSQL. Each step decides the questions that it can decide. The next step
// decides the remaining questions.
//
// A check:
//
//  1. Held copies: balances that this process has read from Redis. Since then, Redis has announced no change of them
//     (balances.Cache.Held).
//  2. Remembered denials: a bucket that denied a request denies the same cost again, until it has refilled enough
//     (ratelimit, denials.go).
//  3. Held buckets: levels that this process has read from Redis. Since then, Redis has announced no change of them
//     (ratelimit, held.go).
//  4. Redis: the limits that steps 2 and 3 did not decide, and in the same round trip the copies that step 1 did not
//     have.
//  5. PostgreSQL: the balances whose copies may not answer, as balances.Policy decides (loader).
//
// CheckBatch first runs steps 1 to 3 for all its checks. Then it runs the remaining checks at the same time.
//
// A debit, and a consume after its limits:
//
//  1. Remembered replays and refusals (refusals.go). A remembered refusal is valid only if its balance has not
//     changed. This is confirmed by a held copy, else by Redis, else by PostgreSQL. All debits that wait for this
//     balance share one read of PostgreSQL.
//  2. PostgreSQL: the ledger decides.
//
// A consume looks for a remembered refusal (step 1) before it charges the limits. If it finds a refusal, it charges
// only limits that count attempts, and confirms the refusal afterwards (chargeLimits). For its limits, a consume
// takes steps 2 and 4 of a check.
//
// # Invariants
//
//	G1  A check returns the code with which Consume would fail at that moment. Both examine in the same order: blocks,
//	    the feature, limits, existence of tenant and meter, suspension, items.
//	G2  No limit stays charged for a consume that fails. A consume that is refused or is a replay charges limits that
//	    count attempts, but not limits that count successes. There are two exceptions. If the outcome of the debit is
//	    unknown, all limits stay charged, because the debit may have been made. If a gateway forwards the request
//	    (Request.Forwarded), a replay stays charged, because it is one more request.
//	G3  Only balances.Policy decides how a check uses copies of balances.
//	G4  If a debit is refused from memory (refusals.go), the ledger would have refused it at some instant in the last
//	    refusalAge. While Redis confirms that the balance has not changed, that instant is in the last confirmedAge.
//	    If the key of a debit may be stored, the debit is never refused from memory.
//	G5  A request whose feature is not granted charges nothing, neither limits nor balances, and queries no backend.
//	G6  A limit that was created through this process, or was announced to it, is found by its name at once.
//
// # Clock
//
// The age of copies is measured with the service's clock (package balances). Limits use the limiter's clock. Debits
// use the ledger's clock.
//
// # Concurrency
//
// All methods may be called from any goroutine. A check reads its copies in the round trip of its limits, together
// with other checks that wait for the same shard. Concurrent equal questions are sent to PostgreSQL once. At most
// Config.LoadsMax reads run at once.
//
// # Failure
//
// PostgreSQL down   checks use the newest copies that have not ended, marked degraded. A check fails with
//
//	errcode.Unavailable if there is no such copy, or if overflow, overage or a subject's cap
//	would have to decide. Debits fail with errcode.Unavailable or errcode.OutcomeUnknown
//
// Redis down        limits are decided as each rule defines (package ratelimit). Checks read each balance from
//
//	PostgreSQL at most once a second. If a copy exists, they wait at most balances.ReadPatience.
//	Balances are not read from Redis while the limiter's circuit breaker is open
//
// both down         checks use this process's copies, marked degraded
package gate
