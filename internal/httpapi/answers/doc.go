// Package answers turns objects into the types of the contract: those of the catalogue, of accounts, limits, events and webhooks.
//
// # Invariants
//
// Every field of an object that the contract has is in its answer. A list is never null.
//
// # Clock, concurrency, failure
//
// The functions are pure.
package answers

// Map translates each element. The result is never nil, so that JSON has [] for no elements.
func Map[A, B any](in []A, translate func(*A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = translate(&in[i])
	}
	return out
}
