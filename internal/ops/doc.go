// Package ops is the operators' endpoints: whether the process lives and is ready, its metrics, its profiles.
//
// # Terms
//
//   - alive: the process answers. A backend that is down is no reason to restart it.
//   - ready: it should get traffic.
//   - check: one condition of readiness.
//
// # Invariants
//
//  1. The endpoints reveal no secret. They need no key: listen on an address that only operators reach.
//  2. /livez asks nothing and nobody.
//
// # Clock, concurrency
//
// The process's clock, for time limits. All methods are safe for concurrent use.
//
// # Failure
//
// A check that takes longer than its time limit has failed.
package ops
