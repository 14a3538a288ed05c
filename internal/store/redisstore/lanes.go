package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

const (
	// movingPause is the first pause before a request whose slot is moving is sent again. Each later pause is twice
	// as long, up to movingPauseMax. A slot with few keys moves in a millisecond; a full slot takes longer.
	movingPause    = 2 * time.Millisecond
	movingPauseMax = 16 * time.Millisecond
)

// Work defines how requests of one kind are sent. Q is a request, A its answer.
type Work[Q, A any] struct {
	// Name is the name of the lanes in metrics.
	Name string
	// Lanes is the number of lanes per shard. Each lane has at most one pipeline in Redis at a time.
	Lanes int
	// MaxBatch bounds the sum of the weights of the requests in one pipeline, and so the time that the pipeline
	// takes.
	MaxBatch int
	// Weight returns the weight of a request without its keys to read. If Weight is nil, the weight is 1.
	Weight func(Q) int
	// NewSender returns the function that sends the batches of one lane. Only the lane's goroutine calls this
	// function, so the function may reuse its own buffers. It must call Run at least once and return a result per
	// request, in order.
	NewSender func() func(b *Batch, requests []Q) []Result[A]
}

// Result is the outcome of one request.
type Result[A any] struct {
	Answer A
	Err    error

	values []string // values of the keys that were read with the request
	stamp  int64    // stamp of the watch for these values
}

// Lanes are the queues for requests of one kind, per shard and hash tag. The requests that wait in a lane are sent as
// one pipeline.
type Lanes[Q, A any] struct {
	store *Store
	work  Work[Q, A]
	kind  int // index in shard.lanes
}

// item is a request in a lane.
type item[Q any] struct {
	key     string // a key in the request's slot
	request Q
	reads   []string
}

// shardLanes are the lanes of one kind and shard.
type shardLanes[Q, A any] []*lane.Lane[item[Q], Result[A]]

func (all shardLanes[Q, A]) stop(ctx context.Context) error {
	errs := make([]error, len(all))
	for i, ln := range all {
		errs[i] = ln.Stop(ctx)
	}
	return errors.Join(errs...)
}

// NewLanes creates the lanes of one kind on every shard of s.
func NewLanes[Q, A any](s *Store, work Work[Q, A]) *Lanes[Q, A] {
	l := &Lanes[Q, A]{store: s, work: work}
	l.kind = s.addKind(func(sh *shard) stopper {
		lanes := make(shardLanes[Q, A], work.Lanes)
		for i := range lanes {
			lanes[i] = l.newLane(sh)
		}
		return lanes
	})
	return l
}

func (l *Lanes[Q, A]) newLane(sh *shard) *lane.Lane[item[Q], Result[A]] {
	cfg := &l.store.cfg
	weight := func(i item[Q]) int { return 1 + len(i.reads) }
	if l.work.Weight != nil {
		weight = func(i item[Q]) int { return l.work.Weight(i.request) + len(i.reads) }
	}
	b, send := newBatch(l.store, sh), l.work.NewSender()
	var requests []Q
	process := func(ctx context.Context, items []item[Q]) []Result[A] {
		ctx, cancel := context.WithTimeout(ctx, cfg.Budget/2)
		defer cancel()
		if err := l.store.ready(ctx, sh, items[0].key); err != nil {
			results := make([]Result[A], len(items))
			for i := range results {
				results[i].Err = err
			}
			return results
		}
		b.ctx = ctx
		for i := range items {
			requests = append(requests, items[i].request)
			b.reads.add(items[i].reads)
		}
		results := send(b, requests)
		for i := range results {
			results[i].values, results[i].stamp = b.reads.of(i), b.reads.stamp
		}
		requests = emptied(requests)
		b.clear()
		return results
	}
	return lane.New(lane.Config{
		Name: l.work.Name, MaxQueue: cfg.MaxQueue, MaxBatch: l.work.MaxBatch, Metrics: cfg.LaneMetrics, Log: cfg.Log, Now: cfg.Now,
		Tracer: cfg.Tracer,
	}, weight, process)
}

// Do sends a request to the shard of key and reads the keys of reads in the same pipeline. reads may be nil. While
// the slot is moving, Do sends the request again. If the keys were not read, reads.Values is nil.
//
// The errors match ErrAway or ErrScript, or are ErrStopped, ErrUnfinished or the error of ctx. If the request is
// still queued at deadline (see QueueDeadline), it fails.
func (l *Lanes[Q, A]) Do(ctx context.Context, deadline time.Time, key string, request Q, reads *Reads) (A, error) {
	s := l.store
	it := item[Q]{key: key, request: request}
	if reads != nil {
		it.reads, reads.Values = reads.Keys, nil
	}
	for pause := movingPause; ; pause = min(2*pause, movingPauseMax) {
		var r Result[A]
		if err := ctx.Err(); err != nil {
			return r.Answer, err
		}
		sh := s.shardOf(key)
		pass, err := sh.breaker.admit(s.cfg.Now), error(errOpen)
		if pass != passRefused {
			if r, err = l.laneOf(sh, key).DoBy(ctx, deadline, it); err == nil {
				err = r.Err
			}
			if pass == passProbe {
				sh.breaker.endProbe(s.cfg.Now(), s.probeOutcome(ctx, deadline, sh, key, err))
			}
		}
		switch {
		case err == nil:
			if reads != nil {
				reads.Values, reads.stamp = r.values, r.stamp
			}
			return r.Answer, nil
		case errors.Is(err, ErrMoving):
			if time.Until(deadline) > pause && backoff.Sleep(ctx, pause) {
				continue
			}
		case blamesShard(err):
			s.suspect(sh, key)
		}
		var none A
		return none, s.translate(ctx, err)
	}
}

// laneOf returns the lane of key's hash tag. All requests of a tenant use the same lane, so they can share a batch.
func (l *Lanes[Q, A]) laneOf(sh *shard, key string) *lane.Lane[item[Q], Result[A]] {
	lanes := (*sh.lanes.Load())[l.kind].(shardLanes[Q, A])
	if len(lanes) == 1 {
		return lanes[0]
	}
	return lanes[maphash.String(l.store.seed, HashTag(key))%uint64(len(lanes))]
}

// ready returns an error if a batch for sh should not be sent. Either the breaker opened while the batch was queued, or
// the masters of a cluster are not known.
func (s *Store) ready(ctx context.Context, sh *shard, key string) error {
	if sh.breaker.refusesAll() {
		return errOpen
	}
	err := s.learn(ctx, key)
	if err != nil {
		err = fmt.Errorf("%w: find the masters of the cluster: %w", ErrAway, err)
		sh.breaker.record(s.cfg.Now(), err)
	}
	return err
}

// emptied returns s with length 0. It clears the elements, so that the garbage collector can free what they refer to.
func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}
