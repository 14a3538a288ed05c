// Package quotahttp charges each request of an HTTP server to its tenant. It imports only the standard library and
// package client.
//
//	quota, err := quotahttp.New(c, quotahttp.Options{Meter: "api_calls", Tenant: tenantOf})
//	http.ListenAndServe(addr, quota.Wrap(handler))
//
// # Terms
//
//   - decision: whether a request may be served, with the headers for the client's answer.
//   - to settle a decision: to refund its units if the handler failed.
//
// # Invariants
//
//  1. A request is charged once, before its handler runs. If the service denies a request, its handler does not run,
//     and the answer is the service's problem.
//  2. Every answer to a client has the headers X-Quota-*, RateLimit, RateLimit-Policy and Retry-After that the
//     service has sent.
//  3. If this backend is at fault (a wrong key, an unknown tenant or meter), the middleware reports an error. The
//     client does not see the service's answer about this fault.
//  4. If the answer to a charge is lost and the request is refused, the charge is refunded some seconds later.
//
// # Clock, concurrency, failure
//
// The package has no clock. Middlewares are safe for concurrent use. A decision takes at most Deadline, 5 s by
// default. If the service does not decide, requests for meters that fail open pass. Other requests get 503 with
// Retry-After.
package quotahttp
