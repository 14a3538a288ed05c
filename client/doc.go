// Package client calls quotasvc from Go programs. A Client has a method for each operation of the contract, with the
// contract's types. It has helpers for frequent tasks: consume and refund, hold and capture, local units, and
// webhooks. The package imports only the standard library.
//
//	c, err := client.New(client.Options{}) // environment: QUOTASVC_URL, QUOTASVC_KEY
//	answer, err := c.Consume(ctx, client.ConsumeRequest{Tenant: "acme", Items: []client.Item{{Meter: "api_calls", Amount: 1}}})
//	if errors.Is(err, client.ErrDenied) { ... }
//
// The packages client/quotahttp and client/quotaecho have middleware for net/http and for echo. docs/integrate/go.md
// is an introduction.
//
// # Terms
//
//   - call: the call of a method of a Client. The change at the service that a call causes is an operation, which
//     takes effect once.
//   - attempt: one sending of a request. Every attempt of a call after the first is a retry.
//   - wait: the pause before a retry. A part of it is random, so that callers that were refused at the same time do
//     not retry at the same time.
//   - maximum wait: the longest wait that a call accepts. If a response demands a longer wait, the call does not wait
//     and returns that response.
//   - retry budget: the number of retries that may be sent now.
//   - undecided: a call is undecided if the service did not answer, or answered with 5xx. If all its meters fail
//     open, it then passes without a charge.
//   - local units: units of holds that a process grants from memory, without a request for each.
//   - filler, settler: the two goroutines of a LocalUnits. The filler creates holds. The settler captures, extends
//     and releases holds, and debits late units.
//   - late units: granted units that had no hold, or whose hold ended before they were captured. They are debited
//     from the balance.
//
// # Files
//
// types.gen.go and operations.gen.go are generated from the contract by internal/lab/clientgen. Answers may get new
// members and codes without a new version of the client. Unknown members are ignored. An Error with an unknown code
// is classified by its status.
//
// # Invariants
//
//  1. A request is sent again only if it then takes effect once. Therefore all attempts have the same Idempotency-Key
//     and the same body, or the method is idempotent.
//  2. No wait is shorter than the Retry-After of the response before it.
//  3. The number of retries is at most a tenth of the number of requests, plus ten. So a Client or a Retrier does not
//     multiply the load if every request fails.
//  4. Retrier.Do returns the result of the last attempt, or the context's error. It reads and closes all other
//     response bodies, so that their connections can be reused.
//  5. A LocalUnits charges each granted unit once, if its process is not killed and the balance covers the unit. An
//     operation keeps its key and its body until the service has answered it. Only an answer with a code counts as a
//     refusal.
//  6. A LocalUnits has at most four holds. It grants only held units, except while the service is away: then it may
//     also grant up to UnbackedMax units that are not held.
//  7. OutcomeUnknown of an Error is true if the operation may have taken effect. It is false for reads. If OutcomeUnknown
//     is false, nothing was charged.
//  8. Only calls without a decision fail open. A call does not fail open if it is denied, if its key is wrong, or if
//     its context has ended.
//
// # Clock
//
// Waits use the process's monotonic clock. A Retry-After date is compared with the Date header of the same response. A
// LocalUnits uses the monotonic clock. It uses only differences between times of the service. A Webhook compares a
// delivery's time with the wall clock.
//
// # Concurrency
//
// A Client and a Retrier are safe for concurrent use. Use one for the whole process, because its retry budget is for
// all its requests. A Client starts goroutines for refunds and for extensions of holds. Close waits for these
// goroutines. A LocalUnits is safe for concurrent use, and has two goroutines until Close. It does not hold its lock
// during a request.
//
// # Failure
//
// Timeout bounds one attempt. Deadline and the context bound a call with all its attempts. If a wait would end after
// the deadline, the call returns the last error at once.
//
// While the service is away, a LocalUnits grants the units that it holds, and then refuses. If a process is killed,
// its uncaptured use is never charged: see docs/recipes/local-units.md.
package client
