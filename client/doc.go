// Package client calls quotasvc from Go programs. A Client has a method for each operation of the contract, with the contract's types, and
// helpers for what most programs do: consume and refund, hold and capture, local units, webhooks. It imports the standard library only.
//
//	c, err := client.New(client.Options{}) // environment: QUOTASVC_URL, QUOTASVC_KEY
//	answer, err := c.Consume(ctx, client.ConsumeRequest{Tenant: "acme", Items: []client.Item{{Meter: "api_calls", Amount: 1}}})
//	if errors.Is(err, client.ErrDenied) { ... }
//
// Middleware: client/quotahttp for net/http, client/quotaecho for echo. docs/integrate/go.md leads through all of it.
//
// # Terms
//
//   - call: a method call; operation: what it does at the service, once.
//   - attempt: one transmission of a request. A retry is any attempt except the first.
//   - wait: the pause before a retry. It has random jitter, so that callers refused at the same time do not retry at the
//     same time.
//   - maximum wait: the longest wait that is accepted. If a response asks for more, the caller gets that response.
//   - retry budget: the number of retries that may be sent now.
//   - undecided: without an answer of the service, or with a 5xx. Calls about meters that fail open pass then, uncharged.
//   - local units: units of a hold that this process grants by itself.
//   - filler, settler: the goroutines of a LocalUnits. The first takes holds; the second captures, extends, returns and debits.
//   - late units: units that were granted, and whose hold has ended uncaptured or never existed. They are debited.
//
// # Files
//
// types.gen.go and operations.gen.go are generated from the contract by internal/lab/clientgen. Answers may gain members and codes without a new
// version: unknown ones are ignored, and an Error with an unknown code is one by its status.
//
// # Invariants
//
//  1. A request is sent again only if it takes effect once: it has an Idempotency-Key and the same body, or an idempotent
//     method.
//  2. No wait is shorter than the Retry-After of the response before it.
//  3. Retries are at most a tenth of the requests, plus a budget of ten. So a Client or a Retrier does not multiply the load when every
//     request fails.
//  4. Retrier.Do returns the result of the last attempt, or the context's error. It reads and closes all other response bodies, so
//     that their connections can be reused.
//  5. A LocalUnits charges each granted unit once, as long as its process lives and the balance covers it: an operation keeps its key and
//     its body until the service has answered it, and only an answer with a code counts as a refusal.
//  6. A LocalUnits has at most four holds. It grants no unit that is not held, except UnbackedMax of them while the service is away.
//  7. An Error says whether its operation may have taken effect (OutcomeUnknown). If not, nothing was charged.
//  8. Only calls without a decision fail open. A denial, a wrong key and a caller's ended context do not.
//
// # Clock
//
// Waits use the process's monotonic clock. A Retry-After date is compared with the Date header of the same response. A LocalUnits uses
// the monotonic clock, and of the service's times only their differences. A Webhook compares a delivery's time with the wall clock.
//
// # Concurrency
//
// A Client and a Retrier are safe for concurrent use. Share one: its retry budget counts all its requests. A Client starts goroutines for
// refunds in the background and extensions of holds; Close waits for them. A LocalUnits is safe for concurrent use, and has two goroutines
// until Close. Its lock is not kept during a request.
//
// # Failure
//
// Timeout bounds an attempt, Deadline and the context a call. If a wait would pass the deadline, the call returns the last error at once.
//
// While the service is away, a LocalUnits grants what it holds, then refuses. A killed process loses the use that it has not captured:
// docs/recipes/local-units.md.
package client
