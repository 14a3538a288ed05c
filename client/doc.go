// Package client calls quotasvc from Go programs. A Client has a method for each operation of the contract, with the
// contract's types, and helpers for what most programs do: consume and refund, hold and capture, local units,
// webhooks. It imports only the standard library.
//
//	c, err := client.New(client.Options{}) // environment: QUOTASVC_URL, QUOTASVC_KEY
//	answer, err := c.Consume(ctx, client.ConsumeRequest{Tenant: "acme", Items: []client.Item{{Meter: "api_calls", Amount: 1}}})
//	if errors.Is(err, client.ErrDenied) { ... }
//
// Middleware: client/quotahttp for net/http, client/quotaecho for echo. docs/integrate/go.md is an introduction to
// all of this.
//
// # Terms
//
//   - call: a method call. operation: the change at the service that a call causes, exactly once.
//   - attempt: one transmission of a request. A retry is any attempt except the first.
//   - wait: the pause before a retry. It has random jitter, so that callers that were refused at the same time do not
//     retry at the same time.
//   - maximum wait: the longest wait that is accepted. If a response demands a longer wait, the caller gets that
//     response.
//   - retry budget: the number of retries that may be sent now.
//   - undecided: the service did not answer, or it answered with 5xx. Then calls for meters that fail open pass
//     uncharged.
//   - local units: units of a hold that this process grants without further requests.
//   - filler, settler: the goroutines of a LocalUnits. The filler creates holds; the settler captures, extends,
//     returns and debits.
//   - late units: granted units whose hold ended before they were captured, or that never had a hold. They are
//     debited.
//
// # Files
//
// types.gen.go and operations.gen.go are generated from the contract by internal/lab/clientgen. Answers may get
// further members and codes without a new version: unknown members are ignored, and an Error with an unknown code is
// classified by its status.
//
// # Invariants
//
//  1. A request is sent again only if it takes effect once: it has an Idempotency-Key and the same body, or an idempotent
//     method.
//  2. No wait is shorter than the Retry-After of the response before it.
//  3. Retries are at most a tenth of the requests, plus a budget of ten. So a Client or a Retrier does not multiply
//     the load if every request fails.
//  4. Retrier.Do returns the result of the last attempt, or the context's error. It reads and closes all other response bodies, so
//     that their connections can be reused.
//  5. A LocalUnits charges each granted unit once, if its process does not die and the balance covers the unit. An
//     operation keeps its key and its body until the service answers it, and only an answer with a code counts as a
//     refusal.
//  6. A LocalUnits has at most four holds. It grants only held units. While the service is away, it may also grant up
//     to UnbackedMax units that are not held.
//  7. OutcomeUnknown of an Error says whether its operation may have taken effect. If it is false, nothing was
//     charged.
//  8. Only calls without a decision fail open. Calls with a denial, with a wrong key or whose context has ended do
//     not fail open.
//
// # Clock
//
// Waits use the process's monotonic clock. A Retry-After date is compared with the Date header of the same response.
// A LocalUnits uses the monotonic clock and only differences between the service's times. A Webhook compares a
// delivery's time with the wall clock.
//
// # Concurrency
//
// A Client and a Retrier are safe for concurrent use. Share one in a process: its retry budget counts all its
// requests. A Client starts goroutines for refunds in the background and extensions of holds; Close waits for them. A
// LocalUnits is safe for concurrent use, and has two goroutines until Close. Its lock is not kept during a request.
//
// # Failure
//
// Timeout bounds an attempt. Deadline and the context bound a call. If a wait would end after the deadline, the call
// returns the last error at once.
//
// While the service is away, a LocalUnits grants the units that it holds and then refuses. If a process is killed,
// the use that it has not captured is not charged: docs/recipes/local-units.md.
package client
