// Package bound holds the bounds that every part of the service shares: how an id, an amount, an idempotency key, a
// route, metadata and the admin key must look.
//
// # Terms
//
//   - bound: one check (ID, Amount, Key, ...) and one sentence for the caller whose value fails it (MustBeID, ...). The sentence
//     follows the name of the field: "tenant must match ...".
//
// # Invariants
//
//  1. Each bound has one check and one sentence. Other packages use these and do not define their own.
//  2. A value that passes its check is safe in all places where values of its kind are used: PostgreSQL can store it,
//     a Redis key can contain it, and every JSON client can read it exactly.
//  3. The bounds are those of openapi.yaml; a test of package httpapi compares them with it.
//
// # Clock, concurrency, failure
//
// The package is pure: no clock, no I/O, no state, and no imports beyond the standard library. Checks return false and do not
// fail. They allocate nothing, so the hot path may call them for each request.
package bound
