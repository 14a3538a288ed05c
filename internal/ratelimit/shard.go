package ratelimit

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
)

const (
	// shardsMax bounds the shards a process keeps: more masters than anybody runs. It matters where nodes come back under new
	// addresses again and again; the shard that was not asked for the longest time is dropped then.
	shardsMax = 256

	// reloadEvery bounds how often a cluster's map is read while a shard is away. Failover takes seconds, and the client by
	// itself would look every 10 s.
	reloadEvery = time.Second

	// sweepEvery is how often shards that are away are compared with a cluster's map: one whose slots have another master by
	// now is not away, it is gone.
	sweepEvery = time.Second

	// movingPause is the first rest before a request is sent again whose slot is between two nodes. Each is twice as long as
	// the one before, up to movingPauseMax: a slot of a few buckets moves in a millisecond, a full one in some more.
	movingPause    = 2 * time.Millisecond
	movingPauseMax = 16 * time.Millisecond

	// nodesQueued is the new nodes that may wait for their scripts; one that finds no place gets them with its first call.
	nodesQueued = 64
)

// shard is one place where Redis decides: a server, whoever the sentinels say is the master, or a cluster's master. Each has
// its own lanes and breaker, so that one that hangs keeps only its own tenants waiting.
type shard struct {
	name    string // in logs and metrics
	breaker *breaker
	lanes   []*lane.Lane[query, answer]
	leases  *lane.Lane[leaseCall, leaseReply]
	reads   *lane.Lane[readQuery, readAnswer]

	// ahead is by how much its clock was ahead of this process' at its last reply, in us, the way there included: to know its
	// windows.
	ahead atomic.Int64

	used   atomic.Int64           // us, of a cluster's: when it was asked last
	failed atomic.Pointer[string] // of a cluster's: a key that it did not decide
}

// lane is the lane of a hash tag.
func (s *shard) lane(seed maphash.Seed, tag string) *lane.Lane[query, answer] {
	return s.lanes[maphash.String(seed, tag)%uint64(len(s.lanes))]
}

func (s *shard) stop(ctx context.Context) error {
	errs := make([]error, len(s.lanes), len(s.lanes)+2)
	for i, ln := range s.lanes {
		errs[i] = ln.Stop(ctx)
	}
	errs = append(errs, s.leases.Stop(ctx), s.reads.Stop(ctx))
	return errors.Join(errs...)
}

// shards finds the shard of a key. Which master has a slot is the cluster client's knowledge; a request that goes to the
// wrong one is sent on by the client, and is late but right.
type shards struct {
	owner   shardOwner
	cluster *redis.ClusterClient // nil: there is one shard

	// first is the only shard; of a cluster, the one that is asked as long as nobody knows its masters.
	first    *shard
	mapped   atomic.Bool  // the client knows the masters
	reloaded atomic.Int64 // us
	swept    atomic.Int64 // us

	newNodes chan *redis.Client
	ended    chan struct{} // closed when the loading goroutine is gone
	stopping context.Context
	cancel   context.CancelFunc

	mu      sync.RWMutex
	byNode  map[string]*shard
	dropped sync.WaitGroup // shards that are being stopped
}

// shardOwner is what shards need from their limiter.
type shardOwner interface {
	newShard(name string) *shard
	shardGone(*shard) // called once per shard that was dropped
	anyAway() bool
	loadScripts(ctx context.Context, node *redis.Client)
	micros() int64
}

// newShards starts the goroutine that gives new nodes their scripts, if there is a cluster.
func newShards(client redis.UniversalClient, owner shardOwner) *shards {
	s := &shards{owner: owner, byNode: make(map[string]*shard), ended: make(chan struct{})}
	s.stopping, s.cancel = context.WithCancel(context.Background())
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		s.first = owner.newShard("redis")
		close(s.ended)
		return s
	}
	s.cluster, s.first = cluster, owner.newShard("cluster")
	s.newNodes = make(chan *redis.Client, nodesQueued)
	cluster.OnNewNode(func(node *redis.Client) { // called under the client's lock
		select {
		case s.newNodes <- node:
		default:
		}
	})
	go s.load()
	return s
}

// load is the goroutine that gives new nodes their scripts.
func (s *shards) load() {
	defer close(s.ended)
	for {
		select {
		case node := <-s.newNodes:
			s.owner.loadScripts(s.stopping, node)
		case <-s.stopping.Done():
			return
		}
	}
}

// of is the shard that has key.
func (s *shards) of(key string) *shard {
	if s.cluster == nil || !s.mapped.Load() {
		return s.first
	}
	now := s.owner.micros()
	if s.owner.anyAway() && due(&s.swept, now, sweepEvery) {
		s.sweep()
	}
	name, ok := s.master(key)
	if !ok {
		return s.first
	}
	s.mu.RLock()
	sh := s.byNode[name]
	s.mu.RUnlock()
	if sh == nil {
		sh = s.add(name)
	}
	sh.used.Store(now)
	return sh
}

