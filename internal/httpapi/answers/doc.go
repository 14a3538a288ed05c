// Package answers turns objects into the types of the contract: objects of the catalogue, accounts, limits, events
// and webhooks.
//
// # Invariants
//
// Every field that the contract has for an object is in the object's answer. A list is never null.
//
// # Clock, concurrency, failure
//
// The functions are pure.
package answers

// Map translates each element. The result is never nil, so that an empty list is [] in JSON.
func Map[A, B any](in []A, translate func(*A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = translate(&in[i])
	}
	return out
}
