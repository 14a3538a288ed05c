package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// denialFor bounds how long a denial is remembered, and so how long a process can miss an event: a refund or reset by another
	// process, a clock that was set forward, a failover that lost charges.
	denialFor = time.Second

	// denialStripes is the number of locks, and denialsMax bounds the denials: about 200 bytes each. A denial beyond it is not
	// remembered.
	denialStripes = 64
	denialsMax    = 65_536

	// denialSweep is the number of denials that every insertion checks for expiry: more than one, so that they are dropped as fast
	// as new ones come.
	denialSweep = 2
)

// denials are recent denials by Redis. Such an answer says when the cost would pass. Until then the bucket denies this
// cost and every larger one, whatever other requests do, so Redis need not be asked again.
//
// Tokens come back earlier in three cases only. A refund or reset in this process forgets the denial. A change of the
// rule gives it another limit. For a refund in another process, denialFor bounds how long the denial is remembered.
//
// If the rule has a ban, a denial is remembered only while the bucket is banned. Until the ban begins, every denial must
// reach Redis, because Redis counts them.
type denials struct {
	seed    maphash.Seed
	live    atomic.Int64 // entries; if there are none, as is normal, no lock is taken
	stripes [denialStripes]denialStripe
}

type denialStripe struct {
	forgotten atomic.Uint64 // counts calls of forget; a denial from before a call is not remembered after it

	mu  sync.Mutex
	all map[string]denial
}

type denial struct {
	limit rule.Limit
	zone  *time.Location
	cost  int64 // this cost and larger ones are denied
	until int64 // µs; when it is dropped
	back  int64 // µs; when the cost passes, by the answer of Redis
}

func newDenials() *denials {
	d := &denials{seed: maphash.MakeSeed()}
	for i := range d.stripes {
		d.stripes[i].all = make(map[string]denial)
	}
	return d
}

func (d *denials) stripe(key string) *denialStripe {
	return &d.stripes[maphash.String(d.seed, key)%denialStripes]
}

// of returns the remembered denial that holds for c, if there is one.
func (d *denials) of(c *charge, now int64) (denial, bool) {
	if d.live.Load() == 0 {
		return denial{}, false
	}
	s := d.stripe(c.key)
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

// holdsFor reports whether the denial also denies c, and sets its RetryAfter. For a log only Redis can compute the time
// of another cost.
func (e *denial) holdsFor(c *charge) bool {
	sameRule := e.limit == c.rule.Limit() && e.zone == c.zone
	return sameRule && (c.cost == e.cost || c.cost > e.cost && c.rule.Kind != rule.KindSlidingLog)
}

// asOf returns the forget counters of q's buckets. It must be called before the decision, for remember.
func (d *denials) asOf(q *query) (forgotten [MaxCharges]uint64) {
	for i := range q.charges {
		forgotten[i] = d.stripe(q.charges[i].key).forgotten.Load()
	}
	return forgotten
}

// remember stores that c was denied for wait, counted from asked.
func (d *denials) remember(c *charge, asOf uint64, asked int64, wait time.Duration) {
	e := denial{
		limit: c.rule.Limit(), zone: c.zone, cost: c.cost, until: asked + min(wait, denialFor).Microseconds(), back: asked + wait.Microseconds(),
	}
	s := d.stripe(c.key)
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
		if len(s.all) >= denialsMax/denialStripes {
			return
		}
		d.live.Add(1)
	}
	s.all[c.key] = e
}

// forget drops the denial of a bucket.
func (d *denials) forget(key string) {
	s := d.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten.Add(1)
	d.drop(s, key)
}

// drop removes the denial of a key. The caller holds the lock.
func (d *denials) drop(s *denialStripe, key string) {
	if _, known := s.all[key]; known {
		delete(s.all, key)
		d.live.Add(-1)
	}
}

// sweep removes expired denials of a sample: a range over a map starts at a random element. The caller holds the lock.
func (d *denials) sweep(s *denialStripe, now int64) {
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

// remembers reports whether denials of a kind hold until their RetryAfter, whatever other requests take. They do for
// every kind that the limits script decides.
func remembers(k rule.Kind) bool { return k >= rule.KindTokenBucket && k <= rule.KindSlidingLog }

// recall denies q from memory if Redis has just denied one of its charges. The other verdicts come from the local copies of levels. If
// those would deny another charge, which Redis has not denied, it returns false and Redis decides.
func (l *Limiter) recall(q *query) (d Decision, denied bool) {
	if l.denials.live.Load() == 0 {
		return Decision{}, false
	}
	now := l.micros()
	var back [MaxCharges]int64
	for i := range q.charges {
		c, known := &q.charges[i], false
		if !c.rule.Shadow {
			var e denial
			if e, known = l.denials.of(c, now); known {
				back[i], denied = e.back, true
			}
		}
		if !known && c.rule.Ban.After > 0 {
			return Decision{}, false // if its bucket denies, that counts
		}
	}
	if !denied {
		return Decision{}, false
	}
	return l.denyFromMemory(q, back[:len(q.charges)], now)
}

// denyFromMemory denies q. back has for each charge the time at which its cost passes, 0 for charges that Redis has not
// denied. It returns false if the local copies would deny one of these.
func (l *Limiter) denyFromMemory(q *query, back []int64, now int64) (d Decision, denied bool) {
	guess := *q
	guess.op = rule.Peek
	d = decision(&guess, l.local.decide(&guess, now, nil), nil, ModeMemo)
	d.Allowed = false
	for i, t := range back {
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

// deny sets v to denied with RetryAfter = wait, the time Redis reported. Except for sliding logs, the local estimate is used if it is
// later: others may have consumed since.
func (v *Verdict) deny(kind rule.Kind, wait time.Duration) {
	v.Allowed = false
	if kind != rule.KindSlidingLog {
		wait = max(wait, v.RetryAfter)
	}
	v.RetryAfter = wait
}

// learn remembers the denials of a decision. asked and asOf are from before the request was sent.
func (l *Limiter) learn(q *query, d *Decision, asked int64, asOf *[MaxCharges]uint64) {
	if d.Allowed || l.cfg.forgetful {
		return
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		c := &q.charges[i]
		if v.Allowed || v.Never || v.Shadow || v.RetryAfter <= 0 || !remembers(c.rule.Kind) {
			continue
		}
		switch {
		case c.rule.Ban.After == 0:
			l.denials.remember(c, asOf[i], asked, v.RetryAfter)
		case v.Banned > 0:
			l.learnBan(c, v, asOf[i], asked)
		}
	}
}

// forget drops the denials of q's buckets.
func (l *Limiter) forget(q *query) {
	for i := range q.charges {
		l.denials.forget(q.charges[i].key)
	}
}
