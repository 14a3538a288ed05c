package redisstore

import "context"

// Batch is the pipeline of one batch of a lane. Its keys to read are sent with the first Run.
type Batch struct {
	store *Store
	shard *shard
	ctx   context.Context // of the batch at hand
	reads readPlan
	sent  int64 // µs of this process's clock; when Run began
}

func newBatch(s *Store, sh *shard) *Batch {
	return &Batch{store: s, shard: sh, reads: readPlan{cluster: s.IsCluster()}}
}

// Run sends calls of script, and the keys to read, as one pipeline. It returns a reply per call, in order. An Err matches ErrAway
// or, if the script itself replied with an error, ErrScript. It tells the breaker whether the shard answered.
func (b *Batch) Run(script *Script, calls []Call) []Reply {
	b.sent = b.store.clock.micros()
	var replies []Reply
	if script != nil {
		replies = script.run(b.ctx, calls, &b.reads)
	} else {
		b.store.sendReads(b.ctx, &b.reads)
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

// Wrote tells the breaker that a call of this batch has written something.
func (b *Batch) Wrote() { b.shard.breaker.wrote() }

// Now returns what the server's clock will show when the batch arrives, in µs, as far as earlier replies tell.
func (b *Batch) Now() int64 { return b.store.clock.micros() + b.shard.ahead.Load() }

// SetNow notes what the server's clock showed during the last Run, in µs.
func (b *Batch) SetNow(now int64) { b.shard.ahead.Store(now - b.sent) }

// clear ends the work on a batch. The batch keeps its buffers and nothing else.
func (b *Batch) clear() {
	b.ctx = nil
	b.reads.clear()
}
