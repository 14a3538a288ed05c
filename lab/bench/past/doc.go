// Package past writes journals past the service, as the service would have written them: with their hash chain, sums, balances and grants.
//
// # Invariants
//
//  1. `quotasvc verify` accepts what Write has written.
//  2. Keys begin with g, which is no hexadecimal digit: they never meet those of a load.
//
// # Clock, concurrency, failure
//
// No clock: callers say when a journal begins. Write uses several connections; each COPY is a transaction of its own, so a journal whose Write
// failed has to be thrown away.
package past
