package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// shardsMax bounds the shards of a process: no known cluster has so many masters. The bound matters if nodes
	// return under new addresses again and again. Then the shard that was unused for the longest time is dropped.
	shardsMax = 256

	// reloadEvery bounds how often the map of a cluster is read while a shard is away. A failover takes seconds, but
	// the client itself reads the map only every 10 s.
	reloadEvery = time.Second

	// sweepEvery bounds how often shards that are away are compared with the map of the cluster. A shard whose slots
	// have moved to another master will not return.
	sweepEvery = time.Second

	// nodesQueued bounds the new nodes that wait until the scripts are loaded. If more nodes are new, a node gets a
	// script with the first call of this script.
	nodesQueued = 64
)

// shard is a part of Redis that keeps keys: a server, the master that the sentinels name, or one master of a cluster.
// Each shard has its own lanes and its own breaker. So a shard that hangs delays only the tenants whose keys it has.
type shard struct {
	name    string // in logs and metrics
	breaker *breaker
	lanes   atomic.Pointer[[]stopper] // one element per kind of lanes

	// ahead is how far the server's clock was ahead of this process's clock at the last reply, in µs. It includes the
	// network time from this process to the server.
	ahead atomic.Int64

	lastUsed  atomic.Int64           // µs of the last request; cluster only
	failedKey atomic.Pointer[string] // a key that this master failed to serve; cluster only
}

// stopper is the set of a shard's lanes of one kind.
type stopper interface {
	stop(ctx context.Context) error
}

func (sh *shard) stop(ctx context.Context) error {
	var errs []error
	for _, lanes := range *sh.lanes.Load() {
		errs = append(errs, lanes.stop(ctx))
	}
	return errors.Join(errs...)
}

// newShard creates a shard with lanes of every kind. The caller holds mu, except for New.
func (s *Store) newShard(name string) *shard {
	sh := &shard{name: name}
	sh.breaker = &breaker{onChange: func(open bool, err error) { s.noteShard(sh, open, err) }}
	lanes := make([]stopper, len(s.kinds))
	for i, newLanes := range s.kinds {
		lanes[i] = newLanes(sh)
	}
	sh.lanes.Store(&lanes)
	s.metrics.breakerOpen.WithLabelValues(name).Set(0)
	return sh
}

// addKind adds lanes of one more kind to every shard and returns their index.
func (s *Store) addKind(newLanes func(*shard) stopper) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, newLanes)
	for _, sh := range s.shardsLocked() {
		old := *sh.lanes.Load()
		lanes := append(old[:len(old):len(old)], newLanes(sh))
		sh.lanes.Store(&lanes)
	}
	return len(s.kinds) - 1
}

// shardOf returns the shard that has key.
func (s *Store) shardOf(key string) *shard {
	if s.cluster == nil || !s.mapped.Load() {
		return s.first
	}
	now := s.clock.micros()
	if s.AnyAway() && claimEvery(&s.swept, now, sweepEvery) {
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
	sh.lastUsed.Store(now)
	return sh
}

// master returns the address of the master that has key. It does not block, because the cluster client has the map in
// memory. If the map is out of date, the client follows a redirection, which takes longer but is correct.
func (s *Store) master(key string) (addr string, ok bool) {
	node, err := s.cluster.MasterForKey(s.stopping, key)
	if err != nil {
		return "", false
	}
	return node.Options().Addr, true
}

func (s *Store) add(name string) *shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.byNode[name]; sh != nil {
		return sh
	}
	if s.stopping.Err() != nil {
		return s.first // stopped: first refuses the request, just as a new shard would
	}
	if len(s.byNode) >= shardsMax {
		var unused *shard
		for _, sh := range s.byNode {
			if unused == nil || sh.lastUsed.Load() < unused.lastUsed.Load() {
				unused = sh
			}
		}
		s.drop(unused)
	}
	sh := s.newShard(name)
	if s.AnyAway() { // the shard has the slots of a master that is away
		sh.breaker.closed.Store(s.cfg.Now().UnixNano())
	}
	s.byNode[name] = sh
	return sh
}

// sweep drops the shards whose breaker is open and whose slots have moved to another master.
func (s *Store) sweep() {
	for _, sh := range s.all() {
		key := sh.failedKey.Load()
		if sh == s.first || key == nil || !sh.breaker.isOpen() {
			continue
		}
		if name, ok := s.master(*key); ok && name != sh.name {
			s.mu.Lock()
			s.drop(sh)
			s.mu.Unlock()
		}
	}
	if s.first.breaker.isOpen() { // the masters are known by now, so first is not used any more
		s.first.breaker.reset()
	}
}

// drop removes a shard. The caller holds mu. A request that has just found the shard fails, because the shard's lanes
// have stopped.
func (s *Store) drop(sh *shard) {
	if s.byNode[sh.name] != sh || s.stopping.Err() != nil {
		return
	}
	delete(s.byNode, sh.name)
	s.dropped.Go(func() {
		_ = sh.stop(s.stopping) // queued requests are answered in any case
		sh.breaker.reset()
		s.metrics.breakerOpen.DeleteLabelValues(sh.name)
	})
}

// learn finds the masters of a cluster if they are not known yet. It fails if no node reports the masters.
func (s *Store) learn(ctx context.Context, key string) error {
	if s.cluster == nil || s.mapped.Load() {
		return nil
	}
	if _, err := s.cluster.MasterForKey(ctx, key); err != nil {
		return err
	}
	s.mapped.Store(true)
	return nil
}

// suspect makes the client of a cluster read the map again, because sh did not answer for key.
func (s *Store) suspect(sh *shard, key string) {
	if s.cluster == nil || !s.mapped.Load() {
		return
	}
	sh.failedKey.Store(&key)
	if claimEvery(&s.reloaded, s.clock.micros(), reloadEvery) {
		s.cluster.ReloadState(s.stopping)
	}
}

// claimEvery returns true to at most one caller in each period of length `every`. last is the time of the last true.
func claimEvery(last *atomic.Int64, now int64, every time.Duration) bool {
	before := last.Load()
	return (before == 0 || now-before >= every.Microseconds()) && last.CompareAndSwap(before, now)
}

// all returns the shards that are known now.
func (s *Store) all() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shardsLocked()
}

func (s *Store) shardsLocked() []*shard {
	all := make([]*shard, 1, 1+len(s.byNode))
	all[0] = s.first
	for _, sh := range s.byNode {
		all = append(all, sh)
	}
	return all
}

// loadNewNodes is the goroutine that loads the scripts into new nodes of a cluster. If loading fails, a node gets a
// script with the first call of this script.
func (s *Store) loadNewNodes() {
	defer close(s.ended)
	for {
		select {
		case node := <-s.newNodes:
			s.loadScripts(node)
		case <-s.stopping.Done():
			return
		}
	}
}

func (s *Store) loadScripts(node *redis.Client) {
	ctx, cancel := context.WithTimeout(s.stopping, loadTimeout)
	defer cancel()
	var errs []error
	for _, script := range s.allScripts() {
		errs = append(errs, script.load(ctx, node))
	}
	if err := errors.Join(errs...); err != nil {
		s.cfg.Log.Debug("a new redis node did not take the scripts", "node", node.Options().Addr, "error", err)
	}
}

func (s *Store) allScripts() []*Script {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.scripts
}

// HashTag returns the part of key that decides its slot on a cluster. This is the text in the first braces, or the
// whole key if it has no braces.
func HashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	end := strings.IndexByte(key[open+1:], '}')
	if end < 1 {
		return key
	}
	return key[open+1 : open+1+end]
}
