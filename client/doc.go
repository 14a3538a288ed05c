// Package client helps Go programs to call quotasvc: with retries (Retrier), and without a request for each decision (LocalUnits). It
// imports the standard library only.
//
// # Terms
//
//   - attempt: one transmission of a request. A retry is any attempt except the first.
//   - wait: the pause before a retry. It has random jitter, so that callers refused at the same time do not retry at the
//     same time.
//   - maximum wait: the longest wait that a Retrier accepts. If a response asks for more, the caller gets that response.
//   - retry budget: the number of retries that a Retrier may send now.
//   - local units: units of a hold that this process grants by itself.
//   - filler, settler: the goroutines of a LocalUnits. The first takes holds; the second captures, extends, returns and debits.
//   - late units: units that were granted, and whose hold has ended uncaptured or never existed. They are debited.
//
// # Invariants
//
//  1. A request is sent again only if it takes effect once: it has an Idempotency-Key and the same body, or an idempotent
//     method.
//  2. No wait is shorter than the Retry-After of the response before it.
//  3. Retries are at most a tenth of the requests, plus a budget of ten. So a Retrier does not multiply the load when every
//     request fails.
//  4. Do returns the result of the last attempt, or the context's error. It reads and closes all other response bodies, so
//     that their connections can be reused.
//  5. A LocalUnits charges each granted unit once, as long as its process lives and the balance covers it: an operation keeps its key and
//     its body until the service has answered it, and only an answer with a code counts as a refusal.
//  6. A LocalUnits has at most four holds. It grants no unit that is not held, except UnbackedMax of them while the service is away.
//
// # Clock
//
// Waits use the process's monotonic clock. A Retry-After date is compared with the Date header of the same response. A LocalUnits uses
// the monotonic clock, and of the service's times only their differences.
//
// # Concurrency
//
// A Retrier is safe for concurrent use. Share one: its retry budget counts all its requests. It starts no goroutines. A
// LocalUnits is safe for concurrent use, and has two goroutines until Close. Its lock is not kept during a request.
//
// # Failure
//
// The context of a request bounds all its attempts and waits. If a wait would pass the context's deadline, Do returns the
// last result at once.
//
// While the service is away, a LocalUnits grants what it holds, then refuses. A killed process loses the use that it has not captured:
// docs/recipes/local-units.md.
package client
