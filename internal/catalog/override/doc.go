// Package override has overrides: rates and bursts that replace the rate and burst of a rule for single tenants and
// subjects. Overrides are data, not rules. There may be millions of overrides. An override is compiled when the first
// request needs it. A change of an override causes no reload of the catalogue.
//
// # Terms
//
//   - override: rate and burst of one rule, until an instant, for one tenant or one of its subjects. It names the
//     rule by its id. The rule is the limit of that name in the tenant's plan, or else the general limit. If the
//     tenant changes its plan, the override applies to the limit of that name in the new plan.
//   - set: the overrides of a tenant, or of a subject, by rule.
//
// # Invariants
//
//  1. An override was valid for the rule when it was stored. If the rule has changed and the override is no longer
//     valid, the rule's own rate and burst are in force.
//  2. While a subject's override is in force, it takes precedence over the tenant's override.
//  3. An override changes only the rate and burst of a rule. The bucket keeps its name, so it keeps its state.
//  4. A change is announced as a change of the tenant. A set in memory belongs to one read of the tenant. If the
//     catalogue reads the tenant again, the sets are read again.
//
// # Clock
//
// The instant at which an override expires is compared with the instant that the caller passes, so no job removes
// expired overrides. Stored instants come from pgstore.Transaction.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A Cache has the goroutine of its lane from Start to Stop. While
// PostgreSQL is down, sets in memory stay in use. If a set is not in memory, the rule's own rate and burst are in
// force.
package override
