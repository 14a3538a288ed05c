// Package ops serves the endpoints for operators: whether the process is alive and ready, its metrics, its profiles,
// and its log level.
//
// # Terms
//
//   - alive: the process answers. If only a backend is down, the process need not be restarted.
//   - ready: the process should get requests. It has started, all conditions are true, and it is not stopping.
//   - condition: a statement about this process that must be true before the process is ready.
//   - backend: a server that the process uses. /readyz shows its state, but only strict readiness depends on it. All
//     instances share their backends. If readiness always depended on them, a load balancer would remove all
//     instances at once, even those that could answer from their caches.
//   - warning: a problem that an operator must solve although the process can serve. Only strict readiness depends on
//     it.
//
// # Invariants
//
//  1. The endpoints reveal no secret. They need no key, so they must listen on an address that only operators can
//     reach.
//  2. /livez checks nothing and queries no server.
//  3. /readyz never blocks. Each backend has one goroutine, which checks it repeatedly, one check at a time. /readyz
//     shows the latest result.
//
// # Clock, concurrency
//
// Durations are measured with the clock of the process. All methods are safe for concurrent use.
//
// # Failure
//
// A backend counts as down if it does not answer within a second.
package ops
