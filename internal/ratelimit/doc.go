// Package ratelimit decides how fast a tenant may go: buckets, windows and logs, exact to the unit, several of them all or
// nothing.
//
// # Terms
//
//   - rule: what is allowed, compiled from a Spec: a kind, a rate, a capacity (a bucket's burst, a window's count), a cost
//     per charge.
//   - kind: what a bucket does with time: see Kind. limit: a rule's arithmetic, in Go; the script has the same.
//   - bucket: a rule's state for one tenant and dimension; of a shared rule, for one dimension. The dimension is a hash of
//     whatever else separates buckets: subject, route and so on.
//   - tag: what decides a bucket's slot on a cluster: the tenant, or a shared bucket's own name.
//   - shard: one place where Redis decides: a server, the master the sentinels name, or one of a cluster's masters.
//   - charge: one rule's part of a request; request: a tenant's charges that are decided together; decision: the answer,
//     with a verdict per charge.
//   - unit: the fraction of a token the arithmetic counts in, chosen per rate so that a microsecond's refill is a whole
//     number of them.
//   - level: a bucket's state as of a time: the debt in units, tokens taken, or when each was.
//   - window: a stretch of time, of a calendar or since the epoch, whose tokens are counted together.
//   - replica: a process that decides in the same Redis; share: its part of a rule while Redis is away.
//   - lease: the right to be one of a concurrency rule's Burst at a time. Its holder renews it while it works and gives it
//     back; what a dead holder has ends by itself.
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens, and so does a sliding window;
//     a fixed window at most its count between two starts; a log at most its count in any interval of its period. That holds
//     whoever asks, from however many replicas, as long as Redis decides. The arithmetic never rounds in the caller's
//     favour, and that of buckets and logs never rounds: nothing is lost or given away over time.
//
//  2. A request is charged on all its rules or on none. A denied or peeked request changes nothing. On a cluster, where no
//     script reaches more than one slot, that is so at the end: the slots are charged one after another, the tenant's own
//     last, and what was taken comes back when a later one denies. In between others may be denied, never allowed.
//
//  3. After a verdict's RetryAfter the same cost passes if nothing else was charged; a microsecond earlier it does not.
//
//  4. A cost beyond the capacity is never a wait: Never.
//
//  5. A request is sent to Redis at most once. If the reply is lost the charge may have happened; it is not repeated.
//
//  6. Many requests decided in one script call are decided as if each had its own call, in order of arrival per tenant.
//
//  7. A shadow rule's verdict is reported and counted, and never decides. It is charged when the request is allowed and the
//     rule itself passes.
//
//  8. A stored value that is not a bucket is neither an untouched bucket nor overwritten.
//
//  9. Never more than Burst leases of a concurrency rule are held in a bucket, whoever asks, from however many replicas, as
//     long as Redis decides and its clock does not jump ahead. A lease that is not renewed is over at its time, and whoever
//     renews it after that is told so. (With a lowered Burst what is held stays held, and nothing is given.)
//
//  10. A refund gives back its own charge: what has come back by itself since, or was charged by others, stays as it is.
//     (Buckets cannot tell tokens apart: there it is what is still missing, at most the charge.)
//
//  11. A denial that is answered from memory is one that Redis would give, too: until the time that Redis said, or a second,
//     nothing can have come back, but for a refund or reset in another process.
//
//  12. The shares that replicas have of a bucket are together at most the bucket, in tokens and in rate, as long as none of them
//     misses another that lives; with replicas that have never heard of the others, at most a token each more.
//
// # Clock
//
// Redis' TIME, read once per script call, so replicas need no common clock. A bucket whose time is ahead by up to 5 s waits;
// further ahead, the clock was set back, and the bucket continues from now with its level kept. Local decisions use this
// process' monotonic clock.
//
// A window of a calendar is worked out here, from what is known of Redis' clock, and sent with the call. If Redis is in
// another, nothing is decided, and it is asked once more; a clock that is elsewhere again is an outage of that rule.
//
// A lease ends by Redis' clock. If that is set forward, leases end early: nothing tells it from time that has passed. If it is
// set back, up to 5 s make leases last that much longer; more, and the leases keep the time they had left.
//
// # Concurrency
//
// A Limiter is safe for concurrent use. Requests queue in lanes of their shard, by tag; a lane sends what waits as one
// pipeline of script calls, each of up to MaxVector requests (of one tag on a cluster, of any otherwise), so that requests
// share the calls' fixed cost. The goroutines are the lanes', one that gives a cluster's new nodes their scripts, and those
// that give back what was charged in another slot. All end with Stop.
//
// # Failure
//
// A decision takes at most its budget (120 ms): half for the queue, half for Redis. Whatever keeps Redis from deciding in
// time, the rules' OnBackendError decides: local_share goes on in this process with its share of the rule, from the level
// Redis last reported; open passes; closed answers ErrUnavailable. Such a decision says Degraded. Each shard has a breaker
// that keeps requests from waiting while it is away and lets one probe it every 5 s; the other shards' requests do not notice.
// A shard that answers and does not write is away, too, until it has done a write. On recovery local charges are forgotten: Redis'
// levels count again.
//
// In a cluster, redirections are followed, a slot between two nodes is waited for within the budget, and while a master is
// away the masters are looked up every second. A failover may lose the charges of its last moments, as replication is
// asynchronous.
//
// A level unknown to this process when Redis goes away starts as a full share. Over an outage, then, N replicas that know each
// other admit at most C + T*R/P on top of what Redis had admitted before; a bucket of fewer tokens than replicas is held by as
// many of them, and the others deny. Replicas that never heard of the others hold at least one token each.
//
// Leases follow the same policies. Under local_share a process gives away its share of the capacity, less its part of what
// Redis said last was held, and renews what it knows; open counts nothing. When Redis is back, a lease of the outage moves
// there with its first renewal, if there is room. A release that Redis does not hear of is an error; the lease ends at its
// time. An outage, then, adds at most Burst leases to those that Redis had given; one per replica if they do not know each other.
//
// Without a client the package runs in local mode: one process, the same rules, arithmetic and answers.
package ratelimit
