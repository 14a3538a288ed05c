// Package provision creates tenants on their first use, on a default plan.
//
// # Terms
//
//   - first use: a debit, a consume, a hold, or a request at a gateway, for an id that no tenant has. A check is no
//     first use.
//   - provisioner: creates the tenant of a first use, after the use was decided.
//   - empty ledger: decides first uses. It has the balances with which a tenant of the default plan begins.
//
// # Invariants
//
//  1. A use that the plan refuses creates no tenant: the ledger's own rules decide it first, on an empty ledger. So a
//     flood of requests with invented tenants, for too many units or for meters of other plans, stores nothing.
//  2. For any number of concurrent first uses of a tenant, on any number of instances, one tenant is created. The
//     balances of this tenant then decide each use.
//  3. An instance creates at most Config.PerSecond tenants a second. It refuses further first uses
//     (errcode.QueueFull).
//  4. A tenant that is created here is announced and recorded in the audit log, as if an administrator had created
//     it.
//
// # Clock
//
// First uses are decided at the instant of the ledger's clock, as the instance last knew it. The tenant is created at
// the instant of PostgreSQL's clock. The process's clock measures the rate.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Errors are *errcode.Error, the same as the errors of the operation
// itself. If a tenant cannot be created the error is errcode.Unavailable, and the caller may send the same request
// again. A nil Provisioner creates no tenant.
package provision
