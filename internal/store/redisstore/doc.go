// Package redisstore sends scripts and reads to Redis: one server, a master behind sentinels, or a cluster. It handles
// shards and keys. Its callers define what the scripts and values mean.
//
// # Terms
//
//   - shard: a part of Redis that keeps keys: a server, the master that the sentinels name, or a master of a cluster.
//   - hash tag: the part of a key in braces. It decides the slot, and so the shard, on a cluster.
//   - lane: a queue of requests in front of a shard. The waiting requests are sent as one pipeline: a batch.
//   - kind: the lanes of one part of the program: limits, leases or reads. Work defines how a batch of the kind
//     becomes script calls.
//   - reads: keys to read. They are sent alone, or in the pipeline of another request whose key is in the same slot.
//   - held: a value that this process has read and for which Redis has announced no change since. See Watch.
//   - breaker: the switch of a shard that stops requests while the shard does not answer. An open breaker admits one
//     request after a pause, which is called a probe.
//   - evict: to delete keys that have not expired, because memory is full. See EvictionWatch.
//
// # What happens to a request
//
// Lanes.Do finds the shard of the key, checks its breaker, and puts the request into the lane of its hash tag. The
// lane's goroutine takes the waiting requests. The sender of the kind encodes them as a few script calls. Batch.Run
// sends these calls together with the keys to read. Each request gets its part of the replies.
//
// # Invariants
//
//  1. A script call is sent at most once. The only exception is the reply NOSCRIPT, which means that the script did
//     not run: then the call is sent a second time.
//
//  2. Requests with the same hash tag are sent in the order of their arrival.
//
//  3. A request takes at most the budget (120 ms): half of it in the queue, half in Redis. A Walk takes as long as
//     its context allows.
//
//  4. A shard that does not answer delays no request of another shard.
//
//  5. If a shard answers but rejects writes, its breaker stays open until the shard accepts a write.
//
//  6. A held value is out of date by at most HeldFor (see Watch).
//
// # Clock
//
// The budget is measured in real time. The breaker uses Config.Now. Batch.Now estimates the server's time from its
// last reply.
//
// # Concurrency
//
// A Store is safe for concurrent use. Kinds and scripts are added before the first request. Each lane has a
// goroutine, and another goroutine loads the scripts into new nodes of a cluster; Stop ends all of these. An
// EvictionWatch has its own goroutine.
//
// # Failure
//
// Every failure of Redis matches ErrAway. The breaker of a shard opens after 5 failed pipelines in a row, or when
// half of the latest 20 pipelines failed. It probes the shard every 5 s. In a cluster the client follows
// redirections. A request whose slot is moving is sent again within the budget. While a master is away, the map of
// the cluster is read every second. A failover may lose the writes of its last moments, because replication is
// asynchronous.
package redisstore
