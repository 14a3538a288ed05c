package claim

import (
	"context"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// localMax bounds the names in a process. This number of names takes about 10 MB.
const localMax = 65_536

// Names stores texts under names. It is safe for concurrent use.
type Names struct {
	store *redisstore.Store // nil: there is no Redis

	mu    sync.Mutex
	local map[string]remembered
}

type remembered struct {
	text  string
	until time.Time
}

// New returns an empty Names. store may be nil.
func New(store *redisstore.Store) *Names {
	return &Names{store: store, local: map[string]remembered{}}
}

// Claim stores text under name for ttl and returns true. If the name is already claimed, it returns false and the
// text that is stored. The name must have a hash tag. A process knows the names that it has claimed itself even if
// Redis has lost them.
func (n *Names) Claim(ctx context.Context, name, text string, ttl time.Duration) (held string, first bool) {
	inRedis := false
	if n.store != nil {
		held, first, err := n.store.PutNew(ctx, name, text, ttl)
		if inRedis = err == nil; inRedis && !first {
			return held, false
		}
	}
	known, first := n.claimHere(name, text, ttl)
	if inRedis && !first { // if this fails, the name keeps the new text
		_ = n.store.Put(ctx, name, known.text, time.Until(known.until))
	}
	return known.text, first
}

// claimHere claims a name in this process. If it is already claimed, claimHere returns what is stored.
func (n *Names) claimHere(name, text string, ttl time.Duration) (held remembered, first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if r, ok := n.local[name]; ok && now.Before(r.until) {
		return r, false
	}
	n.put(name, text, now, ttl)
	return remembered{}, true
}

// Put replaces the text under a name that the caller has claimed.
func (n *Names) Put(ctx context.Context, name, text string, ttl time.Duration) {
	if n.store != nil {
		_ = n.store.Put(ctx, name, text, ttl) // if this fails, this process alone knows it
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(name, text, time.Now(), ttl)
}

// Drop removes a name.
func (n *Names) Drop(ctx context.Context, name string) {
	if n.store != nil {
		_, _ = n.store.Delete(ctx, name) // if this fails, the name expires later
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.local, name)
}

// put stores a name. If there is no room, it first drops all expired names. If no name has expired, it drops any
// name. The caller holds mu.
func (n *Names) put(name, text string, now time.Time, ttl time.Duration) {
	if len(n.local) >= localMax {
		for other, r := range n.local {
			if !now.Before(r.until) {
				delete(n.local, other)
			}
		}
		for other := range n.local {
			if len(n.local) < localMax {
				break
			}
			delete(n.local, other)
		}
	}
	n.local[name] = remembered{text, now.Add(ttl)}
}
