// Package httpapi is the REST API. It decodes requests, calls the gate, the ledger or the catalogue, encodes answers, and turns
// errors into HTTP. It decides nothing itself.
//
// # Terms
//
//   - contract: openapi.yaml in package reference. Handlers are written by hand; tests compare routes, request bodies and answers
//     with the contract.
//   - request: one HTTP request and its answer while handlers work on it.
//   - fault: a field of a request, and the sentence that says what it must be.
//   - problem: an error as an answer, RFC 9457. problemKinds in errors.go is the only table from codes to statuses.
//
// # Invariants
//
//  1. No input causes a 5xx. A refused request has changed nothing: body, parameters and headers are read and checked to the
//     end before a handler calls another package.
//  2. What the contract does not have is refused: unknown fields and query parameters, duplicates, trailing data.
//  3. An internal error gives the client a request id and nothing else. Its cause is in the access log.
//  4. Each request is answered, measured and logged once, after a panic and without a matching route as well.
//  5. Labels of metrics come from the route table. Nothing that a client sends becomes a label.
//  6. Retry-After is on 429 and 503 only. It is at least 1 and at least the t of a RateLimit header beside it. A denial's t is
//     that of a limit that denied. For gateways that hide refusals the status is the one in X-Quota-Status.
//  7. A request's address is the peer of its connection, or what a trusted proxy says. Headers that anybody can write are
//     neither addresses nor idempotency keys.
//  8. Every route but that of the contract needs a scope. A key that is bound to a tenant is refused by each route that does not say which tenants it reaches.
//
// # Clock
//
// Deltas in headers are differences to the instant of the decision, which is PostgreSQL's. The process's clock measures
// durations only.
//
// # Concurrency
//
// net/http has one goroutine per connection (package transport). Requests are pooled: nothing may keep one, or a byte slice of one, after its
// answer.
//
// # Failure
//
// Each request has a deadline. If a backend is down, requests get 503 with Retry-After.
package httpapi
