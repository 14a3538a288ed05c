// Package ratelimit decides at which rate a tenant may send requests: with buckets, windows, logs and leases, exact
// to the unit. Several rules of one request are charged all or none. The arithmetic of one rule is in package rule,
// Redis in package redisstore, and other replicas in package replica.
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
//   - debt: the amount by which a charge after the fact may exceed the tokens left. A bucket that owes passes
//     nothing.
//   - ban: the time for which a bucket that has denied too often denies everything.
//   - epoch: a number that is stored with the data in Redis and is lost with it. By it a process notices the loss.
//   - lease: one of the Burst slots of a concurrency rule. Its holder renews it while it works and releases it. If
//     the holder dies, the lease ends by itself.
//
// # The path of a check
//
// Limiter.decide checks the request (request.go) and looks for a remembered denial (denials.go). The query then waits
// in a lane of redisstore. The lane's goroutine calls Limiter.send (limiter.go). It encodes the batch into vectors
// (workbench.go, vector.go), sends them, decodes the replies and updates the local state (local.go). If Redis is
// away, the rules' policies decide (degraded.go).
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens. Package rule has the
//     bounds of the other kinds. This is so for any number of callers and replicas, as long as Redis decides.
//
//  2. A request is charged on all its rules or on none. A denied or peeked request takes no token and gives none back.
//     On a cluster no script reaches more than one slot. So the slots are charged one after another, the tenant's own
//     slot last. When a later slot denies, earlier charges are refunded. In between other requests may be denied, never
//     wrongly admitted.
//
//  3. After a verdict's RetryAfter the same cost passes if nothing else was charged. A microsecond earlier it does
//     not.
//
//  4. A cost beyond the capacity gets the verdict Never, and no time to wait.
//
//  5. A request is sent to Redis at most once. If the reply is lost, the charge may have happened; it is not
//     repeated.
//
//  6. Requests that share a script call are decided as if each had its own call, in order of arrival per tenant.
//
//  7. The verdict of a shadow rule is reported and counted, and never decides. The rule is charged when the request
//     is allowed and the rule itself passes.
//
//  8. A stored value that is not a bucket is neither treated as an unused bucket nor overwritten.
//
//  9. At most Burst leases of a concurrency rule are held in a bucket, for any number of callers and replicas, as
//     long as Redis decides and its clock does not jump ahead. A lease that is not renewed ends at its time, and a
//     later renewal fails. A lowered Burst ends no lease, and grants none until enough have ended.
//
//  10. A new rate counts from the first request that is decided with it. Until then the old rate counts. Units taken
//     from a window or log stay taken for as long as the new rate requires, even after the old rate's time.
//
//  11. A denial from memory is one that Redis would give as well. Until the remembered time, or for a second, tokens
//     can return only by a refund or reset in another process.
//
//  12. A peek that is not Fresh may be decided from held levels: levels that this process has read, and of which
//     Redis has announced no change (redisstore.Watch). It misses only charges of other processes in the last
//     redisstore.HeldFor (25 ms).
//
//  13. The ban of a bucket starts with the denial that reaches the configured count. All callers and replicas are
//     counted together, as long as Redis decides. Until then each denial by such a rule reaches Redis. On a cluster,
//     a slot that was not reached denies nothing.
//
// # Clock
//
// The clock is Redis's TIME, read once per script call, so replicas need no common clock. A bucket whose time is up
// to 5 s ahead waits. A bucket further ahead was written before the clock was set back: it continues from now with
// its level kept. Local decisions use this process's monotonic clock.
//
// A calendar window is computed here, from an estimate of Redis's clock, and sent with the call. If Redis's clock is
// in another window, nothing is decided, and the call is sent again with that window. If the clock has jumped once
// more, the rule is decided as if Redis were away.
//
// A lease ends by Redis's clock. If that clock is set forward, leases end early. If it is set back by up to 5 s,
// leases last that much longer. If it is set back further, leases keep the time that they had left.
//
// # Concurrency
//
// A Limiter is safe for concurrent use. It uses the goroutines of its store's lanes, and its own goroutines, which
// refund charges in other slots. The store's Stop ends the lanes. Limiter.Stop waits for the refunds.
//
// # Failure
//
// If Redis does not decide within the budget, the rule's OnBackendError decides. local_share continues in this
// process with its portion of the rule, from the level that Redis last reported. open passes. closed returns
// ErrUnavailable. Such a decision is Degraded. If Redis has kept its data, its levels count again after recovery, and
// local charges are dropped.
//
// If Redis comes back without its data, or loses it in between, the processes raise the buckets that they use to the
// levels that they know. Such a level is the one last seen in Redis, plus the process's own charges during the
// outage. So a limit is not admitted twice. lost.go describes how a process notices the loss. A charge that a process
// had not seen when the data was lost can be admitted twice, until the process that has seen it uses the bucket.
//
// If a level is unknown to this process when Redis goes away, it starts as a full portion. So during an outage N
// replicas that know each other admit at most C + T*R/P more than Redis admitted before. If a bucket has fewer tokens
// than there are replicas, each token is held by one replica, and the other replicas deny. Replicas that do not know
// each other hold at least one token each.
//
// Leases follow the same policies. Under local_share a process grants its portion of the capacity, minus its part of
// the leases in the last reply of Redis, and renews its own leases. Under open, leases are not counted. After
// recovery, a lease of the outage moves to Redis with its first renewal, if there is room. A release that does not
// reach Redis is an error; the lease then ends at its time. An outage adds at most Burst leases to those that Redis
// had granted. If the replicas do not know each other, each of them may add one lease, so these may be more than
// Burst.
//
// A process continues the bans that it has seen in Redis, and counts denials alone while Redis is away. After
// recovery the bans of Redis count. Bans are lost together with its data.
//
// Without a store the package runs in local mode: one process with the same rules, arithmetic and results.
package ratelimit
