// Package httpapi is the REST API. It decodes requests, calls the gate, the ledger or the catalogue, encodes answers, and turns
// errors into HTTP. It decides nothing itself.
//
// # Terms
//
//   - contract: openapi.yaml in package reference. Handlers are written by hand; tests compare routes, request bodies and answers
//     with the contract.
//   - request: one HTTP request and its answer while handlers work on it.
//   - fault: a field of a request, and the sentence that says what it must be.
//   - problem: an error as an answer, RFC 9457. Only the table problemKinds in errors.go maps codes to statuses.
//
// # Invariants
//
//  1. No input causes a 5xx. A refused request has changed nothing: a handler reads and checks the whole body, all
//     parameters and all headers before it calls another package.
//  2. The API refuses what is not in the contract: unknown fields and query parameters, duplicates, trailing data.
//  3. An internal error gives the client a request id and nothing else. Its cause is in the access log.
//  4. Each request is answered, measured and logged exactly once. This includes requests that panic and requests that
//     match no route.
//  5. Labels of metrics come from the route table. Nothing that a client sends becomes a label.
//  6. Retry-After is sent with 429 and 503 only. It is at least 1, and at least the t of a RateLimit header in the
//     same answer. The t of a denial is the t of a limit that denied the request. For gateways that hide refusals,
//     the status in X-Quota-Status counts.
//  7. A request's address is the peer of its connection, or the address that a trusted proxy sends. Headers that any
//     client can write are used neither as addresses nor as idempotency keys.
//  8. Every route except those of the contract and its page needs a scope. A route that does not declare which
//     tenants it reaches refuses a key that is bound to a tenant.
//
// # Clock
//
// Durations in headers are differences from the instant of the decision, by PostgreSQL's clock. The process's clock
// only measures durations.
//
// # Concurrency
//
// net/http has one goroutine per connection (package transport). Requests are pooled: after the answer, no code may
// keep a request or a byte slice of it.
//
// # Failure
//
// Each request has a deadline. If a backend is down, requests get 503 with Retry-After.
package httpapi
