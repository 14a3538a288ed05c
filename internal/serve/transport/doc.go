// Package transport manages the connections of the service. It has two HTTP servers on two listeners, optional parts
// on further listeners, certificates, bounds on connections, and the shutdown. It knows no routes and no bodies.
//
// # Terms
//
//   - API: the handler for clients, with its own listener.
//   - ops: the handler for operators (package ops), with its own listener.
//   - part: a server on a further listener: for the protocol of another package, or for the pages for browsers.
//   - known address: an address from which a right key, an open session or an open link came.
//   - drain: the time between the stop signal and the end of listening. In this time load balancers notice the stop.
//
// # Invariants
//
//  1. A client that is slow or silent can keep a connection only for a bounded time.
//  2. A shutdown loses no accepted request: first the listeners of the API and the parts close, then requests in
//     progress finish. The listener for operators closes last.
//  3. Clients cannot use up the connections for operators or the file descriptors of the service. Strangers cannot use
//     up the connections of the API or of a part: the last tenth is for known addresses.
//  4. If two programs could disagree about where a request ends, its connection is closed after the answer.
//  5. If one listener fails, all other listeners are closed, because the service needs all of them.
//
// # Clock, concurrency
//
// Durations are measured with the clock of the process. A Server has one goroutine per listener, and net/http has one
// per connection. All methods are safe for concurrent use.
//
// # Failure
//
// Wait returns the error of a listener as soon as the listener fails. If the context of Shutdown ends before the
// requests in progress, Shutdown closes their connections.
package transport
