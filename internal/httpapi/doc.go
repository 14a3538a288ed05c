// Package httpapi is the REST API. It decodes requests, calls the gate, the ledger or the catalogue, encodes answers,
// and turns errors into HTTP answers. It makes no decisions itself.
//
// # Terms
//
//   - contract: openapi.yaml in package reference. Handlers are written by hand. Tests compare routes, request bodies
//     and answers with the contract.
//   - request: an HTTP request and its answer, while handlers work on them.
//   - fault: a wrong field of a request, with the sentence that says what the field must be.
//   - problem: an error in the form of an answer (RFC 9457). Only the table problemKinds in errors.go maps codes to
//     statuses.
//
// # Invariants
//
//  1. No input causes a 5xx. A refused request has changed nothing: a handler reads and checks the whole body, all
//     parameters and all headers before it calls another package.
//  2. The API refuses everything that is not in the contract, such as unknown fields and query parameters,
//     duplicates, and data after the body.
//  3. An internal error gives the client a request id and nothing else. Its cause is in the access log.
//  4. Each request is answered, measured and logged exactly once. This includes requests in which a handler panics
//     and requests that match no route.
//  5. The values of metrics' labels come from the table of routes. Text that a client sends never becomes a label.
//  6. Retry-After is sent with 429 and 503 only. If a gateway hides refusals, the status in X-Quota-Status counts.
//     Retry-After is at least 1, and at least the largest t of the RateLimit header in the same answer. If limits
//     denied the request, only these limits have a t.
//  7. The address of a request is the address of its peer, or the address that a trusted proxy sends. Headers that
//     any client can write are used neither as addresses nor as idempotency keys.
//  8. Every route needs a scope, except the routes of the contract and of its page. A route that does not declare
//     which tenants it reaches refuses a key that is bound to a tenant.
//
// # Clock
//
// Durations in headers are differences from the instant of the decision, by PostgreSQL's clock. The process's clock
// is used only to measure durations.
//
// # Concurrency
//
// net/http has one goroutine per connection (package transport). Requests are pooled. Therefore no code may keep a
// request or its byte slices after the answer.
//
// # Failure
//
// Each request has a deadline. If a backend does not answer, requests that need it get 503 with Retry-After.
package httpapi
