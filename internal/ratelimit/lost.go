package ratelimit

import (
	"sync"
	"sync/atomic"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// The epoch of the data in Redis is a number that is stored with the data, under a key that ends in "life"
// (lua/limits.lua). Every call sends the epoch that this process knows. If Redis was emptied, for example by a
// restart without persistence, its new data has another epoch. Then the call decides nothing. This process first
// raises the buckets to the levels that it knows, and then sends the call again. Such a level is the last level that
// the process has seen in Redis, plus its own charges while Redis was away.

// unknownEpoch is the number that a call sends if this process knows no epoch. No data has this epoch.
const unknownEpoch = 1

// raised is the level that a bucket had when its data were lost, as far as this process knows it.
type raised struct {
	charge *charge
	level  rule.State // seen in Redis, in the rule's present form; At is by Redis's clock
	own    int64      // tokens that this process has charged since then, while Redis was away
}

// withoutRedis is the level of a bucket after the decisions that this process made while Redis was away. Redis would
// have the same level if it had made them.
type withoutRedis struct {
	rule.State // of the whole limit, not of a share; At is by this process's clock

	own int64 // tokens that this process charged; they are included in State
}

// epochs are the epochs of Redis's data that this process knows. There is one epoch, or on a cluster one for each
// hash tag.
type epochs struct {
	cluster bool
	maxTags int
	lost    atomic.Bool // whether any epoch has changed

	mu  sync.RWMutex
	all map[string]int64 // the epoch of each hash tag; without a cluster, one epoch under the tag ""
}

// key returns the key of the epoch of the data with a hash tag.
func (l *epochs) key(tag string) string {
	if l.cluster {
		return "rl:{" + tag + "}life"
	}
	return "rl:life"
}

// of returns the epoch of the data with a hash tag, or 0 if it is not known.
func (l *epochs) of(tag string) int64 {
	if !l.cluster {
		tag = ""
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.all[tag]
}

// set stores the epoch of the data with a hash tag.
func (l *epochs) set(tag string, epoch int64) {
	if !l.cluster {
		tag = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.all[tag]
	if known && old != epoch {
		l.lost.Store(true)
	}
	if !known && len(l.all) >= l.maxTags {
		clear(l.all) // the next calls send unknownEpoch
	}
	l.all[tag] = epoch
}

// sendEpochs adds the known epochs to the calls of vectors. If data was lost, it also raises the buckets of the vectors
// to the levels that this process knows.
func (l *Limiter) sendEpochs(b *redisstore.Batch, vectors []*vector, queries []query) {
	known := l.local.epochs
	for _, v := range vectors {
		v.epoch = max(unknownEpoch, known.of(v.tags[0]))
		v.sent = append(append(v.sent, v.keys...), known.key(v.tags[0]))
	}
	if known.lost.Load() {
		l.raise(b, vectors, queries)
	}
}

// onEpoch stores the epoch in the reply to v's call, if the call sent an epoch.
func (l *Limiter) onEpoch(v *vector, epoch int64) {
	if v.epoch != 0 {
		l.local.epochs.set(v.tags[0], epoch)
		v.epoch = epoch
	}
}

// raise sends Redis the levels that this process knows from lost data, for the buckets of the vectors.
func (l *Limiter) raise(b *redisstore.Batch, vectors []*vector, queries []query) {
	var calls []redisstore.Call
	now := l.micros()
	for _, v := range vectors {
		var all []raised
		for _, i := range v.queries {
			for j := range queries[i].charges {
				if r, owed := l.local.owed(&queries[i].charges[j], v.epoch, now, b.Now()-now); owed {
					all = append(all, r)
				}
			}
		}
		for from := 0; from < len(all); from += MaxVector {
			calls = append(calls, v.raiseCall(all[from:min(from+MaxVector, len(all))], l.cfg.redisNow()))
		}
		l.metrics.raised.Add(float64(len(all)))
	}
	if len(calls) > 0 {
		b.Run(l.script, calls)
	}
}

// raiseCall returns the script call that raises some buckets, which are in v's slot. There are at most MaxVector
// buckets.
func (v *vector) raiseCall(all []raised, now int64) redisstore.Call {
	args := []any{now, len(all), len(all), v.epoch}
	keys := make([]string, len(all), len(all)+1)
	for i, r := range all {
		keys[i] = r.charge.key
		args = append(args, r.charge.rule.Word())
		for _, p := range r.charge.rule.Limit().Params(r.charge.at(v.now)) {
			args = append(args, p)
		}
	}
	for i := range all {
		r := &all[i]
		args = append(args, int64(rule.Raise), 1, i+1, 0, r.own, r.level.At, min(r.level.Used, bound.MaxAmount), min(r.level.Prev, bound.MaxAmount), r.charge.rule.Debt)
	}
	for i := range all {
		args = append(args, int64(MaxVector*(i+1)+i))
	}
	return redisstore.Call{Keys: append(keys, v.sent[len(v.keys)]), Args: args, Packed: true}
}

// owed returns the level of c's bucket that this process knows from data of another epoch, and whether there is such a
// level. It marks the level as sent, because a bucket is raised only once. ahead is the time in µs by which Redis's
// clock is ahead of this process's clock.
func (l *localState) owed(c *charge, epoch, now, ahead int64) (raised, bool) {
	shard := l.stripe(c.tag)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e := l.known(c, now)
	if epoch == unknownEpoch || e.epoch == 0 || e.epoch == epoch {
		return raised{}, false
	}
	r := raised{charge: c, level: e.State}
	switch {
	case e.of != nil:
		r.level.At += e.ahead
	case e.whole != nil:
		r.level, r.own = e.whole.split(c, now)
		r.level.At += ahead
		e.whole.own = 0
	}
	e.epoch = epoch
	shard.all[c.key] = e
	return r, e.of != nil || e.whole != nil
}

// split returns two parts of w, as of now: the level seen in Redis, and the tokens that this process charged since
// then.
func (w *withoutRedis) split(c *charge, now int64) (seen rule.State, own int64) {
	full := c.rule.Limit()
	all := full.Advance(w.State, c.at(now))
	rest := all
	if w.own > 0 {
		rest = full.Refund(all, w.own, rule.UnknownTime)
	}
	unit := int64(1)
	if c.rule.Kind.Refills() {
		unit = full.Params(c.at(now))[2]
	}
	seen, _ = full.Store(rest, now)
	if n := len(seen.Log); n > 0 {
		seen.At = seen.Log[n-1]
	}
	return seen, (all.Used - rest.Used) / unit
}

// charged returns the new value of e.whole after a charge or refund in this process while Redis is away.
func (e *localLevel) charged(o rule.Op, c *charge, now int64) *withoutRedis {
	full := c.rule.Limit()
	w := withoutRedis{}
	switch {
	case e.of != nil:
		w.State = e.State
	case e.whole != nil:
		w = *e.whole
	}
	level := full.Advance(w.State, c.at(now))
	if o == rule.Refund {
		level = full.Refund(level, c.cost, c.taken)
		w.own = max(0, w.own-c.cost)
	} else {
		level = full.Charge(level, c.cost)
		w.own += c.cost
	}
	w.State, _ = full.Store(level, now)
	return &w
}
