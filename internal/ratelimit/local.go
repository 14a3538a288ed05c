package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// localStripes is the number of stripes, each with its own lock. The hash tag of a bucket selects its stripe, so
	// all buckets of a tenant are in one stripe, except for buckets of shared rules.
	localStripes = 64

	// DefaultMaxLocalLevels is the default largest number of levels in a process: about 200 bytes each, 20 MB in all.
	// When it is reached, a sample of levels is examined, and the level whose bucket will be full first is dropped.
	// This bucket then counts as full, so it gains at most the tokens that were missing.
	DefaultMaxLocalLevels = 100_000

	// evictSample is the number of levels that are examined when one of them must be dropped. Every insertion examines
	// sweepSample levels, so that full buckets are dropped as fast as new levels are added.
	evictSample, sweepSample = 8, 2
)

// localState has the levels of buckets in this process. In local mode there is no other state. With Redis the levels
// are copies, which every reply updates. The process continues from these copies when Redis is away.
type localState struct {
	seed    maphash.Seed
	max     int // per stripe
	metrics *Metrics
	dropped func(key string) // called with the key of a dropped level whose bucket is not full; may be nil
	epochs  *epochs          // of the data in Redis; nil in local mode
	stripes [localStripes]stripe

	carry    func()       // called when something is owed
	owing    atomic.Int64 // number of owed buckets of all stripes, and of calls in unsure
	unsureMu sync.Mutex
	unsure   map[string][]raiseCall // by the key of the epoch: raises of which the outcome is not known
}

type stripe struct {
	mu   sync.Mutex
	all  map[string]localLevel
	owed map[string]charge        // by key: levels whose charges in this process Redis has not got yet; nil if there are none yet
	bans map[string]localBan      // nil if there are none yet
	once map[onceKey]chargedRules // nil if there are none yet
	logs int                      // the sum of extra over the levels
}

type localLevel struct {
	rule.State
	// fullAt is the time at which the bucket is full, in µs. From then on the level is not needed.
	fullAt int64
	// of is the limit with which Redis decided, or nil if this process decided.
	of rule.Limit

	epoch int64         // epoch of the data in Redis to which the level belongs; 0 if there is none
	ahead int64         // µs by which Redis's clock is ahead of this process's clock, if Redis decided
	whole *withoutRedis // nil in local mode, and if Redis decided
}

// logPlace is the number of log entries that take as much memory as a level. So a log of 1,000 entries counts as 41
// levels.
const logPlace = 25

// extra returns the number of levels that take as much memory as the log of e.
func (e *localLevel) extra() int { return cap(e.Log) / logPlace }

func newLocalState(maximum int, metrics *Metrics) *localState {
	if maximum <= 0 {
		maximum = DefaultMaxLocalLevels
	}
	l := &localState{seed: maphash.MakeSeed(), max: max(1, maximum/localStripes), metrics: metrics, unsure: make(map[string][]raiseCall)}
	for i := range l.stripes {
		l.stripes[i].all = make(map[string]localLevel)
	}
	return l
}

func (l *localState) stripe(tag string) *stripe { return &l.stripes[l.stripeOf(tag)] }

func (l *localState) stripeOf(tag string) uint64 { return maphash.String(l.seed, tag) % localStripes }

// lock locks the stripes of q's buckets, in ascending order, so that two calls cannot deadlock.
func (l *localState) lock(q *query) (unlock func()) {
	var held uint64 // a bit per stripe
	for i := range q.charges {
		held |= 1 << l.stripeOf(q.charges[i].tag)
	}
	if q.identified() {
		held |= 1 << l.stripeOf(q.once.id)
	}
	for rest := held; rest != 0; rest &= rest - 1 {
		l.stripes[bits.TrailingZeros64(rest)].mu.Lock()
	}
	return func() {
		for rest := held; rest != 0; rest &= rest - 1 {
			l.stripes[bits.TrailingZeros64(rest)].mu.Unlock()
		}
	}
}

