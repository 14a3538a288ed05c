// Package gate makes one decision out of three: rate limits, balance, debit. It also defines what callers get while
// PostgreSQL or Redis is away.
//
// # Terms
//
// A check reports what would be decided now and charges nothing. A consume charges the limits that apply, then debits.
// A debit skips the limits. The facts of a request are what the catalogue has about its tenant (tenantFacts). A copy
// is a balance as of an instant (package balances). A rule is a compiled limit. A rule set has the rules for the
// tenants of one plan: the plan's own rules, and the general rules whose ids the plan does not use. Rules that replace
// one another, directly or through others, form a chain.
//
// # Which limits apply
//
// A rule applies to a request if its match (tenant, plan, route, meter of any item) holds and the request names every
// dimension in per. Of each chain one rule applies: rules that another applicable rule replaces are dropped, and of
// the remaining rules the most specific one applies. If more than ratelimit.MaxCharges rules apply, the request fails
// with TooManyLimits; no rule is skipped. A bucket belongs to one tenant if the rule names tenant or subject, and to
// all tenants otherwise.
//
// Blocks come before limits. A block of the tenant, subject or address refuses the request. An allowing block skips
// the limits. A feature that a request names is decided after the blocks and before the limits, from the catalogue in
// memory.
//
// # What is queried, in order
//
// Memory comes first, then Redis, then PostgreSQL. Each step answers what it can; the next step answers the rest.
//
// A check:
//
//  1. Held copies: balances that this process has read from Redis, without a change announced since
//     (balances.Cache.Held).
//  2. Remembered denials: a bucket that denied, until it would admit the same cost (ratelimit, denials.go).
//  3. Held buckets: levels that this process has from Redis, without a change announced since (ratelimit, held.go).
//  4. Redis: the limits that steps 2 and 3 did not decide, and in the same round trip the copies that step 1 did not
//     have.
//  5. PostgreSQL: the balances whose copies may not answer, as balances.Policy decides (loader).
//
// CheckBatch first runs steps 1 to 3 for all its checks. Then it runs the remaining checks at the same time.
//
// A debit, and a consume after its limits:
//
//  1. Remembered replays and refusals (refusals.go). The balance behind a refusal is confirmed by a held copy, then
//     by Redis, then by PostgreSQL. All debits that wait for this balance share one read of PostgreSQL.
//  2. PostgreSQL: the ledger decides.
//
// A consume finds its refusal in step 1 before it charges the limits, so that only limits that count attempts are
// charged. It confirms the refusal afterwards (chargeLimits). For its limits it takes steps 2 and 4 of a check.
//
// # Invariants
//
//	G1  A check returns the code that Consume would fail with at that moment. Both look in the same order: blocks, the
//	    feature, limits, existence of tenant and meter, suspension, items.
//	G2  No limit stays charged for a consume that fails. A consume that is refused or is a replay charges limits that
//	    count attempts, but not limits that count successes. There are two exceptions. If the outcome of the debit is
//	    unknown, all limits stay charged, because the debit may have been made. If a gateway forwards the request
//	    (Request.Forwarded), a replay stays charged, because it is one more request.
//	G3  Only balances.Policy decides what a check does with copies of balances.
//	G4  A debit that is refused from memory (refusals.go) would have been refused by the ledger within refusalAge, or
//	    within confirmedAge while Redis announces no change of the balance. A key that may be stored is never refused
//	    from memory.
//	G5  A request whose feature is not granted charges nothing, neither limits nor balances, and queries no backend.
//	G6  A limit that was created through this process, or that was announced to it, is found by its name at once.
//
// # Clock
//
// The age of copies is measured with the service's clock (package balances). Limits use the limiter's clock, debits the
// ledger's.
//
// # Concurrency
//
// All methods may be called from any goroutine. A check reads its copies in the round trip of its limits, together
// with other checks that wait for the same shard. Concurrent equal questions become one question to PostgreSQL; at
// most Config.LoadsMax reads run at once.
//
// # Failure
//
//	PostgreSQL away   checks use the newest copies that have not ended, marked degraded. A check fails with
//	                  errcode.Unavailable if there is no such copy, or if overflow, overage or a subject's cap
//	                  would have to decide. Debits fail with errcode.Unavailable or errcode.OutcomeUnknown
//	Redis away        limits are decided as each rule defines (package ratelimit). Checks read each balance from
//	                  PostgreSQL at most once a second, and wait no longer than balances.ReadPatience where there is
//	                  a copy. Balances are not read from Redis while the limiter's breaker is open
//	both              checks use this process's copies, marked degraded
package gate
