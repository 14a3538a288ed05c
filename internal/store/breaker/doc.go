// Package breaker knows whether a server can be reached, so that callers need not find out one by one.
//
// # Terms
//
// A breaker is closed while its server can be reached as far as is known, and open while it cannot. A suspicion is the report
// of a caller that got no answer. A probe asks the server whether it can be reached; it has a connection of its own.
//
// # Invariants
//
//  1. A suspicion alone opens nothing: the breaker opens when a probe has failed, and nobody was served meanwhile. One lost
//     connection is no outage, nor is a server that is too busy for new connections.
//  2. While the breaker is open, it probes every Every. The first success closes it.
//  3. Without suspicion it probes nothing and costs its callers one atomic read and one write.
//
// # Clock
//
// The runtime's, for the pauses between probes.
//
// # Concurrency
//
// All methods may be called from any goroutine. The breaker has one goroutine, which makes the probes; Stop ends it.
//
// # Failure
//
// A probe that does not return within Timeout has failed. A probe must return soon after its context ends.
package breaker
