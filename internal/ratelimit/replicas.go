package ratelimit

import (
	"slices"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// MaxReplicas is the most replicas that a bucket is divided among. It keeps a share's arithmetic exact: units per token stay
// below 2^45 * 256 = 2^53. Of more replicas, 256 hold a share of a bucket, others of another one.
const MaxReplicas = 256

// Replicas are the processes that a rule is divided among while Redis is away. A value does not change; nil is one process
// alone.
type Replicas struct {
	count  int // at least 1
	named  bool
	self   uint64   // if named
	others []uint64 // if named: fewer than count if more are to be reckoned with than are known
}

// Unnamed are n replicas, at least 1 and at most MaxReplicas, of which nobody knows the others. They cannot agree on who
// holds what does not divide.
func Unnamed(n int) *Replicas { return &Replicas{count: min(max(n, 1), MaxReplicas)} }

// named are self and others, and at least floor.
func named(self uint64, others []uint64, floor int) *Replicas {
	return &Replicas{count: max(1+len(others), floor), named: true, self: self, others: slices.Clone(others)}
}

// Count is how many they are.
func (r *Replicas) Count() int {
	if r == nil {
		return 1
	}
	return r.count
}

// Live is how many are known to live, this one included.
func (r *Replicas) Live() int {
	if r == nil {
		return 1
	}
	return 1 + len(r.others)
}

// Share says how a bucket of a capacity is divided: so many replicas hold a share, of at least so many tokens each. They are
// all replicas, unless there are more of them than tokens.
func (r *Replicas) Share(capacity int64) (holders, tokens int64) {
	n := int64(min(r.Count(), MaxReplicas))
	if r == nil || r.named {
		n = min(n, capacity)
	}
	return n, max(1, capacity/n)
}

// portion is this process' part of the bucket under a key. Those of all replicas add up to the capacity and the rate, or to
// less if more are reckoned with than live: as long as all know the same replicas, they agree on an order of them that each
// bucket has for itself (rendezvous hashing), and its first have the tokens that do not divide.
//
// Unnamed replicas have at least one token each, which together may be more than the capacity, of no more than the rate.
func (r *Replicas) portion(capacity int64, key string) rule.Portion {
	holders, tokens := r.Share(capacity)
	p := rule.Portion{Tokens: tokens, Holders: holders}
	if r == nil || !r.named {
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

// place is this process' place in a bucket's order, from 0. Replicas that are only reckoned with come last.
func (r *Replicas) place(key string) int64 {
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

// weight mixes a bucket's hash and an id as SplitMix64 does, so that each bucket has an order that tells nothing of another's.
func weight(hash, id uint64) uint64 {
	w := hash ^ id
	w = (w ^ w>>30) * 0xbf58476d1ce4e5b9
	w = (w ^ w>>27) * 0x94d049bb133111eb
	return w ^ w>>31
}

// LimitOf returns the limit with which this process decides the bucket of rule under key: the rule's own, or this process' part
// of it.
func (r *Replicas) LimitOf(of *rule.Rule, key string) rule.Limit {
	if r.Count() <= 1 {
		return of.Limit()
	}
	p := r.portion(of.Limit().Capacity(), key)
	if p == (rule.Portion{Tokens: of.Limit().Capacity(), Holders: 1}) {
		return of.Limit()
	}
	return of.Limit().Share(p)
}
