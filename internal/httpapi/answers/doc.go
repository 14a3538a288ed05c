// Package answers converts values of the other packages (objects of the catalogue, grants, statements, limits, events
// and webhooks) into the types of the contract.
//
// # Invariants
//
// An answer has every field that the contract defines for its type. A list is never null.
//
// # Clock, concurrency, failure
//
// The functions are pure.
package answers

// Map returns a slice with the translation of each element. The result is never nil, so that an empty list is [] in
// JSON.
func Map[A, B any](in []A, translate func(*A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = translate(&in[i])
	}
	return out
}
