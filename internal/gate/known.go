package gate

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// knownCopies holds the newest copy this process has seen of each of the balances it saw last.
type knownCopies struct {
	mu  sync.Mutex
	lru *simplelru.LRU[balanceKey, *ledger.BalanceCopy]
}

func newKnownCopies(size int) *knownCopies {
	lru, err := simplelru.NewLRU[balanceKey, *ledger.BalanceCopy](size, nil)
	if err != nil {
		panic("gate: " + err.Error()) // only a size below 1, which the constructor has replaced
	}
	return &knownCopies{lru: lru}
}

// put keeps each copy that is newer than what is known. The copies must not change afterwards.
func (k *knownCopies) put(copies []*ledger.BalanceCopy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range copies {
		k.keep(c)
	}
}

// merge returns the newer of copies[i] and what is known of keys[i], and remembers it. copies are what Redis has, nil where
// it has none: of such a balance we cannot tell whether it has moved on elsewhere, unless we are alone.
func (k *knownCopies) merge(keys []balanceKey, copies []*ledger.BalanceCopy, alone bool) []found {
	out := make([]found, len(keys))
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, key := range keys {
		known, ok := k.lru.Get(key)
		out[i] = found{copy: known, shared: alone}
		if copies == nil || copies[i] == nil {
			continue
		}
		out[i].shared = true
		if !ok || newer(copies[i], known) {
			k.lru.Add(key, copies[i])
			out[i].copy = copies[i]
		}
	}
	return out
}

// keep needs mu.
func (k *knownCopies) keep(c *ledger.BalanceCopy) {
	key := keyOf(c)
	if known, ok := k.lru.Get(key); ok && !newer(c, known) {
		return
	}
	k.lru.Add(key, c)
}
