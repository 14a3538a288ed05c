// Package quotahttp charges each request of an HTTP server to its tenant. It imports the standard library and client.
//
//	quota, err := quotahttp.New(c, quotahttp.Options{Meter: "api_calls", Tenant: tenantOf})
//	http.ListenAndServe(addr, quota.Wrap(handler))
//
// # Terms
//
//   - decision: whether a request may be served, with the headers for its client.
//   - to settle: to take the units back if the handler failed.
//
// # Invariants
//
//  1. A request is charged once and before its handler runs. A denied one runs no handler, and is answered with the service's own problem.
//  2. The client gets X-Quota-*, RateLimit, RateLimit-Policy and Retry-After, whatever the answer is.
//  3. What is wrong with this backend (its key, an unknown tenant or meter) is an error of this backend, never an answer of the service to its client.
//  4. If the answer about a charge is lost and the request is refused, the charge is taken back some seconds later.
//
// # Clock, concurrency, failure
//
// No clock of its own. Middlewares are safe for concurrent use. A decision takes at most Deadline, 5 s by default; while the service does not
// decide, requests about meters that fail open pass, and others get 503 with Retry-After.
package quotahttp
