// Package bound holds the bounds that every part of the service shares: what an id, an amount, an idempotency key, a route,
// metadata and the admin key must look like.
//
// # Terms
//
//   - bound: one check (ID, Amount, Key, ...) and one sentence for the caller whose value fails it (MustBeID, ...). The sentence
//     follows the name of the field: "tenant must match ...".
//
// # Invariants
//
//  1. Each bound has one check and one sentence. Other packages call them and have none of their own.
//  2. A value that passes its check can be stored by PostgreSQL, be part of a Redis key and be read exactly by every JSON
//     client, as far as values of its kind are stored, keyed and read.
//  3. The bounds are those of openapi.yaml; a test of package httpapi compares the two.
//
// # Clock, concurrency, failure
//
// The package is pure: no clock, no I/O, no state, and no imports beyond the standard library. Checks return false and do not
// fail. They allocate nothing, so the hot path may call them for each request.
package bound
