// Package envoyrls answers Envoy's rate limit service over gRPC: envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
//
// # Terms
//
//   - descriptor: a list of entries that Envoy sends. It becomes one charge of limits (gate.Charge): no balance is read, nothing is debited.
//   - entry: a key and a value, such as tenant=acme. The keys are in descriptor.go.
//   - hits: the cost of a charge. A descriptor with 0 hits reads the limits without charging them.
//   - over limit: the answer that refuses a request. An error does not refuse a request: Envoy's failure_mode_deny
//     decides what follows.
//
// # Invariants
//
//  1. Nothing is charged unless all descriptors of a request can be read.
//  2. The limits of one descriptor are charged all or not at all. Descriptors are charged independently: if one is
//     over limit, the charges of the others remain.
//  3. These causes give over limit and not an error, because a proxy that fails open must not let such a request
//     pass: a block, a suspended tenant, a rule that is closed without Redis, and a value that a client can make
//     invalid (a path that is too long).
//  4. A request without a valid key is not decided. A key that is bound to a tenant charges only that tenant.
//  5. Streams, messages, headers and times are bounded, even before a caller has sent its key.
//
// # Clock
//
// The process's clock measures durations.
//
// # Concurrency
//
// All methods may be called from any goroutine. gRPC has goroutines for each connection and stream; Stop ends them.
//
// # Failure
//
// Errors are gRPC statuses: see statusOf. A panic is answered as Internal and logged.
package envoyrls
