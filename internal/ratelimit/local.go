package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/redisstore"
)

const (
	// levelShards is how many locks the levels are spread over, by tenant: a request's buckets are decided under one.
	levelShards = 64

	// DefaultMaxLocalLevels bounds the levels a process holds: about 200 bytes each, 20 MB. Beyond it the fullest of a
	// few is forgotten, which gives its owner at most what was missing.
	DefaultMaxLocalLevels = 100_000

	// evictSample is how many levels are looked at to find one to forget; two of them are looked at on every insertion,
	// so that full buckets disappear as fast as new ones come.
	evictSample, sweepSample = 8, 2
)

// levels are bucket levels held in this process. In local mode they are the state. Beside Redis they are its copy, kept
// warm by every reply, from which the process goes on alone when Redis is away.
type levels struct {
	seed    maphash.Seed
	max     int // per shard
	metrics *Metrics
	shards  [levelShards]levelShard
}

type levelShard struct {
	mu   sync.Mutex
	all  map[string]localLevel
	logs int // places that logs take beside their own
}

type localLevel struct {
	rule.State
	// fullAt is when the bucket is full, in us: it can be forgotten then.
	fullAt int64
	// of is the limit the level belongs to if it is Redis' level, and nil if it is this process' own.
	of rule.Limit
}

// logPlace is the tokens of a log that take as much memory as a level: a log of 1,000 is 41 levels.
const logPlace = 25

// extra is the places a level takes beside its own.
func (e *localLevel) extra() int { return cap(e.Log) / logPlace }

func newLevels(maximum int, metrics *Metrics) *levels {
	if maximum <= 0 {
		maximum = DefaultMaxLocalLevels
	}
	l := &levels{seed: maphash.MakeSeed(), max: max(1, maximum/levelShards), metrics: metrics}
	for i := range l.shards {
		l.shards[i].all = make(map[string]localLevel)
	}
	return l
}

func (l *levels) shard(tag string) *levelShard { return &l.shards[l.shardOf(tag)] }

func (l *levels) shardOf(tag string) uint64 { return maphash.String(l.seed, tag) % levelShards }

// lock holds the shards of q's buckets, always in the same order. A tenant's are all in one.
func (l *levels) lock(q *query) (unlock func()) {
	var held uint64 // a bit per shard
	for i := range q.charges {
		held |= 1 << l.shardOf(q.charges[i].tag)
	}
	for rest := held; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	return func() {
		for rest := held; rest != 0; rest &= rest - 1 {
			l.shards[bits.TrailingZeros64(rest)].mu.Unlock()
		}
	}
}

// decide is the script's work in this process: q all or nothing, on this process' shares of the buckets.
func (l *levels) decide(q *query, now int64, replicas *replica.Set) answer {
	defer l.lock(q)()

	a := answer{allowed: true, rows: make([]row, len(q.charges))}
	for i := range q.charges {
		c := &q.charges[i]
		b := replicas.LimitOf(c.rule, c.key)
		st := b.Advance(l.shard(c.tag).at(c.key, now).in(b), c.at(now))
		code := rule.Pass
		if q.op != rule.Refund {
			code = rule.Judge(b, st, c.cost)
		}
		if code == rule.Never && c.cost <= c.rule.Burst {
			code = rule.Denied // beyond this replica's share, not beyond the rule
		}
		if code != rule.Pass && !c.rule.Shadow {
			a.allowed = false
		}
		a.rows[i] = row{code: code, st: st}
	}
	for i := range q.charges {
		c, r := &q.charges[i], &a.rows[i]
		b := replicas.LimitOf(c.rule, c.key)
		dirty := r.st.Rebased
		switch {
		case q.op == rule.Refund:
			before := r.st
			r.st = b.Refund(before, c.cost, c.taken)
			dirty = dirty || r.st.Used != before.Used || r.st.Prev != before.Prev
		case q.op == rule.Consume && a.allowed && r.code == rule.Pass:
			r.st, dirty = b.Charge(r.st, c.cost), true
		}
		if dirty {
			l.keep(l.shard(c.tag), c.key, now, b, nil, r.st)
		}
	}
	return a
}

