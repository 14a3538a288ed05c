// Package gate makes one decision out of three: rate limits, balance, debit. It also defines what callers get while
// PostgreSQL or Redis is away.
//
// # Terms
//
// A check reports what would be decided now and charges nothing. A consume charges the limits that apply, then debits. A
// debit skips the limits. A copy is a balance as of an instant (package balances). A rule is a compiled limit. A rule set has
// the rules for the tenants of one plan: the plan's own rules, and the general rules whose ids the plan does not use. Rules
// that replace one another, directly or through others, form a chain.
//
// # Which limits apply
//
// A rule applies to a request if its match (tenant, plan, route, meter of any item) holds and the request names every
// dimension in per. Of each chain one rule applies: rules that another applicable rule replaces are dropped, and the most
// specific of the rest remains. If more than ratelimit.MaxCharges rules apply, the request fails with TooManyLimits; none is
// skipped. A bucket belongs to one tenant if the rule names tenant or subject, and to all tenants otherwise.
//
// Blocks come before limits. A block of the tenant, subject or address refuses the request. An allowing block skips the limits.
//
// # Invariants
//
//	G1  A check returns the code that Consume would fail with at that moment. Both look in the same order: blocks, limits,
//	    existence of tenant and meter, suspension, items.
//	G2  No limit stays charged for a consume that fails. Limits that count successes are not charged by one that is refused or is a
//	    replay; limits that count attempts are. There are two exceptions. If the outcome of the debit is unknown, all limits stay
//	    charged, because the debit may have been made. If a gateway forwards the request (Request.Forwarded), a replay stays
//	    charged, because it is one more request.
//	G3  What a check does with copies of balances is decided by balances.Policy and nowhere else.
//	G4  A debit that is refused from memory (memory.go, questions.go) would have been refused by the ledger within refusalAge, or within confirmedAge
//	    while Redis announces no change of the balance. A key that may be stored is never refused from memory.
//
// # Clock
//
// The age of copies is taken with the service's clock (package balances). Limits use the limiter's clock, debits the
// ledger's.
//
// # Concurrency
//
// All methods may be called from any goroutine. A check reads its copies in the round trip of its limits, together with other
// checks that wait for the same shard. Equal questions to PostgreSQL at the same time become one; at most Config.LoadsMax
// reads run at once.
//
// # Failure
//
//	PostgreSQL away   checks use the newest copies that have not ended, marked degraded. They fail with CodeUnavailable if there
//	                  is no such copy, or if overflow, overage or a subject's cap would have to decide. Debits fail with
//	                  CodeUnavailable or CodeOutcomeUnknown
//	Redis away        limits are decided as each rule says (package ratelimit). Checks read each balance from PostgreSQL at most
//	                  once a second, and wait no longer than balances.ReadPatience where there is a copy. Balances are not read
//	                  from Redis while the limiter's breaker is open
//	both              checks use this process's copies, marked degraded
package gate
