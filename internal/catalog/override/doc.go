// Package override has rates and bursts that replace the rate and burst of a rule for single tenants and subjects.
// Overrides are data, not rules. There may be millions of overrides. An override is compiled when the first request
// needs it. Its change causes no reload of the catalogue.
//
// # Terms
//
//   - override: rate and burst of one rule for one tenant, or for one subject of it, until an instant. It names the
//     rule by its id. The rule is the limit of that name in the tenant's plan, or else the general limit. If the
//     tenant changes its plan, the override applies to the limit of the same name there.
//   - set: the overrides of a tenant, or of a subject, by rule.
//
// # Invariants
//
//  1. An override was valid for the rule when it was stored. If the rule has changed and the override is no longer
//     valid, the rule's own numbers count.
//  2. While a subject's override is in force, it takes precedence over the tenant's override.
//  3. An override changes only the numbers of a rule. The bucket keeps its name, so it keeps its state.
//  4. A change is announced as a change of the tenant. A set in memory is valid only for the read of the tenant that
//     it belongs to: if the catalogue reads the tenant again, the sets are read again.
//
// # Clock
//
// Expiry is compared with the instant that the caller passes, so it needs no job. Stored instants come from
// pgstore.Transaction.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A Cache has the goroutine of its lane from Start to Stop. While
// PostgreSQL is away, sets in memory stay in use. Without a set, the rule's own numbers count.
package override
