package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// denialFor bounds the time for which a denial is remembered. For that time a process can miss an event: a refund
	// or reset by another process, a clock that was set forward, or a failover that lost charges.
	denialFor = time.Second

	// denialStripes is the number of locks. denialsMax bounds the denials: about 200 bytes each. Beyond it a new
	// denial is not remembered.
	denialStripes = 64
	denialsMax    = 65_536

	// denialSweep is the number of denials that every insertion checks for their end. It is more than one, so old
	// denials are dropped as fast as new ones come.
	denialSweep = 2
)

// denials are recent denials by Redis. The answer with a denial contains the time at which the cost would pass. Until
// then no charge of another request can make the bucket pass this cost or a larger one, so no query to Redis is
// needed.
//
// Tokens return earlier in three cases only. A refund or reset in this process drops the denial. A change of the rule
// gives it another limit. For a refund in another process, denialFor bounds the time for which the denial is
// remembered.
//
// If the rule has a ban, a denial is remembered only while the bucket is banned. Until the ban begins, every denial
// must reach Redis, because Redis counts them.
type denials struct {
	seed    maphash.Seed
	live    atomic.Int64 // number of entries; normally 0, and then no lock is taken
	stripes [denialStripes]denialStripe
}

type denialStripe struct {
	forgotten atomic.Uint64 // counts calls of forget; a denial from before such a call is not remembered after it

	mu  sync.Mutex
	all map[string]denial
}

type denial struct {
	limit rule.Limit
	zone  *time.Location
	cost  int64 // this cost and larger ones are denied
	until int64 // µs; when the denial is dropped
	back  int64 // µs; when the cost passes, according to Redis
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

// of returns the remembered denial that denies c, if there is one.
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

// holdsFor reports whether the denial also denies c, with the same time to wait. For a log only Redis can compute the
// time of another cost.
func (e *denial) holdsFor(c *charge) bool {
	sameRule := e.limit == c.rule.Limit() && e.zone == c.zone
	return sameRule && (c.cost == e.cost || c.cost > e.cost && c.rule.Kind != rule.KindSlidingLog)
}

// asOf returns the counters of forget calls for q's buckets. It must be called before the decision; remember needs
// them.
func (d *denials) asOf(q *query) (forgotten [MaxCharges]uint64) {
	for i := range q.charges {
		forgotten[i] = d.stripe(q.charges[i].key).forgotten.Load()
	}
	return forgotten
}

// remember stores the denial of c: the cost passes after wait, counted from asked.
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

// sweep checks a sample of the denials and removes the expired ones. A range over a map starts at a random element.
// The caller holds the lock.
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

// remembers reports whether denials of a kind stay valid until their RetryAfter, even if other requests charge the
// bucket. They do for every kind that the limits script decides.
func remembers(k rule.Kind) bool { return k >= rule.KindTokenBucket && k <= rule.KindSlidingLog }

// recall denies q from memory if Redis has recently denied one of its charges. The other verdicts come from the local
// copies of levels. If a copy would deny a charge that Redis has not denied, recall returns false and Redis decides.
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
			return Decision{}, false // its denial would count towards the ban
		}
	}
	if !denied {
		return Decision{}, false
	}
	return l.denyFromMemory(q, back[:len(q.charges)], now)
}

// denyFromMemory denies q. back has for each charge the time at which its cost passes, or 0 if Redis has not denied
// the charge. It returns false if the local copies would deny such a charge.
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

// deny sets v to denied, with RetryAfter = wait, the time from Redis. Except for sliding logs, it keeps v's own
// RetryAfter if that is later: other requests may have consumed since.
func (v *Verdict) deny(kind rule.Kind, wait time.Duration) {
	v.Allowed = false
	if kind != rule.KindSlidingLog {
		wait = max(wait, v.RetryAfter)
	}
	v.RetryAfter = wait
}

// learn remembers the denials of a decision. asked and asOf were read before the request was sent.
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
