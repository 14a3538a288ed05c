// Package transport holds the connections of the service: two HTTP servers on two listeners, perhaps parts on others, certificates, how long and
// how many connections there are, and how they stop. It knows no route and no body.
//
// # Terms
//
//   - API: the handler for clients, and its listener.
//   - ops: the handler for operators (package ops), and its listener.
//   - part: one more listener: of a protocol that another package speaks, or of pages for browsers.
//   - drain: the time between the order to stop and the end of listening. Load balancers notice meanwhile.
//
// # Invariants
//
//  1. A slow or silent client holds a connection for a bounded time.
//  2. A stop loses no accepted request: the listener closes first, then requests in progress finish. The ops listener closes last.
//  3. Clients cannot take the operators' connections, nor the file descriptors of the service.
//  4. A connection on which two programs could disagree where a request ends is closed after its answer.
//  5. If one listener fails, all end: the service is useless without one of them.
//
// # Clock, concurrency
//
// The process's clock, for durations. A Server has one goroutine per listener, and net/http has one per connection. All methods are safe for
// concurrent use.
//
// # Failure
//
// Wait returns the error of a listener as soon as it fails. Shutdown cuts off what is left when its context ends.
package transport
