// Package override has the rates and bursts that single tenants and subjects have instead of those of a rule. They are data, not rules: there
// may be millions, nothing is compiled before a request needs it, and a change of one reads no catalogue.
//
// # Terms
//
//   - override: rate and burst of one rule for one tenant, or for one subject of it, until an instant. It names the rule by its id: the limit of that
//     name in the tenant's plan, or else the general one. It goes with the id if the tenant changes its plan.
//   - set: the overrides of a tenant, or of a subject, by rule.
//
// # Invariants
//
//  1. An override was valid for the rule when it was stored. If the rule has changed so that it is not any more, the rule itself decides.
//  2. A subject's override wins over its tenant's, while it is in force.
//  3. An override changes numbers only. The bucket keeps its name, so it keeps its state.
//  4. A change is announced as a change of the tenant. A set is good for the very object that the catalogue has of the tenant: with the tenant its
//     sets are read again.
//
// # Clock
//
// Expiry is compared with the instant the caller gives, so it needs no job. Stored instants are those of pgstore.Transaction.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. A Cache has the goroutine of its lane from Start to Stop. While PostgreSQL is away, sets in memory
// stay in use, and where none is known the rule itself decides.
package override
