// Package breaker keeps the state whether a server can be reached, so that not every caller has to wait for a
// timeout.
//
// # Terms
//
// A breaker is open while its server cannot be reached; otherwise it is closed. A suspicion is the report of a caller
// that got no answer. A probe checks whether the server can be reached, on a separate connection.
//
// # Invariants
//
//  1. A suspicion alone opens nothing. The breaker opens when a probe has failed and no caller got an answer during
//     the probe. One lost connection is no outage. A server that is too busy for new connections is no outage either.
//  2. While the breaker is open, it probes every Every. The first success closes it.
//  3. Without a suspicion there are no probes, and a caller pays one atomic read and one atomic write.
//
// # Clock
//
// The pauses between probes are measured with the runtime's clock.
//
// # Concurrency
//
// All methods may be called from any goroutine. The breaker has one goroutine, which makes the probes; Stop ends it.
//
// # Failure
//
// A probe that does not return within Timeout has failed. A probe must return soon after its context ends.
package breaker
