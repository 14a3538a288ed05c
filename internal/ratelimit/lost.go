package ratelimit

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
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

// raised is what a bucket in Redis lacks, as far as this process knows it. The times are by Redis's clock.
type raised struct {
	charge charge
	known  rule.State // the level that the bucket had when its data were lost; zero if they were not lost
	own    rule.State // what this process has charged itself and Redis has not got
	before rule.State // withoutRedis.sent before it was sent
}

// withoutRedis is what is known of a bucket that this process has decided while Redis was away. The times are by this
// process's clock.
type withoutRedis struct {
	rule.State // of the whole limit, not of a portion: the level that Redis would have if it had made these decisions

	sent rule.State // of the portion: localLevel.State without the charges that Redis has not got yet
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

// sendEpochs adds the known epochs to the calls of vectors. It also sends Redis what it lacks of the buckets of the
// vectors. If that fails, Redis must not decide the vector: its queries get the error as their result. sendEpochs
// returns the other vectors.
func (l *Limiter) sendEpochs(
	b *redisstore.Batch, vectors []*vector, queries []query, results []redisstore.Result[answer],
) []*vector {
	known := l.local.epochs
	for _, v := range vectors {
		v.epoch = max(unknownEpoch, known.of(v.tags[0]))
		v.sent = append(append(append(v.sent, v.keys...), v.ids...), known.key(v.tags[0]))
	}
	if !known.lost.Load() && l.local.owing.Load() == 0 {
		return vectors
	}
	failed := l.raise(b, vectors, queries)
	if len(failed) == 0 {
		return vectors
	}
	return slices.DeleteFunc(slices.Clone(vectors), func(v *vector) bool {
		err := failed[v.life()]
		for _, i := range v.queries {
			results[i].Err = err
		}
		return err != nil
	})
}

// life returns the key of the epoch of v's data, after sendEpochs has added it.
func (v *vector) life() string { return v.sent[len(v.sent)-1] }

// onEpoch stores the epoch in the reply to v's call, if the call sent an epoch.
func (l *Limiter) onEpoch(v *vector, epoch int64) {
	if v.epoch != 0 {
		l.local.epochs.set(v.tags[0], epoch)
		v.epoch = epoch
	}
}

// raise sends Redis what it lacks of the buckets of the vectors. First it repeats the raises of which the outcome is not
// known, and only then collects new ones. Otherwise each failed try of an outage would add a raise, until all of them
// take longer than the budget. If Redis has lost its data, raise begins anew. It returns the errors by the key of the
// epoch.
func (l *Limiter) raise(b *redisstore.Batch, vectors []*vector, queries []query) (failed map[string]error) {
	l.local.owing.Add(1) // until the replies are here
	defer l.local.owing.Add(-1)
	failed = make(map[string]error)
	for range 3 { // the repeated raises, the new ones, and the new ones after a loss
		if vectors = l.raiseOnce(b, vectors, queries, failed); len(vectors) == 0 {
			return failed
		}
	}
	for _, v := range vectors {
		failed[v.life()] = errStale
	}
	return failed
}

// raiseOnce makes one step of raise, in one pipeline. It adds errors to failed, and returns the vectors that need
// another step.
func (l *Limiter) raiseOnce(b *redisstore.Batch, vectors []*vector, queries []query, failed map[string]error) (again []*vector) {
	var sent []raiseCall
	more := make(map[string]bool) // by the key of the epoch: whether another step is needed
	for _, v := range vectors {
		v.epoch = max(unknownEpoch, l.local.epochs.of(v.tags[0]))
		if unsure := l.local.takeUnsure(v.life()); len(unsure) > 0 {
			sent, more[v.life()] = append(sent, unsure...), true
		}
	}
	for _, v := range vectors {
		if !more[v.life()] {
			sent = append(sent, l.newRaises(b, v, queries)...)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	calls := make([]redisstore.Call, len(sent))
	for i := range sent {
		calls[i] = sent[i].call
	}
	var back []raised
	for i, reply := range b.Run(l.script, calls) {
		switch s := &sent[i]; {
		case reply.Err == nil && s.epoch > unknownEpoch && reply.Ints[3] != s.epoch:
			l.local.epochs.set(s.all[0].charge.tag, reply.Ints[3])
			back, more[s.life] = append(back, s.all...), true
		case reply.Err == nil:
			b.Wrote()
			l.metrics.raised.Add(float64(len(s.all)))
		case errors.Is(reply.Err, redisstore.ErrScript):
			l.cfg.Log.Error("redis rejected charges that this process knows and redis lacks; they are dropped", "error", reply.Err)
		default:
			l.local.putUnsure(*s)
			failed[s.life] = reply.Err
		}
	}
	l.local.unsend(back)
	for _, v := range vectors {
		if more[v.life()] && failed[v.life()] == nil {
			again = append(again, v)
		}
	}
	return again
}

// newRaises returns the calls that raise the buckets of a vector by what Redis lacks of them. It marks this as sent.
func (l *Limiter) newRaises(b *redisstore.Batch, v *vector, queries []query) (calls []raiseCall) {
	var all []raised
	now, replicas := l.micros(), l.cfg.Replicas()
	for _, i := range v.queries {
		for j := range queries[i].charges {
			if r, owed := l.local.owed(&queries[i].charges[j], v.epoch, now, b.Now()-now, replicas); owed {
				all = append(all, r)
			}
		}
	}
	for part := range slices.Chunk(all, MaxVector) {
		calls = append(calls, v.raiseCall(part, l.cfg.redisNow()))
	}
	return calls
}

// raiseCall is a script call that raises some buckets in one slot. However often it is sent, it has an effect once.
type raiseCall struct {
	call  redisstore.Call
	life  string // the key of the epoch
	epoch int64  // with which it is sent
	all   []raised
}

// raiseCall returns the call that raises some buckets, which are in v's slot. There are at most MaxVector buckets.
func (v *vector) raiseCall(all []raised, now int64) raiseCall {
	args := []any{now, len(all), len(all), v.epoch}
	keys := make([]string, len(all), len(all)+2)
	for i := range all {
		c := &all[i].charge
		keys[i] = c.key
		args = append(args, c.rule.Word())
		for _, p := range c.rule.Limit().Params(c.at(v.now)) {
			args = append(args, p)
		}
	}
	for i := range all {
		known, own := &all[i].known, &all[i].own
		args = append(args, int64(rule.Raise), 1, i+1, 0, min(own.Used, bound.MaxAmount), known.At, min(known.Used, bound.MaxAmount),
			min(known.Prev, bound.MaxAmount), all[i].charge.rule.Debt, own.At, min(own.Prev, bound.MaxAmount))
	}
	for i := range all {
		args = append(args, int64(MaxVector*(i+1)+i))
	}
	keys = append(keys, v.life(), v.life()+":"+rand.Text())
	return raiseCall{redisstore.Call{Keys: keys, Args: args, Packed: true}, v.life(), v.epoch, all}
}

// takeUnsure returns the raises of which it is not known whether Redis has made them, for the data with an epoch.
func (l *localState) takeUnsure(life string) []raiseCall {
	l.unsureMu.Lock()
	defer l.unsureMu.Unlock()
	calls := l.unsure[life]
	delete(l.unsure, life)
	l.owing.Add(-int64(len(calls)))
	return calls
}

// putUnsure keeps a raise until it is sent again.
func (l *localState) putUnsure(r raiseCall) {
	l.unsureMu.Lock()
	defer l.unsureMu.Unlock()
	l.unsure[r.life] = append(l.unsure[r.life], r)
	l.owing.Add(1)
	l.carry()
}

// owed returns what Redis lacks of c's bucket, and reports whether that is anything. It marks the charges as sent. epoch
// is the epoch of the data in Redis. If the level in this process is of another epoch, Redis has lost the bucket, and
// lacks this level, too. ahead is the time in µs by which Redis's clock is ahead of this process's clock.
func (l *localState) owed(c *charge, epoch, now, ahead int64, replicas *replica.Set) (raised, bool) {
	shard := l.stripe(c.tag)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e := l.known(c, now)
	r := raised{charge: *c}
	l.unowe(shard, c.key)
	if e.whole != nil {
		r.own = e.unsent(c, now, replicas.LimitOf(c.rule, c.key))
	}
	if epoch != unknownEpoch && e.epoch != 0 && e.epoch != epoch {
		switch e.epoch = epoch; {
		case e.of != nil:
			r.known, ahead = e.State, e.ahead
		case e.whole != nil:
			r.known = e.whole.without(c, now, &r.own)
		}
	}
	if r.own.Empty() && r.known.Empty() {
		return raised{}, false
	}
	if e.whole != nil {
		r.before = e.whole.sent
		e.whole = &withoutRedis{State: e.whole.State, sent: e.State}
	}
	shard.all[c.key] = e
	r.own.At, r.known.At = max(0, r.own.At+ahead), max(0, r.known.At+ahead)
	return r, true
}

// unsend undoes owed, the latest first: Redis has not got the charges, because it has lost its data.
func (l *localState) unsend(all []raised) {
	for _, r := range slices.Backward(all) {
		shard := l.stripe(r.charge.tag)
		shard.mu.Lock()
		if e := shard.all[r.charge.key]; e.whole != nil && !r.own.Empty() {
			e.whole = &withoutRedis{State: e.whole.State, sent: r.before}
			shard.all[r.charge.key] = e
			l.owe(shard, &r.charge)
		}
		shard.mu.Unlock()
	}
}

// unsent returns the charges that Redis has not got, as the state of a bucket of the whole limit. b is this process's
// portion of the limit.
func (e *localLevel) unsent(c *charge, now int64, b rule.Limit) rule.State {
	all, sent := b.Advance(e.State, c.at(now)), b.Advance(e.whole.sent, c.at(now))
	s := lowered(b, all, now, sent.Used, sent.Prev)
	if full := c.rule.Limit(); c.rule.Kind.Refills() {
		s, _ = full.Store(full.Advance(s, c.at(now)), now) // in units of the whole limit, rounded up
	}
	return s
}

// without returns the level w without the charges own, as of now.
func (w *withoutRedis) without(c *charge, now int64, own *rule.State) rule.State {
	full := c.rule.Limit()
	return lowered(full, full.Advance(w.State, c.at(now)), now, own.Used, own.Prev)
}

// lowered returns the state of the level st with less tokens. All tokens of a log count as taken at the time of its
// newest token.
func lowered(b rule.Limit, st rule.Level, now, used, prev int64) rule.State {
	s, _ := b.Store(st, now)
	if n := len(s.Log); n > 0 {
		s.At = s.Log[n-1]
	}
	s.Used, s.Prev, s.Log = max(0, s.Used-used), max(0, s.Prev-prev), nil
	return s
}

// charged returns the new value of e.whole after a charge or refund in this process while Redis is away. b is this
// process's portion of the limit.
func (e *localLevel) charged(q *query, c *charge, now int64, b rule.Limit, replicas *replica.Set) *withoutRedis {
	full := c.rule.Limit()
	w := withoutRedis{sent: e.in(b)}
	switch {
	case e.of != nil:
		w.State = e.State
	case e.whole != nil:
		w = *e.whole
	}
	level := full.Advance(w.State, c.at(now))
	w.sent.Log = slices.Clip(w.sent.Log) // it may be a part of another log
	sent := b.Advance(w.sent, c.at(now))
	if q.op == rule.Refund {
		level, sent = full.Refund(level, c.cost, c.ofWhole(now, 0, replicas)), b.Refund(sent, c.cost, c.taken)
	} else {
		level, sent = full.Charge(level, c.cost, c.ofWhole(now, 0, replicas)), b.Charge(sent, c.cost, c.taken)
	}
	w.State, _ = full.Store(level, now)
	if q.mirrored {
		w.sent, _ = b.Store(sent, now)
	}
	return &w
}

// ofWhole returns c.taken for the whole bucket. c was charged on this process's portion of it. now is the time by this
// process's clock, and ahead the time in µs by which the clock of the result is ahead of it.
func (c *charge) ofWhole(now, ahead int64, replicas *replica.Set) int64 {
	at := c.taken
	if at == rule.UnknownTime {
		return at
	}
	if c.rule.Kind.Refills() {
		holders, _ := replicas.Share(c.rule.Limit().Capacity())
		at = now + max(0, at-now)/holders
	}
	return min(max(1, at+ahead), bound.MaxAmount)
}
