package ratelimit

import "github.com/quotasvc/quotasvc/internal/redisstore"

// maxIdleVectors is how many vectors a workbench keeps for later batches. On one server a batch seldom needs more than ten; on a
// cluster it needs one per tenant in it, which are seldom more than 64. A vector has room for the largest call that was built in
// it: 3 KB for one request on three buckets, 27 KB for 42 of them.
const maxIdleVectors = 64

// workbench is where a lane builds the script calls of a batch and reads their replies: what one batch has needed, the next one
// uses again. Between batches it holds nothing of a request. It is for one goroutine.
type workbench struct {
	cluster bool
	open    map[string]*vector // of a slot: what its next query goes into
	used    []*vector          // the batch's
	idle    []*vector
	pending []redisstore.Call
}

func newWorkbench(cluster bool) *workbench {
	return &workbench{cluster: cluster, open: make(map[string]*vector)}
}

// vectors splits a batch into script calls, keeping the order of arrival. Without a cluster everything is in one slot, and
// requests of all tenants share calls: a third of a call's time is spent whatever it decides. On a cluster a call holds
// requests of one hash tag, and each query must have been split into parts. now is the time in us, as far as it is known.
//
// The vectors and their calls are valid until clear.
func (b *workbench) vectors(batch []query, now int64) []*vector {
	for i := range batch {
		q := &batch[i]
		slot := ""
		if b.cluster {
			slot = q.charges[0].tag
		}
		v := b.open[slot]
		if v == nil || !v.fits(q) {
			v = b.vector(now)
			v.fits(q)
			b.open[slot] = v
		}
		v.add(i, q)
	}
	return b.used
}

// vector adds an empty one.
func (b *workbench) vector(now int64) *vector {
	var v *vector
	if n := len(b.idle); n > 0 {
		v, b.idle = b.idle[n-1], b.idle[:n-1]
	} else {
		v = newVector()
	}
	v.now = now
	b.used = append(b.used, v)
	return v
}

// calls are the vectors' calls, in order.
func (b *workbench) calls(now int64) []redisstore.Call {
	b.pending = emptied(b.pending)
	for _, v := range b.used {
		b.pending = append(b.pending, v.call(now))
	}
	return b.pending
}

// clear ends the work on a batch.
func (b *workbench) clear() {
	for _, v := range b.used {
		if len(b.idle) < maxIdleVectors {
			v.clear()
			b.idle = append(b.idle, v)
		}
	}
	clear(b.open)
	b.used, b.pending = emptied(b.used), emptied(b.pending)
}
