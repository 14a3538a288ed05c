// Package ratelimit decides how fast a tenant may go: buckets, windows, logs and leases, exact to the unit, several rules of one request
// all or nothing. The arithmetic of one rule is in package rule, Redis in package redisstore, and other replicas in package replica.
//
// # Terms
//
//   - rule, kind, limit, bucket, dimension, unit, window, level: see package rule. shard, lane, batch, breaker: see package redisstore.
//   - charge: one rule's part of a request. request: the charges of a tenant that are decided together. decision: the result, with a
//     verdict per charge. query: a checked request.
//   - vector: one script call for many queries of one slot.
//   - local state: the levels of buckets in this process. In local mode they are the only state; with Redis they are copies.
//   - denial: a denial by Redis that this process remembers.
//   - debt: what a charge after the fact may take beyond what is left. A bucket that owes passes nothing.
//   - ban: the time for which a bucket that has denied too often denies everything.
//   - epoch: a number that is lost together with the data in Redis, by which a process notices the loss.
//   - lease: one of the Burst places of a concurrency rule. Its holder renews it while it works and releases it. A lease whose holder
//     died ends by itself.
//
// # The way of a check
//
// Limiter.decide checks the request (request.go) and looks for a remembered denial (denials.go). The query then waits in a lane of
// redisstore. The lane's goroutine calls Limiter.send (limiter.go), which encodes the batch into vectors (workbench.go, vector.go), sends
// them, decodes the replies and updates the local state (local.go). If Redis is away, the rules' policies decide (degraded.go).
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens; see package rule for the other kinds.
//     That holds for any number of callers and replicas, as long as Redis decides.
//
//  2. A request is charged on all its rules or on none. A denied or peeked request takes and gives back nothing. On a cluster no script reaches more
//     than one slot, so the slots are charged one after another, the tenant's own last, and earlier charges are refunded when a later
//     slot denies. In between other requests may be denied, never wrongly admitted.
//
//  3. After a verdict's RetryAfter the same cost passes if nothing else was charged. A microsecond earlier it does not.
//
//  4. A cost beyond the capacity is Never, not a wait.
//
//  5. A request is sent to Redis at most once. If the reply is lost, the charge may have happened; it is not repeated.
//
//  6. Requests that share a script call are decided as if each had its own call, in order of arrival per tenant.
//
//  7. The verdict of a shadow rule is reported and counted, and never decides. The rule is charged when the request is allowed and the
//     rule itself passes.
//
//  8. A stored value that is not a bucket is neither treated as an untouched bucket nor overwritten.
//
//  9. At most Burst leases of a concurrency rule are held in a bucket, for any number of callers and replicas, as long as Redis decides
//     and its clock does not jump ahead. A lease that is not renewed ends at its time, and a later renewal fails. A lowered Burst takes no
//     lease away and grants none until enough have ended.
//
//  10. A new rate counts from the first request that is decided with it. Until then the old rate counts. What was taken from a window or log
//     stays taken for as long as the new one says. Neither is forgotten when the old rate's time ends.
//
//  11. A denial from memory is one that Redis would give as well: until the remembered time, or for a second, nothing can have come back
//     except by a refund or reset in another process.
//
//  11. A peek that is not Fresh may be decided from held levels: levels that this process has read, and of which Redis has announced no
//     change (redisstore.Watch). It misses charges of other processes in the last redisstore.HeldFor (25 ms), and no others.
//
//  12. The ban of a bucket starts with the denial that reaches the configured count, counted over all callers and replicas, as long as
//     Redis decides. Until then each denial by such a rule reaches Redis. On a cluster a slot that was not reached denies nothing.
//
// # Clock
//
// Redis's TIME, read once per script call, so replicas need no common clock. A bucket whose time is ahead by up to 5 s waits. A bucket
// further ahead was written before the clock was set back: it continues from now with its level kept. Local decisions use this process's
// monotonic clock.
//
// A calendar window is computed here, from an estimate of Redis's clock, and sent with the call. If Redis's clock is in another window,
// nothing is decided and the call is sent once more with that window. If the clock has jumped again, the rule is decided as if Redis were
// away.
//
// A lease ends by Redis's clock. If that clock is set forward, leases end early. If it is set back by up to 5 s, leases last that much
// longer; if it is set back further, leases keep the time they had left.
//
// # Concurrency
//
// A Limiter is safe for concurrent use. Its goroutines are the lanes' of its store, and those that refund charges in other slots. Stop
// waits for the latter; the store's Stop ends the former.
//
// # Failure
//
// If Redis does not decide within the budget, the rule's OnBackendError decides. local_share continues in this process with its portion
// of the rule, from the level Redis last reported. open passes. closed returns ErrUnavailable. Such a decision is Degraded. After recovery
// local charges are dropped if Redis has kept its data: its levels count again.
//
// If Redis comes back without its data, or loses it in between, the processes raise the buckets that they use to what they know: the level
// last seen in Redis, plus what they charged themselves during the outage. So the limit is not admitted again. See lost.go for how the loss is
// noticed. What a process had not seen when the data was lost can be admitted twice, until the process that has seen it uses the bucket.
//
// If a level is unknown to this process when Redis goes away, it starts as a full portion. So during an outage N replicas that know each
// other admit at most C + T*R/P in addition to what Redis admitted before. A bucket with fewer tokens than replicas is held by as many
// replicas as it has tokens; the others deny. Replicas that do not know each other hold at least one token each.
//
// Leases follow the same policies. Under local_share a process grants its portion of the capacity, less its part of the leases in the
// last reply of Redis, and renews the leases it has. Under open, leases are not counted. After recovery, a lease of the outage moves to
// Redis with its first renewal, if there is room. A release that does not reach Redis is an error; the lease then ends at its time. An
// outage adds at most Burst leases to those that Redis had granted, or one per replica if the replicas do not know each other.
//
// A process continues the bans that it has seen in Redis, and counts denials alone while Redis is away. After recovery the bans of Redis
// count. Bans are lost with its data.
//
// Without a store the package runs in local mode: one process with the same rules, arithmetic and results.
package ratelimit