// observe notes what Redis has said about a call's buckets. now is this process' clock, which the levels are kept in. Only a
// Redis that charged something makes up for what was charged here meanwhile: one that is out of memory, or a replica that is
// read-only, goes on answering peeks from buckets in which nothing was ever charged.
func (l *levels) observe(v *vector, results []redisstore.Result[answer], charged bool, now int64) {
	last := v.last(results)
	for at, key := range v.keys {
		l.observeKey(v.tags[at], key, v.rules[v.ruleOf[at]].rule.Limit(), last[at], charged, now)
	}
}

func (l *levels) observeKey(tag, key string, of rule.Limit, r *row, charged bool, now int64) {
	shard := l.shard(tag)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if own := shard.at(key, now); !charged && own.fullAt != 0 && own.of == nil {
		return
	}
	if r.code != rule.Corrupt && r.code != rule.Stale { // otherwise the local level is all there is
		l.keep(shard, key, now, of, of, r.st)
	}
}

// keep stores what b says about a bucket settled at now; of is the limit that Redis decided on. It needs the shard's lock.
func (l *levels) keep(shard *levelShard, key string, now int64, b, of rule.Limit, st rule.Level) {
	s, until := b.Store(st, now)
	if s.Empty() {
		until = now + st.Ahead
	}
	if until <= now {
		l.drop(shard, key)
		return
	}
	l.put(shard, key, now, localLevel{State: s, fullAt: until, of: of})
}

// at is a key's level, which is no level at all once the bucket is full: whether it has been forgotten by then must not
// matter, not even to a rule whose rate has changed since.
func (s *levelShard) at(key string, now int64) localLevel {
	if e := s.all[key]; e.fullAt > now {
		return e
	}
	return localLevel{}
}

// in is the level in terms of b. A level of Redis becomes the same fraction of b, rounded up to be on the safe side.
func (e localLevel) in(b rule.Limit) rule.State {
	if e.of == nil || e.of == b {
		return e.State
	}
	return b.Scale(e.State, e.of)
}

// put needs the shard's lock.
func (l *levels) put(shard *levelShard, key string, now int64, e localLevel) {
	old, known := shard.all[key]
	if known {
		shard.logs -= old.extra()
	} else {
		l.makeRoom(shard, now)
		l.metrics.localLevels.Inc()
	}
	shard.all[key] = e
	shard.logs += e.extra()
	for len(shard.all) > 1 && len(shard.all)+shard.logs > l.max { // a log has grown
		l.makeRoom(shard, now)
	}
}

func (l *levels) drop(shard *levelShard, key string) {
	if e, known := shard.all[key]; known {
		shard.logs -= e.extra()
		delete(shard.all, key)
		l.metrics.localLevels.Dec()
	}
}

// makeRoom forgets full buckets, and if there is still no room for another, the one of a few that is full the soonest.
// Ranging over a map starts anywhere, which makes the first few a sample.
func (l *levels) makeRoom(shard *levelShard, now int64) {
	crowded := len(shard.all)+shard.logs >= l.max
	sample := sweepSample
	if crowded {
		sample = evictSample
	}
	soonest, at := "", int64(0)
	for key, e := range shard.all {
		if e.fullAt <= now {
			l.drop(shard, key)
			crowded = false
		} else if soonest == "" || e.fullAt < at {
			soonest, at = key, e.fullAt
		}
		if sample--; sample == 0 {
			break
		}
	}
	if crowded {
		l.drop(shard, soonest)
	}
}

// ticker turns a clock with a monotonic reading into microseconds that do not jump when the wall clock is set.
type ticker struct {
	now   func() time.Time
	start time.Time
}

func (t ticker) micros() int64 {
	return t.start.UnixMicro() + t.now().Sub(t.start).Microseconds()
}
