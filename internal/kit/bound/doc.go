// Package bound has the bounds that all parts of the service share. They are the permitted forms of an id, a name, an
// amount, an idempotency key, a route, metadata and the admin key.
//
// # Terms
//
//   - bound: a check (ID, Name, Amount, Key, ...) and the sentence for a caller whose value fails the check (MustBeID,
//     ...). The sentence follows the name of the field: "tenant must match ...".
//
//   - id: what names an object of the catalogue. name: what names a tenant, subject, grant or hold. The contract calls
//     both an id.
//
// # Invariants
//
//  1. Each bound has one check and one sentence. Other packages use them and do not define their own.
//  2. A value that passes its check is safe in all places where values of its kind are used: PostgreSQL can store it,
//     a Redis key can contain it, and every JSON client can read it exactly.
//  3. The bounds are the same as in openapi.yaml. A test of package httpapi compares them.
//
// # Clock, concurrency, failure
//
// The package is pure: it has no clock, no I/O and no state, and imports only the standard library. Checks return
// false and never fail. They allocate nothing, so the hot path may call them for each request.
package bound
