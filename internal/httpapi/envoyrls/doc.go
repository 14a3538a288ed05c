// Package envoyrls answers Envoy's rate limit service over gRPC
// (envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit).
//
// # Terms
//
//   - descriptor: a list of entries that Envoy sends. It becomes one charge of limits (gate.Charge). No balance is
//     read, and nothing is debited.
//   - entry: a key and a value, such as tenant=acme. The keys are in descriptor.go.
//   - hits: the cost of a charge.
//   - look: a descriptor with 0 hits. It reads the limits without charging them.
//   - report: a descriptor that Envoy sends at the end of a stream, with the number of hits that the stream took. It is
//     charged after the fact: too few tokens do not refuse it.
//   - over limit: the answer that refuses a request. In contrast, an error leaves the decision to Envoy's setting
//     failure_mode_deny.
//
// # Invariants
//
//  1. The limits of a request are charged only if all its descriptors can be read.
//  2. The limits of one descriptor are charged together or not at all; a report takes from each what it can. Each
//     descriptor is charged independently: if one descriptor is over limit, the charges of the other descriptors
//     remain.
//  3. Some refusals are answered as over limit and not as an error, because a proxy that fails open lets errors pass.
//     This applies if the caller is blocked, if the tenant is suspended, or if a client may have made a value invalid,
//     such as a path that is too long. It also applies if Redis does not answer, and a limit then refuses requests.
//  4. The limits of a request without a valid key are not charged. A key that is bound to a tenant charges only that
//     tenant.
//  5. A descriptor is a report if its entry after_the_fact is true. Without this entry, it is a report if this process
//     remembers a look at a descriptor with the same values. Each look makes one report. The memory of looks has a
//     bound.
//  6. The numbers of streams, the sizes of messages and headers, and the times have bounds, even before a caller has
//     sent its key.
//
// # Clock
//
// The process's clock measures only durations.
//
// # Concurrency
//
// All methods may be called from any goroutine. gRPC starts goroutines for each connection and stream. Stop ends
// them.
//
// # Failure
//
// Errors are gRPC statuses: see statusOf. A panic is answered as Internal and logged.
package envoyrls
