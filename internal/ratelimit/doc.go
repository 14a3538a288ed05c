// Package ratelimit limits the rate at which a tenant may send requests. It uses buckets, windows, logs and leases.
// Decisions are exact to the unit. A request is charged on all its rules or on none. The arithmetic of one rule is in
// package rule. The connections to Redis are in package redisstore. Package replica finds the other replicas.
//
// # Terms
//
//   - rule, kind, limit, bucket, dimension, unit, window, level: see package rule. shard, lane, batch, breaker: see
//     package redisstore.
//   - charge: one rule's part of a request. request: the charges of a tenant that are decided together. decision: the
//     result, with a verdict per charge. query: a checked request.
//   - vector: one script call for many queries of one slot.
//   - local state: the levels of buckets in this process. In local mode there is no other state; with Redis they are
//     copies.
//   - denial: a denial by Redis that this process remembers.
//   - debt: the amount by which a charge after the fact (ConsumeLate) may exceed the tokens left. A bucket that owes
//     tokens passes no request.
//   - ban: the time for which a bucket that has denied too often denies everything.
//   - id: names a request of a tenant that may come again (Request.Once). It charges each rule once.
//   - epoch: a number that is stored with the data in Redis and is lost with it. With it a process notices that the
//     data was lost.
//   - lease: one of the Burst slots of a concurrency rule. Its holder renews it while it works and releases it. If
//     the holder dies, the lease ends at its time.
//
// # The path of a check
//
// Limiter.decide checks the request (request.go) and looks for a remembered denial (denials.go). The query then waits
// in a lane of redisstore. The lane's goroutine calls Limiter.send (limiter.go). Limiter.send encodes a batch of
// queries into vectors (workbench.go, vector.go), sends them, decodes the replies and updates the local state
// (local.go). If Redis is away, the rules' policies decide (degraded.go).
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens. Package rule has the
//     bounds of the other kinds. This is so for any number of callers and replicas, as long as Redis decides.
//
//  2. A request is charged on all its rules or on none. A denied or peeked request takes no token and gives none
//     back. On a cluster no script reaches more than one slot. So the slots are charged one after another, the
//     tenant's own slot last. When a later slot denies, earlier charges are refunded. Until the refund, other
//     requests may be denied because of such a charge. None is wrongly admitted.
//
//  3. After a verdict's RetryAfter the same cost passes if nothing else was charged meanwhile. A microsecond earlier
//     it does not pass.
//
//  4. A cost beyond the capacity gets the verdict Never, and no time to wait.
//
//  5. A request is charged in Redis at most once. If the reply is lost, Redis may have charged the request, and it is
//     not sent again. A call is sent again only if the reply says that it decided nothing.
//
//  6. Requests that share a script call are decided as if each had its own call, in order of arrival per tenant.
//
//  7. The verdict of a shadow rule is reported and counted, and never changes the decision. A shadow rule is charged
//     if the request is allowed and the shadow rule itself passes.
//
//  8. A stored value that is not a bucket is neither treated as an unused bucket nor overwritten.
//
//  9. As long as Redis decides and its clock does not jump ahead, at most Burst leases of a concurrency rule are held
//     in a bucket. This is so for any number of callers and replicas. A lease that is not renewed ends at its time,
//     and a later renewal fails. If Burst is lowered, no held lease ends, and no lease is granted until fewer than
//     Burst are held.
//
//  10. If a rule's rate changes, a bucket is refilled at the new rate from the first request that is decided with it.
//     Until then it is refilled at the old rate. Units taken from a window or log stay taken for the window of the
//     new rate, even if the old window has ended.
//
//  11. A denial from memory is a denial that Redis would also give. It is remembered until the cost passes, and for
//     at most a second. During this time, it is wrong in three cases only. Another process has refunded or reset the
//     bucket, Redis's clock was set forward, or a failover lost charges.
//
//  12. A peek that is not Fresh may be decided from held levels. This process has read such a level, and Redis has
//     announced no change of it since then (redisstore.Watch). The peek misses only charges of other processes in the
//     last redisstore.HeldFor (25 ms).
//
//  13. The ban of a bucket starts with the denial that reaches the configured count. All callers and replicas are
//     counted together, as long as Redis decides. Until then each denial by such a rule reaches Redis. On a cluster,
//     a slot that was not reached denies nothing.
//
//  14. An id charges a rule at most once in OnceFor, for any number of callers and replicas, as long as Redis decides.
//     The rule is remembered in the call that charges it, and forgotten in the call that refunds it. A denied request
//     is not remembered. Requests with an id are never denied from memory, because another replica may have charged
//     the id.
//
// # Clock
//
// The clock is Redis's TIME, read once per script call, so replicas need no common clock. If a bucket's time is up to
// 5 s ahead of the clock, it is not refilled until the clock has reached its time. If it is further ahead, the clock
// was set back: the bucket keeps its level and is refilled from now on. Local decisions use this process's monotonic
// clock.
//
// A calendar window is computed in this process, from an estimate of Redis's clock, and sent with the call. If
// Redis's clock is in another window, nothing is decided, and the call is sent again with that window. If the clock
// has then jumped into yet another window, the rule is decided as if Redis were away.
//
// A lease ends by Redis's clock. If that clock is set forward, leases end early. If it is set back by up to 5 s,
// leases last that much longer. If it is set back further, leases keep the time that they had left.
//
// # Concurrency
//
// A Limiter is safe for concurrent use. It uses the goroutines of its store's lanes, and its own goroutines, which
// refund charges in other slots and send Redis what is owed. The store's Stop ends the lanes. Limiter.Stop waits for
// its goroutines.
//
// # Failure
//
// If Redis does not decide within the budget, the rule's OnBackendError decides. local_share continues in this
// process with its portion of the rule, from the level that Redis last reported. open passes. closed returns
// ErrUnavailable. Such a decision is Degraded.
//
// What a process has charged itself is owed to Redis. It is added to the bucket before the process's next request on
// the bucket, and within a second after Redis is back if there is no such request (carry.go). Each such call has an
// effect once, even if its reply was lost. A request whose reply was lost may be charged twice: in Redis, and in the
// process that decided it then. Not all processes find out at the same time that Redis is back. So for some seconds a
// request must pass Redis and the process's portion: what the other processes still owe is in their portions. A process
// that ends while Redis is away takes what it owes with it.
//
// Redis may return without its data, or lose the data while it runs. Then each process raises the buckets that it uses
// to the levels that it knows. Such a level is the level that the process last saw in Redis, plus the process's own
// charges during the outage. So the tokens of a limit are not admitted twice. lost.go describes how a process notices
// the loss. A process does not know charges that it had not seen when the data was lost. These tokens can be admitted
// twice, until a process that has seen the charges uses the bucket.
//
// If this process does not know the level of a bucket when Redis goes away, it begins with its full portion of the
// bucket. So during an outage N replicas that know each other admit at most C + T*R/P more than Redis admitted
// before. If a bucket has fewer tokens than there are replicas, each token is in the portion of one replica, and the
// other replicas deny. Replicas that do not know each other hold at least one token each.
//
// Leases follow the same policies. Under local_share a process grants its portion of the capacity, minus its part of
// the leases in the last reply of Redis. It renews its own leases. Under open, leases are not counted. After recovery,
// the first renewal of a lease that was granted during the outage moves the lease to Redis, if the rule has room. If a
// release does not reach Redis, it returns an error, and the lease ends at its time. During an outage at most Burst
// leases are granted in addition to the leases that Redis had granted. If the replicas do not know each other, each
// replica may grant one lease, so there may be more than Burst.
//
// While Redis is away, a process remembers the ids that it charges then. It does not know those that were charged in
// Redis, and Redis does not learn of its own.
//
// While Redis is away, a process continues the bans that it has seen in Redis, and counts denials by itself. After
// recovery the bans in Redis count. If Redis loses its data, it loses the bans, too.
//
// Without a store the package runs in local mode: one process with the same rules, arithmetic and results.
package ratelimit
