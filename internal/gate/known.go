package gate

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// knownCopies holds the newest copy this process has seen of each of the balances it saw last.
type knownCopies struct {
	mu  sync.Mutex
	lru *simplelru.LRU[balanceKey, knownCopy]
}

// knownCopy is a copy and, if Redis had it last time, the text that it was read from: a text that has not changed is not read
// again.
type knownCopy struct {
	copy *ledger.BalanceCopy
	text string
}

func newKnownCopies(size int) *knownCopies {
	lru, err := simplelru.NewLRU[balanceKey, knownCopy](size, nil)
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
		key := keyOf(c)
		if known, ok := k.lru.Get(key); !ok || newer(c, known.copy) {
			k.lru.Add(key, knownCopy{copy: c})
		}
	}
}

// merge appends to out the newer of what texts[i] says and what is known of keys[i], and remembers it. texts are what Redis has,
// nil if that is not known; of a balance that it has no copy of we cannot tell whether it has moved on elsewhere, unless we are
// alone.
func (k *knownCopies) merge(out []found, keys []balanceKey, texts []string, alone bool) []found {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, key := range keys {
		text := ""
		if texts != nil {
			text = texts[i]
		}
		known, _ := k.lru.Get(key)
		if text != "" && text != known.text {
			if stored, ok := decodeCopy(key, text); ok {
				if known.copy == nil || newer(stored, known.copy) {
					known.copy = stored
				}
				known.text = text
				k.lru.Add(key, known)
			}
		}
		out = append(out, found{copy: known.copy, shared: alone || text != "" && text == known.text})
	}
	return out
}
