package ratelimit

import "github.com/quotasvc/quotasvc/internal/ratelimit/rule"

// PeekHeld decides like Peek if this process can decide without Redis. If it cannot, or if the request is not valid,
// ok is false.
func (l *Limiter) PeekHeld(req Request) (d Decision, ok bool) {
	q, err := req.check(rule.Peek)
	if err != nil || l.stopped.Load() {
		return Decision{}, false
	}
	if l.store == nil {
		return l.decideLocally(&q), true
	}
	if len(q.charges) == 0 {
		return Decision{Allowed: true}, true
	}
	if d, ok = l.recall(&q); !ok {
		d, ok = l.peekHeld(&q)
	}
	if ok {
		d = l.counted(d)
	}
	return d, ok
}

// peekHeld decides a peek from the levels in this process, if all of them are held. A level is held while Redis
// announces no change of its bucket. The answer may lack charges of other processes in the last redisstore.HeldFor. ok
// is false if Redis must decide, for example if a rule has a ban.
func (l *Limiter) peekHeld(q *query) (d Decision, ok bool) {
	if q.op != rule.Peek || q.fresh || l.cfg.forgetful || len(q.charges) > MaxCharges {
		return Decision{}, false
	}
	var keys [MaxCharges]string
	for i := range q.charges {
		if q.charges[i].rule.Ban.After > 0 {
			return Decision{}, false
		}
		keys[i] = q.charges[i].key
	}
	if !l.store.Watch().Holds(keys[:len(q.charges)]...) {
		return Decision{}, false
	}
	return l.decideHeld(q), true
}

func (l *Limiter) decideHeld(q *query) Decision {
	return decision(q, l.local.decide(q, l.micros(), nil), nil, ModeHeld)
}
