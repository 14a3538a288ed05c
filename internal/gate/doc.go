// Package gate makes one decision out of three: rate limits, balance, debit. It also says how the service degrades when a
// backend is away, and keeps the copies of balances that checks answer from.
//
// # Terms
//
// A check says what would be decided now and charges nothing. A consume charges the limits that apply and then debits; a
// debit does not ask the limits. A copy is a balance as of an instant, numbered by the seq of its newest entry. A rule is a
// limit ready to be asked; a rule set has those of a plan's tenants: the plan's own, then the general ones whose ids the plan
// does not use itself. Rules that replace one another, directly or by way of others, are a row.
//
// # Which limits apply
//
// A rule applies to a request if its match (tenant, plan, route, meter of any item) holds and the request names every
// dimension in per. Of a row one applies: not one that another one which matches stands in for, and among those that are
// left the most specific. More than ratelimit.MaxCharges are an error, never fewer asked. A bucket belongs to one tenant if
// the rule names tenant or subject, and to all otherwise.
//
// Before limits, blocks are asked: a block of the tenant, subject or address refuses, one that allows skips the limits.
//
// # Invariants
//
//	G1  A check answers with the code that Consume would fail with at that moment, and in the same order: blocks, limits, what does
//	    not exist, suspension, items.
//	G2  No limit stays charged for a consume that was refused, failed or was a replay. One whose outcome is unknown stays
//	    charged: the debit may stand. So does a replay of a gateway's (Request.Passage): it is one more request.
//	G3  A copy never gives way to an older one, neither in Redis nor here.
//	G4  A check that names no bound is not answered from a copy that is older than CacheConfig.FreshFor, unless the answer is
//	    marked degraded. No check is answered from a copy whose balance has had an event due since.
//	G5  Publishing costs the caller of a debit nothing: no call to Redis is made before its answer.
//
// # Staleness
//
// A copy reaches Redis a few milliseconds after its COMMIT (publishGap and a round trip). It waits longer while Redis is
// away, and for ever when the process dies in between or when more than pendingMax wait. Such a balance's older copy goes on
// being served, but only until its age passes FreshFor: then a check reads PostgreSQL and publishes what it found. A copy
// that only this process knows, because Redis is away or has lost it, is not trusted to be current when there may be other
// instances: PostgreSQL is read. But not by every check, or an outage of Redis would be one of PostgreSQL, too: while Redis is
// away such a copy answers for a second (awayFreshFor); then, and when Redis is back without its copies, a few checks at a time
// read (refreshesPart), and the others are answered from copies up to FreshFor old. Those answers are marked degraded. Callers who
// need less say so (Request.MaxStale), down to zero, and wait for PostgreSQL if they must.
//
// # Clock
//
// Copies carry PostgreSQL's clock; their age is taken with the service's. Hosts are expected to keep time by NTP: a skew
// adds to the staleness above and to nothing else. Limits have the limiter's clock, debits the ledger's.
//
// # Concurrency
//
// All methods may be called from any goroutine. A BalanceCache with Redis owns one, the publisher. A check reads its copies
// with the question it asks the limits: one round trip, shared with the checks that wait beside it. The same question to
// PostgreSQL at the same time is asked once, and at most Config.LoadsMax are under way.
//
// # Failure
//
//	PostgreSQL away   checks answer from the newest usable copies, marked degraded, or fail with CodeUnavailable if there are
//	                  none, or if overflow, overage or a subject's cap would have to decide; debits fail with CodeUnavailable or CodeOutcomeUnknown
//	Redis away        limits are decided as each rule says (package ratelimit); checks read PostgreSQL, each balance once a second
//	                  at most, and do not wait for it longer than refreshPatience where there is a copy. Redis is not asked
//	                  for balances while the limiter's breaker knows that it is away
//	both              checks answer from this process's copies, marked degraded
package gate