// decide decides q in this process, as the script does in Redis. It charges all charges of q or none, on this
// process's portions of the buckets.
func (l *localState) decide(q *query, now int64, replicas *replica.Set) answer {
	defer l.lock(q)()
	l.recognize(q, now)

	a := answer{allowed: true, results: make([]bucketResult, len(q.charges))}
	for i := range q.charges {
		c := &q.charges[i]
		b := replicas.LimitOf(c.rule, c.key)
		st := b.Advance(l.known(c, now).in(b), c.at(now))
		code := rule.Pass
		switch {
		case c.again:
			code = rule.Again
		case q.op == rule.Consume, q.op == rule.Peek:
			code = rule.Judge(b, st, c.cost)
		}
		if code == rule.Never && c.cost <= c.rule.Burst {
			code = rule.Denied // the cost exceeds this replica's portion, but not the rule's burst
		}
		a.results[i] = bucketResult{code: code, level: st}
		if c.rule.Ban.After > 0 {
			l.judge(q.op, c, now, &a.results[i])
		}
		if !c.rule.Shadow && (code != rule.Pass && code != rule.Again || a.results[i].banned > 0) {
			a.allowed = false
		}
	}
	for i := range q.charges {
		c, r := &q.charges[i], &a.results[i]
		b := replicas.LimitOf(c.rule, c.key)
		before := r.level
		switch {
		case q.op == rule.Refund:
			r.level = b.Refund(before, c.cost, c.taken)
		case q.op == rule.Consume && a.allowed && r.code == rule.Pass && r.banned == 0:
			r.level = b.Charge(before, c.cost, rule.UnknownTime)
		case q.op == rule.Late:
			if c = c.late(b, r); r.taken > 0 {
				r.level = b.Charge(before, r.taken, c.taken)
			}
		}
		changed := r.level.Used != before.Used || r.level.Prev != before.Prev
		if changed || before.Rebased || before.MustStore {
			l.keepOwn(q, c, now, b, r.level, changed, replicas)
		}
	}
	l.noteOnce(q, now, &a)
	return a
}

// late stores in r the number of tokens that a charge after the fact takes. It returns a copy of c with this cost.
func (c *charge) late(b rule.Limit, r *bucketResult) *charge {
	taken := *c
	r.taken = rule.Taken(b, r.level, c.cost)
	taken.cost = r.taken
	return &taken
}

// keepOwn stores the level after a decision of this process. changed means that q has charged or refunded tokens. The
// caller holds the lock.
func (l *localState) keepOwn(q *query, c *charge, now int64, b rule.Limit, st rule.Level, changed bool, replicas *replica.Set) {
	shard := l.stripe(c.tag)
	e := shard.at(c.key, now)
	next := localLevel{epoch: e.epoch, whole: e.whole}
	if changed && l.epochs != nil {
		if next.whole = e.charged(q, c, now, b, replicas); e.epoch == 0 {
			next.epoch = l.epochs.of(c.tag)
		}
		if !q.mirrored {
			l.owe(shard, c)
		}
	}
	l.keep(shard, c.key, now, b, next, st)
}

// owe records that Redis lacks charges of c's bucket. The caller holds the lock.
func (l *localState) owe(shard *stripe, c *charge) {
	if shard.owed == nil {
		shard.owed = make(map[string]charge)
	}
	if _, known := shard.owed[c.key]; !known {
		l.owing.Add(1)
		l.carry()
	}
	shard.owed[c.key] = *c
}

// unowe records that Redis lacks no charges of a bucket. The caller holds the lock.
func (l *localState) unowe(shard *stripe, key string) {
	if _, known := shard.owed[key]; known {
		delete(shard.owed, key)
		l.owing.Add(-1)
	}
}

// known returns the level of a charge's bucket. If the level is from Redis and of another version of the rule, known
// first converts it to the present version. The caller holds the lock.
func (l *localState) known(c *charge, now int64) localLevel {
	shard, full := l.stripe(c.tag), c.rule.Limit()
	e := shard.at(c.key, now)
	if e.of == nil || e.of == full {
		return e
	}
	l.keep(shard, c.key, now, full, localLevel{of: full, epoch: e.epoch, ahead: e.ahead}, full.Advance(e.State, c.at(now)))
	return shard.at(c.key, now)
}

