package replica

import (
	"slices"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Max is the largest number of replicas that share one bucket. It keeps the arithmetic of a share exact: units per
// token stay below 2^45 * 256 = 2^53. If there are more than 256 replicas, each bucket is shared by 256 of them. These
// 256 replicas differ from bucket to bucket.
const Max = 256

// Set is the set of replicas that share the rules while Redis is away. A Set is immutable. A nil Set means that this
// process is the only replica.
type Set struct {
	count  int      // number of replicas by which rules are divided, at least 1
	known  bool     // whether self and others are known
	self   uint64   // this process
	others []uint64 // may be fewer than count-1, because count has a configured minimum
}

// Anonymous returns a Set of n replicas that do not know each other. n is limited to 1..Max. If a capacity cannot be
// divided by n, such replicas cannot agree which of them hold the tokens of the remainder.
func Anonymous(n int) *Set { return &Set{count: min(max(n, 1), Max)} }

// Known returns the set of self and others. Rules are divided by their number, or by minimum if it is larger.
func Known(self uint64, others []uint64, minimum int) *Set {
	return &Set{count: max(1+len(others), minimum), known: true, self: self, others: slices.Clone(others)}
}

// Count returns the number of replicas by which rules are divided.
func (r *Set) Count() int {
	if r == nil {
		return 1
	}
	return r.count
}

// Live returns the number of known live replicas, including this process.
func (r *Set) Live() int {
	if r == nil {
		return 1
	}
	return 1 + len(r.others)
}

// Share returns two numbers for a bucket with the given capacity: the replicas that hold a share of it, and the tokens
// of the smallest share. Every replica holds a share, unless there are more replicas than tokens.
func (r *Set) Share(capacity int64) (holders, tokens int64) {
	n := int64(min(r.Count(), Max))
	if r == nil || r.known {
		n = min(n, capacity)
	}
	return n, max(1, capacity/n)
}

// Portion returns this process's part of the bucket under key. The portions of all replicas sum to the rule's
// capacity and rate. The sum is less if the configured minimum exceeds the number of live replicas. Replicas that
// know each other compute the same order of replicas for a bucket (rendezvous hashing). If the capacity cannot be
// divided evenly, the first replicas in this order get one token more.
//
// Anonymous replicas have at least one token each. Together these tokens may exceed the capacity, but not the rate.
func (r *Set) Portion(capacity int64, key string) rule.Portion {
	holders, tokens := r.Share(capacity)
	p := rule.Portion{Tokens: tokens, Holders: holders}
	if r == nil || !r.known {
		return p
	}
	more := capacity - tokens*holders
	if more == 0 && holders == int64(r.count) {
		return p
	}
	switch place := r.place(key); {
	case place >= holders:
		p.Tokens = 0
	case place < more:
		p.Tokens++
	}
	return p
}

// place returns this process's position, from 0, in the order of replicas for a bucket. Replicas that are not known,
// but counted because of the minimum, come last.
func (r *Set) place(key string) int64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * prime
	}
	place, own := int64(0), weight(hash, r.self)
	for _, id := range r.others {
		if w := weight(hash, id); w > own || w == own && id > r.self {
			place++
		}
	}
	return place
}

// weight mixes the hash of a bucket with a replica's id, as SplitMix64 does. So the orders of replicas for two
// buckets are independent.
func weight(hash, id uint64) uint64 {
	w := hash ^ id
	w = (w ^ w>>30) * 0xbf58476d1ce4e5b9
	w = (w ^ w>>27) * 0x94d049bb133111eb
	return w ^ w>>31
}

// LimitOf returns the limit with which this process decides a bucket while Redis is away. If there is one replica,
// this is the rule's own limit, else this process's portion of it.
func (r *Set) LimitOf(of *rule.Rule, key string) rule.Limit {
	if r.Count() <= 1 {
		return of.Limit()
	}
	p := r.Portion(of.Limit().Capacity(), key)
	if p == (rule.Portion{Tokens: of.Limit().Capacity(), Holders: 1}) {
		return of.Limit()
	}
	return of.Limit().Share(p)
}
