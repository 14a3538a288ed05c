package ratelimit

import "github.com/quotasvc/quotasvc/internal/store/redisstore"

// maxIdleVectors is the largest number of vectors that a workbench keeps for later batches. On one server a batch
// seldom needs more than ten vectors. On a cluster it needs one vector for each tenant in the batch, seldom more than
// 64. A vector keeps the memory of its largest call: 3 KB for one request on three buckets, 27 KB for 42 such
// requests.
const maxIdleVectors = 64

// workbench has the buffers that one lane reuses to encode batches and to decode their replies. Between batches it
// keeps no data of a request. It is not safe for concurrent use.
type workbench struct {
	cluster bool
	open    map[string]*vector // by hash tag: the vector to which the next query is added
	used    []*vector          // the vectors of the present batch
	idle    []*vector
	pending []redisstore.Call
}

func newWorkbench(cluster bool) *workbench {
	return &workbench{cluster: cluster, open: make(map[string]*vector)}
}

// vectors splits a batch into script calls and keeps the order of arrival. Without a cluster, requests of all tenants
// share calls, because a third of a call's time does not depend on its content. On a cluster a call has the requests
// of one hash tag, so all buckets of a query must have the same hash tag (see query.parts). now is an estimate of
// Redis's time in µs.
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

// vector adds an empty vector to the batch and returns it.
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

// calls returns the calls of some of the vectors, in order.
func (b *workbench) calls(vectors []*vector, now int64) []redisstore.Call {
	b.pending = emptied(b.pending)
	for _, v := range vectors {
		b.pending = append(b.pending, v.call(now))
	}
	return b.pending
}

// clear ends the work on a batch: it empties the vectors and keeps up to maxIdleVectors of them.
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
