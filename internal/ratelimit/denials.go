package ratelimit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// denialFor is the longest time for which a denial is remembered. During this time tokens may return, and a process
	// does not notice it. The cause is a refund or reset in another process, a clock that was set forward, or a
	// failover that lost charges.
	denialFor = time.Second

	// denialStripes is the number of locks. denialsMax is the largest number of remembered denials, of about 200
	// bytes each. When it is reached, a new denial is not remembered.
	denialStripes = 64
	denialsMax    = 65_536

	// denialSweep is the number of denials that every insertion examines, to drop the expired ones. It is more than
	// one, so that expired denials are dropped as fast as new denials are added.
	denialSweep = 2
)

// denials remembers recent denials by Redis. The answer with a denial contains the time at which the cost would pass.
// Until this time the bucket denies this cost and larger costs, even if other requests are denied or admitted
// meanwhile. So no query to Redis is needed.
//
// Tokens return earlier in three cases only. After a refund or reset in this process, the denial is dropped. After a
// change of the rule, the denial does not match the rule's new limit. A refund or reset in another process is not
// noticed, so a denial is remembered for at most denialFor.
//
// If the rule has a ban, a denial is remembered only while the bucket is banned. Until the ban begins, every denial
// must reach Redis, because Redis counts them.
type denials struct {
	seed    maphash.Seed
	live    atomic.Int64 // number of entries; normally 0, and then no lock is taken
	stripes [denialStripes]denialStripe
}

type denialStripe struct {
	forgotten atomic.Uint64 // number of forget calls; remember compares it with asOf

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

// of returns the remembered denial that denies c, and whether there is one.
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

// holdsFor reports whether the denial also denies c. For a sliding log the costs must be equal, because only Redis can
// compute the time to wait for another cost.
func (e *denial) holdsFor(c *charge) bool {
	sameRule := e.limit == c.rule.Limit() && e.zone == c.zone
	return sameRule && (c.cost == e.cost || c.cost > e.cost && c.rule.Kind != rule.KindSlidingLog)
}

// asOf returns the number of forget calls so far for each of q's buckets. Call it before the request is sent, and
// pass the numbers to remember.
func (d *denials) asOf(q *query) (forgotten [MaxCharges]uint64) {
	for i := range q.charges {
		forgotten[i] = d.stripe(q.charges[i].key).forgotten.Load()
	}
	return forgotten
}

// remember stores that c was denied, and that its cost passes at asked+wait. It stores nothing if forget was called
// for the bucket since asOf.
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

// sweep examines denialSweep denials and removes the expired ones. These are random denials, because a range over a
// map starts at a random element. The caller holds the lock.
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

// remembers reports whether a denial by a rule of kind k stays valid until its RetryAfter, even if other requests
// charge the bucket. This is so for every kind that the limits script decides.
func remembers(k rule.Kind) bool { return k >= rule.KindTokenBucket && k <= rule.KindSlidingLog }

// recall denies q from memory if Redis has recently denied one of its charges. The other verdicts come from the local
// copies of levels. If a copy would deny a charge that Redis has not denied, recall returns false, and Redis must
// decide.
func (l *Limiter) recall(q *query) (d Decision, denied bool) {
	if l.denials.live.Load() == 0 || q.identified() { // Redis knows whether the id has charged the rules
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
			return Decision{}, false // Redis must count this denial towards the ban
		}
	}
	if !denied {
		return Decision{}, false
	}
	return l.denyFromMemory(q, back[:len(q.charges)], now)
}

// denyFromMemory returns the denial of q. The list `back` contains, for each charge, the time at which its cost
// passes, or 0 if Redis has not denied the charge. If a local copy would deny a charge that Redis has not denied,
// denyFromMemory returns false.
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
// RetryAfter if it is longer, because other requests may have charged the bucket since.
func (v *Verdict) deny(kind rule.Kind, wait time.Duration) {
	v.Allowed = false
	if kind != rule.KindSlidingLog {
		wait = max(wait, v.RetryAfter)
	}
	v.RetryAfter = wait
}

// learn remembers the denials of a decision. asked is the time (µs), and asOf the result of denials.asOf, from before
// the request was sent.
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
