// Package envoyrls answers Envoy's rate limit service over gRPC: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
//
// # Terms
//
//   - descriptor: a list of entries that Envoy sends. It becomes one charge of limits (gate.Charge): no balance is read, nothing is debited.
//   - entry: a key and a value, such as tenant=acme. The keys are in descriptor.go.
//   - hits: what a charge costs. 0 in a descriptor only looks.
//   - over limit: the answer that refuses a request. An error is not one: Envoy's failure_mode_deny decides then.
//
// # Invariants
//
//  1. Nothing is charged unless all descriptors of a request can be read.
//  2. The limits of one descriptor are charged all or not at all. Descriptors are charged independently: one that is over limit does not give
//     back what others took.
//  3. What refuses for good (a block, a suspended tenant, a rule that is closed without Redis) and what a client can make wrong (a path that is
//     too long) is over limit and not an error: a proxy that fails open must not let it pass.
//  4. No request without a key in force is decided, and a bound key charges its own tenant only.
//  5. Streams, messages, headers and times are bounded, before a caller has shown its key.
//
// # Clock
//
// The process's clock, for durations.
//
// # Concurrency
//
// All methods may be called from any goroutine. gRPC has goroutines for each connection and stream; Stop ends them.
//
// # Failure
//
// Errors are gRPC statuses: see statusOf. A panic is answered as Internal and logged.
package envoyrls
