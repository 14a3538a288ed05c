// Package client is for Go programs that call quotasvc. It needs the standard library only.
//
// # Terms
//
//   - attempt: one sending of a request; retry: every attempt but the first.
//   - wait: the pause before a retry. Its jitter is random, so that callers that were turned away together do not come back
//     together.
//   - patience: the longest wait that is worth while. An answer that asks for more is the caller's to deal with.
//
// # Invariants
//
//  1. A request is sent again only where that cannot do it twice: with the same Idempotency-Key and the same body, or with a
//     method that is idempotent by itself.
//  2. No wait ends before the Retry-After of the answer it is about.
//  3. Retries are a tenth of the requests at most, beyond a small reserve: when everything fails, a Retrier does not send four
//     times as much.
//  4. What is returned is what the last attempt brought, or the context's error. Answers that are not returned are read
//     and closed, so their connections can be used again.
//
// # Clock
//
// Waits use the process's monotonic clock. A Retry-After that is a date is measured against the Date of the same answer.
//
// # Concurrency
//
// A Retrier is safe for concurrent use and is meant to be shared: its reserve is of all its requests. It has no goroutines.
//
// # Failure
//
// The context of a request bounds all its attempts and waits. A wait that it does not allow is not begun.
package client
