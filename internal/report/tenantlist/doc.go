// Package tenantlist lists tenants by their own data (plan, status, metadata) and by their balances (used percentage,
// remaining units).
//
// # Terms
//
//   - standing: a tenant's own balance of a meter, as used units (net of refunds) and remaining units (including
//     top-ups). percent is 100 * used / (used + remaining), rounded down.
//   - near: a standing with at least the given percent. A balance with no used and no remaining units is not near.
//   - candidate: a balance that is near according to its stored row, or that has a due change. Listed values are
//     computed by the ledger.
//   - step: the largest number of rows that one statement reads. A page reads steps until it is full or its time is
//     over. In the second case the page is short and has a cursor.
//
// # Invariants
//
//  1. Nothing is stored for these lists, and no index contains used units. So debits do not cost more because of the
//     lists.
//  2. The cursor of a list by tenant is an id. A tenant that matches all the time is listed exactly once, for any
//     changes between two pages. In a list by remaining units, a tenant whose units change between two pages may be
//     missing or listed twice.
//  3. A balance whose period has ended is not near, even before it is rolled: its next period has begun, and nothing
//     of that is used.
//  4. A list by remaining units reads all balances for each page. If only a few tenants match, it reads only their
//     balances. It sorts and looks up a bounded number of balances. Even a page without a match has a cursor, after
//     the balances that it has examined.
//
// # Clock
//
// The ledger's.
//
// # Concurrency
//
// A Reader is safe for concurrent use. Lists are reports: only a few run concurrently, each within the time limit of
// reports (package history).
//
// # Failure
//
// Errors are *errcode.Error, of reports or of this package. Terms that apply at once change a balance when it is used
// or rolled next. Until then, a tenant that is near only because of such a change is not found. A tenant that is no
// longer near because of the change is not listed.
package tenantlist
