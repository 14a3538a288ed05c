// Package rule has the arithmetic of rate limits: it decides which requests a rule allows, without input or output.
//
// # Terms
//
//   - rule: a limit that is compiled from a Spec. It has a kind, a rate, a capacity and a cost per charge. The
//     capacity is the burst of a bucket, or the largest number of tokens in a window.
//   - kind: how the tokens of a bucket come back with time. See Kind.
//   - limit: the arithmetic of a rule in Go. The script lua/limits.lua has the same arithmetic.
//   - bucket: the state of a rule for one tenant and dimension. A shared rule has one bucket for each dimension. In
//     contrast to windows and logs, "buckets" are token and leaky buckets.
//   - dimension: a hash of the values, besides the tenant, that separate buckets, for example subject and route.
//   - tag: the hash tag of a bucket's key. It decides the slot on a cluster.
//   - unit: the fraction of a token in which a bucket counts. It is chosen for each rate, so that the refill in a
//     microsecond is a whole number of units.
//   - state: the stored values of a bucket. The zero value is a bucket from which nothing was taken.
//   - level: the state of a bucket as of now. Every decision is made on a level.
//   - window: a period of time whose tokens are counted together. It follows a calendar, or has a fixed length and
//     counts from the epoch.
//   - portion: the part of a bucket that one replica decides while Redis is away.
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens. The same bound holds
//     for a sliding window. A fixed window admits at most its capacity between its start and its end. A log admits at
//     most its capacity in any interval of its period's length.
//  2. Nothing is rounded in the caller's favour. Buckets and logs are exact: no token is lost or given away over
//     time. All values are below 2^53, so the script computes the same numbers with doubles.
//  3. Limit.Wait returns the time after which the same cost is allowed, if nothing else is charged meanwhile. A
//     microsecond earlier it is not allowed.
//  4. A refund gives back at most the tokens of its charge, and no token that has already come back with time. A
//     token or leaky bucket cannot distinguish tokens. There a refund gives back at most what of the level after the
//     charge has not come back. So a bucket has at most its burst minus what was charged since.
//  5. The portions of one bucket sum to at most the bucket's capacity and rate.
//
// # Clock
//
// The package reads no clock: callers pass the time in microseconds. If the time of a state is up to 5 s ahead of
// now, no tokens come back until the clock has caught up. If it is further ahead, the clock was set back: the state
// keeps its level, and tokens come back from now on. If the state of a fixed window is of the next window, its tokens
// stay taken until that window ends.
//
// # Concurrency
//
// Rules and limits do not change after Compile and may be shared. States and levels are values.
//
// # Failure
//
// Compile returns a *FieldError that names the field and the bound. No other function fails.
package rule