// master is the address of the master that has key. It needs the map to be known: it does not wait then.
func (s *shards) master(key string) (addr string, ok bool) {
	node, err := s.cluster.MasterForKey(s.stopping, key)
	if err != nil {
		return "", false
	}
	return node.Options().Addr, true
}

func (s *shards) add(name string) *shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.byNode[name]; sh != nil {
		return sh
	}
	if s.stopping.Err() != nil {
		return s.first // stopped already: it refuses, as a new one would have to
	}
	if len(s.byNode) >= shardsMax {
		var idlest *shard
		for _, sh := range s.byNode {
			if idlest == nil || sh.used.Load() < idlest.used.Load() {
				idlest = sh
			}
		}
		s.drop(idlest)
	}
	sh := s.owner.newShard(name)
	s.byNode[name] = sh
	return sh
}

// sweep drops the shards that are away and have lost their slots to another master.
func (s *shards) sweep() {
	for _, sh := range s.all() {
		key := sh.failed.Load()
		if sh == s.first || key == nil || !sh.breaker.isOpen() {
			continue
		}
		if name, ok := s.master(*key); ok && name != sh.name {
			s.mu.Lock()
			s.drop(sh)
			s.mu.Unlock()
		}
	}
	if s.first.breaker.isOpen() { // the masters are known by now: nobody asks it any more
		s.first.breaker.reset()
	}
}

// drop needs mu. Who has just found the shard is told that its lane has stopped, and decides as if Redis were away.
func (s *shards) drop(sh *shard) {
	if s.byNode[sh.name] != sh || s.stopping.Err() != nil {
		return
	}
	delete(s.byNode, sh.name)
	s.dropped.Go(func() {
		_ = sh.stop(s.stopping) // what is queued is answered in any case
		s.owner.shardGone(sh)
	})
}

// learn finds out who a cluster's masters are, if that is not known. The error says that nobody could tell.
func (s *shards) learn(ctx context.Context, key string) error {
	if s.cluster == nil || s.mapped.Load() {
		return nil
	}
	if _, err := s.cluster.MasterForKey(ctx, key); err != nil {
		return err
	}
	s.mapped.Store(true)
	return nil
}

// suspect makes a cluster's client look who the masters are, because sh did not answer.
func (s *shards) suspect(sh *shard, key string) {
	if s.cluster == nil || !s.mapped.Load() {
		return
	}
	sh.failed.Store(&key)
	if due(&s.reloaded, s.owner.micros(), reloadEvery) {
		s.cluster.ReloadState(s.stopping)
	}
}

// due reports, to one caller each time, that every has passed since the last time.
func due(last *atomic.Int64, now int64, every time.Duration) bool {
	before := last.Load()
	return (before == 0 || now-before >= every.Microseconds()) && last.CompareAndSwap(before, now)
}

// all are the shards known now.
func (s *shards) all() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*shard, 1, 1+len(s.byNode))
	all[0] = s.first
	for _, sh := range s.byNode {
		all = append(all, sh)
	}
	return all
}

// stop ends the lanes; see Limiter.Stop.
func (s *shards) stop(ctx context.Context) error {
	var errs []error
	for _, sh := range s.all() {
		errs = append(errs, sh.stop(ctx))
	}
	s.mu.Lock()
	s.cancel() // from here on none is added or dropped
	s.mu.Unlock()
	<-s.ended                    // within the client's timeouts
	for _, sh := range s.all() { // whatever was added meanwhile
		errs = append(errs, sh.stop(ctx))
	}
	s.dropped.Wait()
	return errors.Join(errs...)
}

// through sends q to key's shard through one of its lanes, unless the shard's breaker refuses, and sends it again while the
// slot is on its way to another shard. errOf finds the error in an answer. An error that makes the rules' OnBackendError
// decide matches errBackend.
//
// It waits for its turn until turn, which is Limiter.turn.
func through[Q, A any](
	ctx context.Context, turn time.Time, l *Limiter, key string, q Q, laneOf func(*shard) *lane.Lane[Q, A], errOf func(A) error,
) (A, error) {
	for pause := movingPause; ; pause = min(2*pause, movingPauseMax) {
		var a A
		if err := ctx.Err(); err != nil {
			return a, err
		}
		sh := l.shards.of(key)
		pass, err := sh.breaker.admit(l.cfg.Now), errRefused
		if pass != passRefused {
			if a, err = laneOf(sh).DoBy(turn, q); err == nil {
				err = errOf(a)
			}
			if pass == passProbe {
				sh.breaker.Advance(l.cfg.Now(), l.outcome(ctx, turn, sh, key, err))
			}
		}
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, errMoving):
			if rest(ctx, turn, pause) {
				continue
			}
		case blamesShard(err):
			l.shards.suspect(sh, key)
		}
		return a, l.translate(ctx, err)
	}
}

// rest waits for d, unless that is beyond until or ctx ends first.
func rest(ctx context.Context, until time.Time, d time.Duration) bool {
	if time.Until(until) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
