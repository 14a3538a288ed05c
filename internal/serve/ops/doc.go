// Package ops is the operators' endpoints: whether the process lives and is ready, its metrics, its profiles, its log level.
//
// # Terms
//
//   - alive: the process answers. A backend that is down is no reason to restart it.
//   - ready: it should get traffic. It has started, all conditions hold, and it is not stopping.
//   - condition: something of this process that must be true for it to be ready.
//   - backend: a server that the process uses. Its state is shown, and counts only in strict readiness. All instances share their
//     backends: if the state counted, a load balancer would take out all of them at once, and with them what their caches can answer.
//   - warning: what an operator must mend, though the process serves. It counts in strict readiness.
//
// # Invariants
//
//  1. The endpoints reveal no secret. They need no key: listen on an address that only operators reach.
//  2. /livez asks nothing and nobody.
//  3. /readyz waits for nobody. Each backend is asked by one goroutine of its own, which never asks twice at a time; /readyz shows what it
//     found last.
//
// # Clock, concurrency
//
// The process's clock, for durations. All methods are safe for concurrent use.
//
// # Failure
//
// A backend that does not answer within a second is down.
package ops
