// Package replica finds the processes that decide limits in the same Redis, and divides rules among them while Redis
// is away.
//
// # Terms
//
//   - replica: a process that decides limits in the same Redis. Set: the replicas that share the rules.
//   - heartbeat: one run of lua/replicas.lua. It registers this replica and returns the others.
//   - share, portion: the part of a bucket that one replica decides while Redis is away.
//
// # Invariants
//
//  1. The portions of one bucket sum to at most the bucket's capacity and rate, as long as every replica knows all
//     live replicas. If replicas do not know each other, each of them holds at least one token, so the sum may be
//     more than the capacity.
//  2. A replica counts from its first heartbeat until it leaves, or until confirmBeats consecutive heartbeats do not
//     contain it.
//
// # Clock
//
// A registration expires by Redis's clock. The time between heartbeats is by this process's clock.
//
// # Concurrency
//
// A Heartbeat is safe for concurrent use and has one goroutine, which Stop ends. A Set does not change.
//
// # Failure
//
// While Redis is away, the last Set is used. Before the first reply, rules are divided by the configured minimum.
package replica
