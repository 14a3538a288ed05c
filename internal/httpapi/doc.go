// Package httpapi is the REST API: it decodes, asks the gate, the ledger or the catalogue, encodes, and turns errors into
// HTTP. It decides nothing itself.
//
// # Terms
//
//   - contract: openapi.yaml, which is served. The types in types.gen.go are generated from it; handlers are written by hand,
//     and tests hold routes, request bodies and answers equal to it.
//   - exchange: one request and its answer on their way through the handlers.
//   - document: a request body being taken apart, strictly. What is wrong with it is collected as faults, by field.
//   - gateway: a proxy that holds a request back and asks whether it may pass; passage: what is to pass, its method and URI.
//   - problem: an error on its way to a client, RFC 9457. errors.go is the one place where codes become statuses.
//
// # Invariants
//
//  1. No input is answered with a 5xx, and a refused request has done nothing: bodies, parameters and headers are read and
//     checked to the end before anything is asked to act.
//  2. What is not in the contract is refused, not ignored: unknown fields and query parameters, duplicates, trailing data.
//  3. An internal error tells the client its request id and nothing else. Its cause is in the access line.
//  4. Every request is answered, measured and logged once, also after a panic and also when no route matches.
//  5. Labels of metrics come from the route table; nothing a client sends becomes one.
//  6. Retry-After is on 429 and 503 only, at least 1, and never earlier than the t of a RateLimit header beside it. A denial's t
//     is of limits that denied. In the form of a gateway that hides refusals the status meant is the one in X-Quota-Status.
//  7. A request's address is its connection's peer, and what a trusted proxy says of one: headers that anybody can write count
//     for nothing, neither as an address nor as an idempotency key.
//
// # Clock
//
// Deltas in headers are taken from instants of the decision itself, which are PostgreSQL's. The process's clock measures
// durations only.
//
// # Concurrency
//
// A Server has one goroutine per listener, and net/http's per connection. Exchanges are pooled: nothing keeps one, or a byte
// slice of one, beyond its request.
//
// # Failure
//
// Each request has a deadline. Backends that are away show as 503 with Retry-After; /livez stays green then, and /readyz
// says what is missing. Shutdown loses no request that was accepted.
package httpapi
