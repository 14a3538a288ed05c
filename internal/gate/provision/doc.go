// Package provision creates tenants on their first use, on a default plan.
//
// # Terms
//
//   - first use: a debit, a consume, a hold, or a request at a gateway, for an id that no tenant has. A check is not
//     a first use.
//   - provisioner: creates the tenant of a first use, if the plan allows the use.
//   - empty ledger: decides first uses. It has the balances of a new tenant on the default plan.
//
// # Invariants
//
//  1. A use that the plan refuses creates no tenant. The ledger's rules decide the use first, on an empty ledger. So
//     a flood of requests with invented tenants, for too many units or for meters of other plans, stores nothing.
//  2. For any number of concurrent first uses of a tenant, on any number of instances, one tenant is created. The
//     balances of this tenant then decide each use.
//  3. An instance creates at most Config.PerSecond tenants a second. It refuses further first uses with
//     errcode.QueueFull.
//  4. The creation of a tenant by this package is announced and recorded in the audit log, like a creation by an
//     administrator.
//
// # Clock
//
// First uses are decided at the present instant of the ledger's clock, as far as this instance knows it. The tenant
// is created at the instant of PostgreSQL's clock. The process's clock measures the rate of new tenants.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Errors are *errcode.Error, like the errors of the refused operation.
// If a tenant cannot be created, the error is errcode.Unavailable, and the caller may send the same request again. A
// nil Provisioner creates no tenant.
package provision
