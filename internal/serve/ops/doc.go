// Package ops serves the endpoints for operators: whether the process is alive and ready, its metrics, its profiles,
// its log level.
//
// # Terms
//
//   - alive: the process answers. It need not be restarted because a backend is down.
//   - ready: the process should get traffic. It has started, all conditions hold, and it is not stopping.
//   - condition: a fact about this process that must be true for it to be ready.
//   - backend: a server that the process uses. Its state is shown, and counts only in strict readiness. All instances
//     share their backends: if the state always counted, a load balancer would remove all instances at once, even
//     those that could answer from their caches.
//   - warning: a problem that an operator must fix, though the process serves. It counts only in strict readiness.
//
// # Invariants
//
//  1. The endpoints reveal no secret. They need no key: listen on an address that only operators reach.
//  2. /livez checks nothing and queries no server.
//  3. /readyz never waits. Each backend has one goroutine, which runs one check at a time; /readyz shows the latest
//     result.
//
// # Clock, concurrency
//
// Durations are measured with the clock of the process. All methods are safe for concurrent use.
//
// # Failure
//
// A backend that does not answer within a second is down.
package ops
