// Package redisstore sends scripts and reads to Redis: one server, a master behind sentinels, or a cluster. It handles
// shards and keys. Its callers define what the scripts and values mean.
//
// # Terms
//
//   - shard: a part of Redis that keeps keys: a server, the master that the sentinels name, or a master of a cluster.
//   - hash tag: the part of a key in braces. It decides the slot, and so the shard, on a cluster.
//   - lane: a queue of requests in front of a shard. The waiting requests are sent as one pipeline: a batch.
//   - kind: the lanes of one part of the program: limits, leases, reads. Work defines how a kind turns a batch into
//     script calls.
//   - reads: keys to read. They are sent alone, or in the pipeline of another request of their slot.
//   - held: a value that this process has read and for which Redis has announced no change since. See Watch.
//   - breaker: the switch of a shard that stops requests while the shard does not answer. A probe is the one request
//     that an open breaker lets through.
//   - evict: to delete keys that have not expired, because memory is full. See EvictionWatch.
//
// # What happens to a request
//
// Lanes.Do finds the shard of the key, checks its breaker, and puts the request into the lane of its hash tag. The
// lane's goroutine takes the waiting requests, and the kind's sender encodes them into few script calls. Batch.Run
// sends these calls together with the keys to read. Each request gets its part of the replies.
//
// # Invariants
//
//  1. A script call is sent at most once. The only exception is the reply NOSCRIPT, which means that the script did
//     not run: then the call is sent a second time.
//
//  2. Requests with one hash tag are sent in order of arrival.
//
//  3. A request takes at most the budget (120 ms): half in the queue, half in Redis. A Walk takes as long as its caller
//     allows.
//
//  4. A shard that does not answer delays no request of another shard.
//
//  5. A shard that answers and rejects writes counts as away until it accepts a write.
//
//  6. A held value is out of date by at most HeldFor (see Watch).
//
// # Clock
//
// The budget is real time. The breaker uses Config.Now. Batch.Now estimates the server's clock from its last reply.
//
// # Concurrency
//
// A Store is safe for concurrent use. Kinds and scripts are added before the first request. Each lane has a
// goroutine, and another goroutine loads the scripts into new nodes of a cluster; Stop ends all of these. An
// EvictionWatch has its own goroutine.
//
// # Failure
//
// Every failure of Redis matches ErrAway. The breaker of a shard opens after 5 failures in a row, or when half of the
// latest 20 requests failed, and probes every 5 s. In a cluster the client follows redirections, and a request whose
// slot is moving is sent again within the budget. While a master is away the map of the cluster is read every second. A
// failover may lose the writes of its last moments, because replication is asynchronous.
package redisstore
