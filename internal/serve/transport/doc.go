// Package transport manages the connections of the service: two HTTP servers on two listeners, optional parts on
// other listeners, certificates, bounds on the time and number of connections, and the shutdown. It knows no routes
// and no bodies.
//
// # Terms
//
//   - API: the handler for clients, and its listener.
//   - ops: the handler for operators (package ops), and its listener.
//   - part: a further listener, for a protocol of another package or for pages for browsers.
//   - drain: the time between the stop signal and the end of listening, in which load balancers notice the stop.
//
// # Invariants
//
//  1. A slow or silent client keeps a connection for a bounded time.
//  2. A shutdown loses no accepted request: the listener closes first, then requests in progress finish. The ops
//     listener closes last.
//  3. Clients can use up neither the connections for operators nor the file descriptors of the service.
//  4. If two programs could disagree about the end of a request, its connection is closed after the answer.
//  5. If one listener fails, all listeners end, because the service needs all of them.
//
// # Clock, concurrency
//
// Durations are measured with the clock of the process. A Server has one goroutine per listener, and net/http has one
// per connection. All methods are safe for concurrent use.
//
// # Failure
//
// Wait returns the error of a listener as soon as it fails. When its context ends, Shutdown cuts off the requests
// that are still in progress.
package transport
