// Package past writes journals directly to the database. The rows are as the service would have written them, with
// the hash chain, the sums, the balances and the grants.
//
// # Invariants
//
//  1. `quotasvc verify` accepts what Write has written.
//  2. Keys begin with g, which is not a hexadecimal digit, so they never equal the keys of a load.
//
// # Clock, concurrency, failure
//
// The package uses no clock: callers give the instant at which a journal begins. Write uses several connections, and
// each COPY is a separate transaction. If Write fails, the incomplete journal must be deleted.
package past
