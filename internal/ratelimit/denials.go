package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// denialFor is the longest a denial is remembered. It bounds what a process can miss: a refund or reset by another one, a
	// clock that was set forward, a failover that has lost charges.
	denialFor = time.Second

	// denialShards is how many locks the denials are spread over, and denialsMax how many there may be: each about 200 bytes.
	// What finds no place is not remembered.
	denialShards = 64
	denialsMax   = 65_536

	// denialSweep is how many are looked at for one that is over when a new one comes: more than one, so that they go as
	// fast as they come.
	denialSweep = 2
)

// denials are what Redis denied just now. A bucket that cannot pay a cost cannot pay it, or more, before the time it said,
// whoever else asks meanwhile: until then the answer is known, and a caller who hammers at a closed door does not reach Redis.
//
// Tokens come back earlier only by a refund or a reset, which forget, by a change of the rule, which has another limit, and by
// another process' refund, which is why nothing is remembered for long.
type denials struct {
	seed   maphash.Seed
	live   atomic.Int64 // entries: none is the normal case, and costs nothing
	shards [denialShards]denialShard
}

type denialShard struct {
	forgotten atomic.Uint64 // counts forget: a denial that was decided before it is not remembered after it

	mu  sync.Mutex
	all map[string]denial
}

type denial struct {
	limit rule.Limit
	zone  *time.Location
	cost  int64 // this and more
	until int64 // us: how long it is remembered
	back  int64 // us: when the cost passes, as Redis said
}

func newDenials() *denials {
	d := &denials{seed: maphash.MakeSeed()}
	for i := range d.shards {
		d.shards[i].all = make(map[string]denial)
	}
	return d
}

func (d *denials) shard(key string) *denialShard {
	return &d.shards[maphash.String(d.seed, key)%denialShards]
}

// of is the denial that is remembered and holds for c, if there is one.
func (d *denials) of(c *charge, now int64) (denial, bool) {
	if d.live.Load() == 0 {
		return denial{}, false
	}
	s := d.shard(c.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.all[c.key]
	switch {
	case !known:
		return denial{}, false
	case e.until <= now:
		d.drop(s, c.key)
		return denial{}, false
	default:
		return e, e.holdsFor(c)
	}
}

// holdsFor reports whether c is denied, too, and what is known says when it passes: of a log only Redis knows when other costs
// do.
func (e *denial) holdsFor(c *charge) bool {
	sameRule := e.limit == c.rule.Limit() && e.zone == c.zone
	return sameRule && (c.cost == e.cost || c.cost > e.cost && c.rule.Kind != rule.KindSlidingLog)
}

// asOf is what remember needs to know from before the decision.
func (d *denials) asOf(q *query) (forgotten [MaxCharges]uint64) {
	for i := range q.charges {
		forgotten[i] = d.shard(q.charges[i].key).forgotten.Load()
	}
	return forgotten
}

// remember notes that c was denied for wait, as of asked at the earliest.
func (d *denials) remember(c *charge, asOf uint64, asked int64, wait time.Duration) {
	e := denial{
		limit: c.rule.Limit(), zone: c.zone, cost: c.cost, until: asked + min(wait, denialFor).Microseconds(), back: asked + wait.Microseconds(),
	}
	s := d.shard(c.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.all[c.key]
	switch {
	case s.forgotten.Load() != asOf:
		return
	case known && old.limit == e.limit && old.zone == e.zone && old.cost <= e.cost && old.until >= e.until:
		return
	case !known:
		d.sweep(s, asked)
		if len(s.all) >= denialsMax/denialShards {
			return
		}
		d.live.Add(1)
	}
	s.all[c.key] = e
}

// forget drops what is known about a bucket.
func (d *denials) forget(key string) {
	s := d.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten.Add(1)
	d.drop(s, key)
}

// forgetAll drops everything.
func (d *denials) forgetAll() {
	for i := range d.shards {
		s := &d.shards[i]
		s.mu.Lock()
		s.forgotten.Add(1)
		d.live.Add(-int64(len(s.all)))
		clear(s.all)
		s.mu.Unlock()
	}
}

// drop needs the shard's lock.
func (d *denials) drop(s *denialShard, key string) {
	if _, known := s.all[key]; known {
		delete(s.all, key)
		d.live.Add(-1)
	}
}

// sweep needs the shard's lock. Ranging over a map starts anywhere.
func (d *denials) sweep(s *denialShard, now int64) {
	looked := 0
	for key, e := range s.all {
		if e.until <= now {
			d.drop(s, key)
		}
		if looked++; looked == denialSweep {
			return
		}
	}
}

// remembers reports whether a kind's denials hold until the time they say, whatever happens to the bucket meanwhile: those of
// all that the script decides. Nothing comes back before its time, and what others take only makes it later.
func remembers(k rule.Kind) bool { return k >= rule.KindTokenBucket && k <= rule.KindSlidingLog }

// recall denies q from memory, if Redis has just denied one of its charges. The other verdicts are as of Redis' last word; where
// that would deny one more, which Redis has not, it is asked.
func (l *Limiter) recall(q *query) (d Decision, denied bool) {
	if l.denials.live.Load() == 0 {
		return Decision{}, false
	}
	now := l.ticker.micros()
	var back [MaxCharges]int64
	for i := range q.charges {
		if c := &q.charges[i]; !c.rule.Shadow {
			if e, known := l.denials.of(c, now); known {
				back[i], denied = e.back, true
			}
		}
	}
	if !denied {
		return Decision{}, false
	}
	guess := *q
	guess.op = rule.Peek
	d = decision(&guess, l.levels.decide(&guess, now, nil), nil, ModeMemo)
	d.Allowed = false
	for i, t := range back[:len(q.charges)] {
		switch v := &d.Verdicts[i]; {
		case v.Never || v.Shadow:
		case t != 0:
			v.deny(q.charges[i].rule.Kind, time.Duration(t-now)*time.Microsecond)
		case !v.Allowed:
			return Decision{}, false
		}
	}
	return d, true
}

// deny makes v a denial for wait, as Redis said. Others may have taken more since, and of all kinds but logs a process knows when
// that comes back.
func (v *Verdict) deny(kind rule.Kind, wait time.Duration) {
	v.Allowed = false
	if kind != rule.KindSlidingLog {
		wait = max(wait, v.RetryAfter)
	}
	v.RetryAfter = wait
}

// learn remembers what Redis has denied. asked and asOf are from before it was asked.
func (l *Limiter) learn(q *query, d *Decision, asked int64, asOf *[MaxCharges]uint64) {
	if d.Allowed || l.cfg.forgetful {
		return
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if c := &q.charges[i]; !v.Allowed && !v.Never && !v.Shadow && v.RetryAfter > 0 && remembers(c.rule.Kind) {
			l.denials.remember(c, asOf[i], asked, v.RetryAfter)
		}
	}
}

// forget drops what is remembered about q's buckets.
func (l *Limiter) forget(q *query) {
	for i := range q.charges {
		l.denials.forget(q.charges[i].key)
	}
}

// ForgetDenials makes the next request of each bucket reach Redis: after a bucket was deleted, for example.
func (l *Limiter) ForgetDenials() { l.denials.forgetAll() }
