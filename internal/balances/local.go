package balances

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// localCopies has the newest copies this process has seen, of the balances it used last.
type localCopies struct {
	mu  sync.Mutex
	lru *simplelru.LRU[Key, localCopy]
}

// localCopy is a copy, with the text that Redis had for it last ("": none). An unchanged text is not decoded again.
type localCopy struct {
	copy *ledger.BalanceCopy
	text string
}

func newLocalCopies(size int) *localCopies {
	lru, err := simplelru.NewLRU[Key, localCopy](size, nil)
	if err != nil {
		panic("balances: " + err.Error()) // only for a size below 1, and New has replaced that
	}
	return &localCopies{lru: lru}
}

// put keeps each copy that is newer than the one it has. The caller must not change them afterwards.
func (l *localCopies) put(copies []*ledger.BalanceCopy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range copies {
		key := keyOf(c)
		if old, ok := l.lru.Get(key); !ok || newer(c, old.copy) {
			l.lru.Add(key, localCopy{copy: c})
		}
	}
}

// merge appends to out, for each key, the newer of the local copy and the one in texts, and keeps it. texts are the values in
// Redis, nil if they are unknown. A copy is confirmed if Redis has one of the same balance, or if this process is alone: a
// balance that Redis has lost may have changed in another instance.
func (l *localCopies) merge(out []Cached, keys []Key, texts []string, alone bool) []Cached {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range keys {
		text := ""
		if texts != nil {
			text = texts[i]
		}
		newest, _ := l.lru.Get(key)
		if text != "" && text != newest.text {
			if shared, ok := decodeCopy(key, text); ok {
				if newest.copy == nil || newer(shared, newest.copy) {
					newest.copy = shared
				}
				newest.text = text
				l.lru.Add(key, newest)
			}
		}
		out = append(out, Cached{Copy: newest.copy, Confirmed: alone || text != "" && text == newest.text})
	}
	return out
}
