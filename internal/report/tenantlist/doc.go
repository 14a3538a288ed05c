// Package tenantlist lists tenants by their own data (plan, status, metadata) and by their balances (used percentage,
// remaining units).
//
// # Terms
//
//   - standing: the state of a tenant's own balance of a meter. It has the used units without refunded ones, and the
//     remaining units with top-ups. percent is 100 * used / (used + remaining), rounded down.
//   - near: a standing with at least the given percent. A balance with no used and no remaining units is not near.
//   - candidate: a balance that is near according to its stored row, or that has a due change. The ledger computes
//     the values in the list.
//   - step: the largest number of rows that one statement reads. A page reads steps until it is full or its time is
//     over. If its time is over, the page is short and has a cursor.
//
// # Invariants
//
//  1. Nothing is stored for these lists, and no index contains used units. So the lists do not make debits more
//     expensive.
//  2. The cursor of a list by tenant is an id. If a tenant matches all the time, it is listed exactly once, for any
//     changes between two pages. In a list by remaining units, a tenant whose units change between two pages may be
//     missing or listed twice.
//  3. A balance whose period has ended is not near, even before it is rolled. Its next period has begun, and no units
//     of that period are used.
//  4. A list by remaining units reads all balances for each page. If only a few tenants match, it reads only their
//     balances. It sorts and looks up a bounded number of balances. If a page has no match but is not the last page,
//     it has a cursor after the balances that were examined.
//
// # Clock
//
// Balances are computed at the present instant of the ledger's clock.
//
// # Concurrency
//
// A Reader is safe for concurrent use. Lists are reports: only a few run concurrently, each within the time limit of
// reports (package history).
//
// # Failure
//
// Errors are *errcode.Error, of reports or of this package. Terms that apply at once change a balance only when it is
// next used or rolled. Until then, a tenant that is near only because of such a change is not found. A tenant that is
// no longer near because of the change is not listed.
package tenantlist