// observe copies the levels from a reply of Redis to this process, except for buckets of which Redis lacks charges of
// this process. If returning is true, Redis may also lack charges of other processes. Then this process keeps the levels
// of its portions. now is the time by this process's clock. The result `all` reports whether this process now has the
// same level of each bucket as Redis.
func (l *localState) observe(v *vector, results []redisstore.Result[answer], now int64, returning bool) (all bool) {
	last := v.last(results)
	all = true
	for at, key := range v.keys {
		next := localLevel{of: v.rules[v.ruleOf[at]].rule.Limit(), epoch: v.epoch, ahead: last[at].level.Now - now}
		all = l.observeKey(v.tags[at], key, next, v.rules[v.ruleOf[at]].rule, last[at], now, returning) && all
	}
	return all
}

func (l *localState) observeKey(tag, key string, next localLevel, bans *rule.Rule, r *bucketResult, now int64, returning bool) bool {
	shard := l.stripe(tag)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, owed := shard.owed[key]; owed {
		return false
	}
	if r.code == rule.Corrupt || r.code == rule.Stale { // the reply has no level
		return false
	}
	if bans.Ban.After > 0 {
		shard.observeBan(key, bans, r, now)
	}
	if e := shard.at(key, now); returning && e.whole != nil { // the level of the portion stays
		known, _ := next.of.Store(r.level, now)
		e.whole, e.epoch = &withoutRedis{State: known, sent: e.whole.sent}, next.epoch
		shard.all[key] = e
		return false
	}
	l.keep(shard, key, now, next.of, next, r.level)
	return true
}

// keep stores e with the state of the level st. If the bucket is full, it drops the level instead. The caller holds
// the lock.
func (l *localState) keep(shard *stripe, key string, now int64, b rule.Limit, e localLevel, st rule.Level) {
	s, until := b.Store(st, now)
	e.State = s
	if s.Empty() {
		until = now + st.Ahead
	}
	if until <= now {
		l.drop(shard, key)
		return
	}
	e.fullAt = until
	l.put(shard, key, now, e)
}

// at returns the level of a key. If the bucket is full, it returns the zero level, even if the old level is not
// dropped yet. Otherwise, after a change of the rule's rate, the result would depend on whether the level was
// dropped.
func (s *stripe) at(key string, now int64) localLevel {
	if e := s.all[key]; e.fullAt > now {
		return e
	}
	return localLevel{}
}

// in returns the state under the limit b. A level from Redis is converted to the same fraction of b. The used tokens
// are rounded up, so that no token is given away.
func (e localLevel) in(b rule.Limit) rule.State {
	if e.of == nil || e.of == b {
		return e.State
	}
	return b.Scale(e.State, e.of)
}

// put stores a level. The caller holds the lock.
func (l *localState) put(shard *stripe, key string, now int64, e localLevel) {
	old, known := shard.all[key]
	if known {
		shard.logs -= old.extra()
	} else {
		l.makeRoom(shard, now)
		l.metrics.localLevels.Inc()
	}
	shard.all[key] = e
	shard.logs += e.extra()
	for len(shard.all) > 1 && len(shard.all)+shard.logs > l.max { // this happens if a log has grown
		l.makeRoom(shard, now)
	}
}

// drop drops the level of a key. Only the level has what Redis lacks of the bucket, so nothing is owed any more. The
// caller holds the lock.
func (l *localState) drop(shard *stripe, key string) {
	l.unowe(shard, key)
	if e, known := shard.all[key]; known {
		shard.logs -= e.extra()
		delete(shard.all, key)
		l.metrics.localLevels.Dec()
	}
}

// makeRoom examines a sample of levels and drops the levels of full buckets. If there is still no room for another
// level, it drops the level of the sample whose bucket will be full first. A range over a map starts at a random
// element, so its first elements are a random sample.
func (l *localState) makeRoom(shard *stripe, now int64) {
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
		if l.dropped != nil {
			l.dropped(soonest)
		}
	}
}

// monotonicMicros returns a clock in µs that does not jump when the wall clock is set.
func monotonicMicros(now func() time.Time) func() int64 {
	start := now()
	return func() int64 { return start.UnixMicro() + now().Sub(start).Microseconds() }
}
