package redisstore

import (
	"context"
	"slices"
)

// Batch is the pipeline of one batch of a lane. Its keys to read are sent with the first Run.
type Batch struct {
	store *Store
	shard *shard
	ctx   context.Context // context of the current batch
	reads readPlan
	sent  int64 // when Run began, in µs of this process's clock
	stamp int64 // stamp of the watch for the values that the last Run read; 0: the values are not watched
}

func newBatch(s *Store, sh *shard) *Batch {
	return &Batch{store: s, shard: sh, reads: readPlan{cluster: s.IsCluster()}}
}

// Run sends calls of script, and the keys to read, as one pipeline. It returns a reply per call, in order. Reply.Err
// matches ErrScript if the script itself replied with an error. Every other error matches ErrAway. Run reports to the
// breaker whether the shard answered.
func (b *Batch) Run(script *Script, calls []Call) []Reply {
	b.sent = b.store.clock.micros()
	var replies []Reply
	var watched bool
	first := !b.reads.sent
	b.stamp = b.watch(calls)
	if script != nil {
		replies, watched = script.run(b.ctx, calls, &b.reads, b.stamp != 0)
	} else {
		watched = b.store.sendReads(b.ctx, &b.reads, b.stamp != 0)
	}
	if !watched {
		b.stamp = 0
	}
	if first {
		b.reads.stamp = b.stamp
	}
	away := b.reads.away()
	for i := range replies {
		if blamesShard(replies[i].Err) {
			away = replies[i].Err
		}
	}
	b.shard.breaker.record(b.store.cfg.Now(), away)
	return replies
}

// watch records the keys that a Run will read. It returns 0 if no key is to be watched or Redis cannot announce
// changes.
func (b *Batch) watch(calls []Call) (stamp int64) {
	w := b.store.watch
	if len(b.reads.places) == 0 && !slices.ContainsFunc(calls, func(c Call) bool { return c.Watch }) {
		return 0
	}
	if stamp = w.begin(); stamp == 0 {
		return 0
	}
	for i := range calls {
		if calls[i].Watch {
			for _, key := range calls[i].Keys {
				w.reading(stamp, key)
			}
		}
	}
	for key := range b.reads.places {
		w.reading(stamp, key)
	}
	return stamp
}

// Kept records that this process keeps the values of these keys. The last Run must have read them for a call with
// Watch.
func (b *Batch) Kept(keys []string) {
	if b.stamp == 0 {
		return
	}
	for _, key := range keys {
		b.store.watch.kept(b.stamp, key)
	}
}

// Wrote reports to the breaker that a call of this batch has written something.
func (b *Batch) Wrote() { b.shard.breaker.wrote() }

// Now returns an estimate of the server's time at the arrival of the batch, in µs. It is based on earlier replies.
func (b *Batch) Now() int64 { return b.store.clock.micros() + b.shard.ahead.Load() }

// SetNow records the server's time during the last Run, in µs.
func (b *Batch) SetNow(now int64) { b.shard.ahead.Store(now - b.sent) }

// clear prepares b for the next batch. b keeps only the memory of its buffers.
func (b *Batch) clear() {
	b.ctx = nil
	b.reads.clear()
}
