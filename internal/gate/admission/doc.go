// Package admission decides what comes before the gate: whether a tenant's plan has a feature, and whether the gate knows the newest limits.
//
// # Terms
//
//   - feature: see package feature. A request may ask for one beside its items, or instead of them.
//   - admitted: what goes on to the gate.
//
// # Invariants
//
//  1. A request whose feature is not granted charges nothing, neither limits nor balances, and asks no backend for it.
//  2. Check answers as Consume would: the feature first, then what the gate says.
//  3. A feature is decided by the plan that the tenant has now, and by what the tenant overrides: as old as the catalogue's copies in memory.
//  4. A limit that was made through this process, or that was announced to it, is found by its name at once. Names that do not exist cost no read.
//
// # Clock
//
// The process's clock stamps answers that no balance was read for. It decides nothing.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Errors are those of the gate: *ledger.Error with CodeFeatureNotInPlan where a consume needs a
// feature that is not granted. A tenant that is not in memory while PostgreSQL is away is CodeUnavailable.
package admission
