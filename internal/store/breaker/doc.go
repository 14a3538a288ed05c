// Package breaker remembers whether a server can be reached, so that callers do not wait for a timeout each time.
//
// # Terms
//
// A breaker is open while its server cannot be reached; otherwise it is closed. A caller that gets no answer reports
// a suspicion. A probe then checks whether the server can be reached, on a separate connection.
//
// # Invariants
//
//  1. A suspicion alone does not open the breaker. The breaker opens when a probe has failed and no caller got an
//     answer during the probe. So one lost connection is no outage. A server that is only too busy for new
//     connections is no outage either.
//  2. While the breaker is open, it probes again and again, with the pause Config.Every between probes. It closes when
//     a probe succeeds, or when a caller gets an answer during a probe.
//  3. Without a suspicion there are no probes. Then a call of the server costs one atomic read and one atomic write.
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
