// Package quotahttp charges each request of an HTTP server to its tenant. It imports only the standard library and
// client.
//
//	quota, err := quotahttp.New(c, quotahttp.Options{Meter: "api_calls", Tenant: tenantOf})
//	http.ListenAndServe(addr, quota.Wrap(handler))
//
// # Terms
//
//   - decision: whether a request may be served, with the headers for its client.
//   - to settle: to refund the units if the handler failed.
//
// # Invariants
//
//  1. A request is charged once and before its handler runs. For a denied request no handler runs, and the answer is
//     the service's problem.
//  2. The client gets X-Quota-*, RateLimit, RateLimit-Policy and Retry-After with every answer.
//  3. A fault of this backend (its key, an unknown tenant or meter) is an error of this backend. The client never
//     gets the service's answer about it.
//  4. If the answer about a charge is lost and the request is refused, the charge is refunded some seconds later.
//
// # Clock, concurrency, failure
//
// The package has no clock. Middlewares are safe for concurrent use. A decision takes at most Deadline, 5 s by
// default. While the service does not decide, requests for meters that fail open pass, and other requests get 503
// with Retry-After.
package quotahttp
