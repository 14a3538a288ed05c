package ratelimit

import "github.com/quotasvc/quotasvc/internal/store/redisstore"

// maxIdleVectors bounds the vectors that a workbench keeps for later batches. On one server a batch seldom needs more
// than ten. On a cluster it needs one for each tenant in the batch, seldom more than 64. A vector keeps the space of
// its largest call: 3 KB for one request on three buckets, 27 KB for 42 such requests.
const maxIdleVectors = 64

// workbench has the reusable buffers of one lane, which encode a batch and decode its reply. Between batches it keeps
// no data of a request. It is not safe for concurrent use.
type workbench struct {
	cluster bool
	open    map[string]*vector // by slot: the vector that takes the next query
	used    []*vector          // by the batch at hand
	idle    []*vector
	pending []redisstore.Call
}

func newWorkbench(cluster bool) *workbench {
	return &workbench{cluster: cluster, open: make(map[string]*vector)}
}

// vectors splits a batch into script calls and keeps the order of arrival. Without a cluster all keys are in one
// slot, and requests of all tenants share calls, because a third of a call's time does not depend on its content. On
// a cluster a call has the requests of one hash tag, so each query must be a part (see query.parts). now is an
// estimate of Redis's time in µs.
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

// vector adds an empty vector.
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

// calls returns the calls of the vectors, in order.
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
