// Package replica finds the other processes that decide limits in the same Redis, and divides rules among these
// processes while Redis is away.
//
// # Terms
//
//   - replica: a process that decides limits in the same Redis. Set: the replicas that share the rules.
//   - heartbeat: one run of lua/replicas.lua. It registers this replica and returns the others.
//   - share, portion: the part of a bucket that one replica decides while Redis is away.
//
// # Invariants
//
//  1. The portions of one bucket sum to at most the bucket, in tokens and in rate, as long as every replica knows all
//     live replicas. Replicas that never saw the others hold at least one token each.
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
// While Redis is away the last Set is used. Before the first reply it has the configured minimum of replicas.
package replica
