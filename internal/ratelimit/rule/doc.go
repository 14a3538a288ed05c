// Package rule has the arithmetic of rate limits: the requests that a rule allows, computed without input or output.
//
// # Terms
//
//   - rule: what is allowed, compiled from a Spec: a kind, a rate, a capacity and a cost per charge. The capacity is
//     the burst of a bucket, or the count of a window.
//   - kind: how the tokens of a bucket come back with time. See Kind.
//   - limit: the arithmetic of a rule in Go. The script lua/limits.lua has the same arithmetic.
//   - bucket: the state of a rule for one tenant and dimension; for a shared rule, for one dimension.
//   - dimension: a hash of the other values that separate buckets, for example subject and route.
//   - tag: the hash tag of a bucket's key. It decides the slot on a cluster.
//   - unit: the fraction of a token in which a bucket counts. It is chosen for each rate, so the refill of a
//     microsecond is a whole number of units.
//   - state: the stored values of a bucket. The zero value is a bucket from which nothing was taken.
//   - level: the state of a bucket as of now. Every decision is made on a level.
//   - window: a period of time whose tokens are counted together. It follows a calendar, or has a fixed length and
//     counts from the epoch.
//   - portion: the part of a bucket that one replica decides while Redis is away.
//
// # Invariants
//
//  1. Over any interval T a bucket of rate R per P and burst C admits at most C + T*R/P tokens. So does a sliding
//     window. A fixed window admits at most its count between two starts. A log admits at most its count in any
//     interval of its period.
//  2. Nothing is rounded in the caller's favour. Buckets and logs are exact: no token is lost or given away over
//     time. All values are below 2^53, so the script computes the same numbers with doubles.
//  3. After Wait the same cost fits if nothing else was charged. A microsecond earlier it does not fit.
//  4. A refund gives back at most its own charge, and no token that has come back by itself. A bucket cannot
//     distinguish tokens: there a refund gives back the missing tokens, at most the charge.
//  5. Portions of one bucket add up to at most the bucket, in tokens and in rate.
//
// # Clock
//
// There is no clock: callers pass the time in microseconds. A state whose time is up to 5 s ahead of now waits. A
// state further ahead was written before its clock was set back: it continues from now with its level kept.
//
// # Concurrency
//
// Rules and limits do not change after Compile and may be shared. States and levels are values.
//
// # Failure
//
// Compile returns a *FieldError that names the field and the bound. No other function fails.
package rule
