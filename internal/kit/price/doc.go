// Package price computes prices. A price is the cost of a unit of one meter in units of another meter, as a ratio of
// two integers. All functions are pure and exact.
//
// # Terms
//
//   - ratio: Units of the paying meter for Per units of the paid meter. For example, 1 for 1,000 is one credit for a
//     thousand tokens.
//   - cost: the price of a number of paid units, rounded up to a whole unit of the paying meter.
//   - reach: the largest number of paid units whose cost is at most a given amount (MaxUnits).
//
// # Invariants
//
//  1. Cost and MaxUnits agree: Cost(MaxUnits(n)) <= n, and Cost(MaxUnits(n)+1) > n.
//  2. More units never cost less, and 0 units cost 0. So a part of the units never costs more than all of the units.
//  3. No product overflows, because products have 128 bits. A result above 2^63-1 becomes 2^63-1; no balance is that
//     large.
//
// There is no clock and no state. The only failure is text that is not a ratio.
package price
