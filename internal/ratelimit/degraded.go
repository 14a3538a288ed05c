package ratelimit

import (
	"fmt"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

var (
	// errCorrupt means that a stored value in Redis is not a bucket. Redis itself answers, but the rule is decided as
	// if Redis were away.
	errCorrupt = redisstore.AwayBecause(redisstore.CauseValue, "a stored value is not a bucket")

	// errStale means that a call was sent twice and stayed undecided. Each time, Redis's clock was in another
	// calendar window than the call, or Redis had lost its data.
	errStale = redisstore.AwayBecause(redisstore.CauseStaleWindow, "its clock was in another window, or its data was lost, twice")
)

// degraded decides without Redis, by the rules' policies. If an enforced rule is closed, degraded returns
// ErrUnavailable and charges nothing.
func (l *Limiter) degraded(q *query) (Decision, error) {
	for _, c := range q.charges {
		if c.rule.OnBackendError == rule.BackendClosed && !c.rule.Shadow {
			l.metrics.decisions.WithLabelValues(c.rule.Metric, c.rule.Kind.String(), "error", ModeLocal.String()).Inc()
			l.metrics.degradedRules.note(c.rule.Metric, true, ModeLocal)
			return Decision{}, fmt.Errorf("%w: rule %s is closed without Redis", ErrUnavailable, c.rule.ID)
		}
	}
	return l.share(q, false), nil
}

// share decides q by this process's portions of the rules with local_share, and passes the other rules. If mirrored is
// true, Redis is asked as well, so the charge is not owed to Redis.
func (l *Limiter) share(q *query, mirrored bool) Decision {
	shared := query{op: q.op, tenant: q.tenant, once: q.once, mirrored: mirrored}
	for _, c := range q.charges {
		if c.rule.OnBackendError == rule.BackendLocalShare {
			shared.charges = append(shared.charges, c)
		}
	}
	replicas := l.cfg.Replicas()
	local := decision(&shared, l.local.decide(&shared, l.micros(), replicas), replicas, ModeLocal)

	d := Decision{Allowed: local.Allowed, Mode: ModeLocal, Degraded: true, Verdicts: make([]Verdict, len(q.charges))}
	next := 0
	for i, c := range q.charges {
		if c.rule.OnBackendError == rule.BackendLocalShare {
			d.Verdicts[i] = local.Verdicts[next]
			next++
			continue
		}
		d.Verdicts[i] = Verdict{Rule: c.rule, Allowed: true, Unknown: true, Shadow: c.rule.Shadow, Mode: ModeLocal}
	}
	return d
}

// unshare takes back a mirrored charge.
func (l *Limiter) unshare(q *query, d *Decision) {
	back, _ := (&partResult{query: *q, asked: true, d: *d}).refundQuery()
	back.mirrored = true
	for i := range back.charges {
		back.charges[i].taken = rule.UnknownTime
	}
	l.local.decide(&back, l.micros(), l.cfg.Replicas())
}

// returning reports whether other processes may not know yet that Redis is back. Then Redis lacks what they have charged
// themselves, so this process's portions decide as well: what Redis lacks is in the portions of the others.
func (l *Limiter) returning(key string) bool {
	return l.store != nil && l.cfg.Replicas().Count() > 1 && l.store.IsReturning(key, returnFor)
}

// decision converts an answer to a Decision. replicas are the replicas that share the rules, or nil if the whole rule
// applied.
func decision(q *query, a answer, replicas *replica.Set, mode Mode) Decision {
	d := Decision{Allowed: a.allowed, Mode: mode, Verdicts: make([]Verdict, len(q.charges))}
	for i := range q.charges {
		c := &q.charges[i]
		own := a.results[i].taken
		if r := &a.results[i]; q.op == rule.Consume && a.allowed && r.code == rule.Pass && r.banned == 0 {
			own = c.cost
		}
		d.Verdicts[i] = verdictOf(c, replicas.LimitOf(c.rule, c.key), a.results[i], own)
		d.Verdicts[i].Mode = mode
	}
	return d
}

// verdictOf converts the result of one bucket to a verdict. own is the number of tokens that the request has charged
// in this bucket.
func verdictOf(c *charge, l rule.Limit, r bucketResult, own int64) Verdict {
	v := Verdict{Rule: c.rule, Shadow: c.rule.Shadow, Limit: l.Capacity(), Charged: own, at: r.level.Now + r.level.Ahead}
	if r.code == rule.Corrupt {
		v.Allowed, v.Unknown, v.Limit = true, true, 0
		return v
	}
	if v.Remaining = l.Left(r.level); v.Remaining < 0 {
		v.Remaining, v.Owed = 0, -v.Remaining
	}
	v.Reset = l.Wait(r.level, l.Capacity())
	if c.rule.Kind.Refills() {
		v.at = min(r.level.Now+v.Reset.Microseconds(), bound.MaxAmount)
	}
	if v.Remaining < l.Capacity() {
		v.Next = l.Wait(r.level, v.Remaining+1)
	}
	switch {
	case r.code == rule.Pass, r.code == rule.Again:
		v.Allowed, v.Delay = true, l.Delay(r.level, own)
	case r.code == rule.Never:
		v.Never = true
	case c.cost > l.Capacity(): // the cost exceeds this replica's portion: only Redis can decide
		v.RetryAfter = max(v.Reset, redisstore.RetryAfter)
	default:
		v.RetryAfter = l.Wait(r.level, c.cost)
	}
	if r.banned > 0 {
		v.ban(r.banned)
	}
	return v
}

// checkCorrupt returns errCorrupt if the stored value of an enforced rule is not a bucket. It also counts such values
// of shadow rules.
func (l *Limiter) checkCorrupt(q *query, a answer) error {
	var err error
	for i, r := range a.results {
		if r.code != rule.Corrupt {
			continue
		}
		if l.countCorrupt() {
			l.cfg.Log.Error("a stored value is not a bucket; it is not changed, and its rule is decided as if redis were away",
				"key", q.charges[i].key)
		}
		if !q.charges[i].rule.Shadow {
			err = errCorrupt
		}
	}
	return err
}

// countCorrupt counts an unreadable value. It returns whether to log the value: at most once in corruptLogEvery.
func (l *Limiter) countCorrupt() bool {
	l.metrics.corrupt.Inc()
	now, last := l.micros(), l.corruptLog.Load()
	return (last == 0 || now-last >= corruptLogEvery.Microseconds()) && l.corruptLog.CompareAndSwap(last, now)
}

// noteShard logs and counts that a shard of Redis is away, or that it answers again. The store calls it.
func (l *Limiter) noteShard(shard string, err error, away int) {
	if err != nil {
		l.metrics.degraded.Set(1)
		l.cfg.Log.Error("redis is away: limits are decided locally", "shard", shard, "error", err)
		return
	}
	if away == 0 {
		l.metrics.degraded.Set(0)
		l.metrics.degradedRules.recovered()
	}
	l.cfg.Log.Info("redis is back: limits are decided there", "shard", shard)
}
