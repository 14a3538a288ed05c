// Package price holds what a unit of one meter costs in units of another one: a ratio of two integers. It is pure and exact.
//
// # Terms
//
//   - ratio: Units of the paying meter for Per units of the paid one. 1 for 1,000 is a credit for each thousand tokens.
//   - cost: what a number of paid units costs, rounded up to a whole unit of the payer.
//   - reach: how many units an amount of the payer pays for at the most.
//
// # Invariants
//
//  1. No amount of the payer pays for more than it reaches: Cost(Reach(n)) <= n, and Cost(Reach(n)+1) > n.
//  2. Costs rise with what is paid for, and nothing costs nothing: what a part costs is never more than what the whole does.
//  3. No product wraps: both are computed in 128 bits. A result beyond 2^63-1 is 2^63-1, which no balance holds.
//
// There is no clock, no state and no failure but that of text that is no ratio.
package price
