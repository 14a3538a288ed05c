package ratelimit

import "github.com/quotasvc/quotasvc/internal/ratelimit/rule"

// peekHeld decides a peek from the levels that this process keeps, if all of them are held: Redis has announced no change of their
// buckets. Another process may have charged them in the last redisstore.HeldFor. ok is false if Redis must be asked.
func (l *Limiter) peekHeld(q *query) (d Decision, ok bool) {
	if q.op != rule.Peek || q.fresh || l.cfg.forgetful || len(q.charges) > MaxCharges {
		return Decision{}, false
	}
	var keys [MaxCharges]string
	for i := range q.charges {
		keys[i] = q.charges[i].key
	}
	if !l.store.Watch().Holds(keys[:len(q.charges)]...) {
		return Decision{}, false
	}
	return decision(q, l.local.decide(q, l.micros(), nil), nil, ModeHeld), true
}
