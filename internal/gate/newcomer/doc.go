// Package newcomer makes tenants on their first use, on a default plan.
//
// # Terms
//
//   - newcomer: an id that no tenant has. With a default plan it is a tenant to be.
//   - first use: a debit, a consume, a hold, or a request at a gateway, of a newcomer. Checks are none.
//   - to admit: to make the tenant, after its first use was decided.
//
// # Invariants
//
//  1. A use that the plan would refuse makes no tenant: it is decided first, by the ledger's own rules on the balances that the tenant would begin
//     with. So a flood of invented tenants that ask for too much, or for meters of other plans, leaves nothing.
//  2. However many first uses of a tenant run at once, on however many instances, one tenant is made, and each use is then decided by its balances.
//  3. An instance makes at most Config.PerSecond tenants a second. What is beyond is refused (CodeQueueFull) and makes none.
//  4. A tenant that is made here is announced and in the audit log, like one that an administrator makes.
//
// # Clock
//
// First uses are decided at the ledger's instant as the instance last knew it; the tenant is made at PostgreSQL's. The process's clock
// measures the rate.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Errors are *ledger.Error, as the operation itself would fail; a tenant that could not be
// made is CodeUnavailable, and the same request may be sent again. A nil Desk takes nobody.
package newcomer
