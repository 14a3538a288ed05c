// Package provision creates tenants on their first use, on a default plan.
//
// # Terms
//
//   - first use: a debit, a consume, a hold, or a request at a gateway, for an id that no tenant has. A check is none.
//   - provisioner: it creates the tenant of a first use, after the use was decided.
//   - empty ledger: it decides first uses. It has the balances with which a tenant of the default plan begins.
//
// # Invariants
//
//  1. A use that the plan refuses creates no tenant: the ledger's own rules decide it first, on an empty ledger. So a
//     flood of invented tenants that ask for too much, or for meters of other plans, leaves nothing.
//  2. However many first uses of a tenant run at once, on however many instances, one tenant is created, and each use
//     is then decided by its balances.
//  3. An instance creates at most Config.PerSecond tenants a second. It refuses more of them (errcode.QueueFull).
//  4. A tenant that is created here is announced and in the audit log, like one that an administrator creates.
//
// # Clock
//
// First uses are decided at the ledger's instant as the instance last knew it; the tenant is created at PostgreSQL's.
// The process's clock measures the rate.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Errors are *errcode.Error, as the operation itself would fail. If a
// tenant cannot be created the error is errcode.Unavailable, and the caller may send the same request again. A nil
// Provisioner creates no tenant.
package provision
