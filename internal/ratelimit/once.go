package ratelimit

import (
	"hash/fnv"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// OnceFor is how long an id remembers a rule that it has charged. The script has the same constant.
const OnceFor = 10 * time.Minute

// maxLocalIDs is the largest number of ids in a stripe. A process has up to 65,536 ids, of about 200 bytes each. The id
// selects its stripe, so one tenant can use all of this memory. If a stripe is full, a new id replaces another one, if
// possible one that remembers nothing any more.
const maxLocalIDs = 1024

// onceKey identifies the id of a request (Request.Once). The zero value is no id.
type onceKey struct {
	tag string // the hash tag of the buckets that are charged
	id  string // a hash of tenant and id
}

func newOnceKey(tenant, id string) onceKey {
	return onceKey{tag: bound.Tag(tenant), id: rule.Dimension("id", tenant, id)}
}

// in returns the key of the same id for buckets with another hash tag. On a cluster each slot remembers what it has
// charged itself.
func (k onceKey) in(tag string) onceKey {
	if k == (onceKey{}) {
		return k
	}
	return onceKey{tag: tag, id: k.id}
}

// identified reports whether q charges or refunds under an id.
func (q *query) identified() bool {
	return q.once != (onceKey{}) && (q.op == rule.Consume || q.op == rule.Refund)
}

// key returns the key in Redis. No key of a bucket has two letters after its hash tag.
func (k onceKey) key() string { return "rl:{" + k.tag + "}id:" + k.id }

// markOf returns the number under which ids remember a rule: 1..2^53-1.
func markOf(r *rule.Rule) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.ID)) // it never fails
	return int64(h.Sum64()>>11) | 1
}

// chargedRules has the rules that an id has charged in this process, and when, in us. In local mode there is no other
// state. With Redis, these are charges that Redis did not decide.
type chargedRules map[string]int64

// recognize marks the charges of q whose rules its id has charged in this process. The caller holds the lock.
func (l *localState) recognize(q *query, now int64) {
	if q.op != rule.Consume || !q.identified() {
		return
	}
	known := l.stripe(q.once.id).once[q.once]
	for i := range q.charges {
		at, again := known[q.charges[i].rule.ID]
		q.charges[i].again = again && now < at+OnceFor.Microseconds()
	}
}

// noteOnce stores which rules q has charged or refunded in this process under its id. The caller holds the lock.
func (l *localState) noteOnce(q *query, now int64, a *answer) {
	if !q.identified() || !a.allowed {
		return
	}
	shard := l.stripe(q.once.id)
	for i := range q.charges {
		id, r := q.charges[i].rule.ID, &a.results[i]
		switch {
		case r.code != rule.Pass:
		case q.op == rule.Refund:
			delete(shard.once[q.once], id)
		case q.op == rule.Consume && r.banned == 0:
			shard.identified(q.once, now)[id] = now
		}
	}
}

// identified returns the rules that an id has charged, for a change. The caller holds the lock.
func (s *stripe) identified(id onceKey, now int64) chargedRules {
	if s.once == nil {
		s.once = make(map[onceKey]chargedRules)
	}
	if s.once[id] == nil {
		if len(s.once) >= maxLocalIDs {
			s.dropIDs(now)
		}
		s.once[id] = make(chargedRules, 1)
	}
	return s.once[id]
}

// dropIDs examines a sample of ids and drops those that remember nothing any more. If there is none, it drops one id of
// the sample. The caller holds the lock.
func (s *stripe) dropIDs(now int64) {
	sample, last, room := evictSample, onceKey{}, false
	for id, rules := range s.once {
		if rules.forgotten(now) {
			delete(s.once, id)
			room = true
		}
		last = id
		if sample--; sample == 0 {
			break
		}
	}
	if !room {
		delete(s.once, last)
	}
}

func (c chargedRules) forgotten(now int64) bool {
	for _, at := range c {
		if now < at+OnceFor.Microseconds() {
			return false
		}
	}
	return true
}
