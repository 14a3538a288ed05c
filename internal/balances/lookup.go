package balances

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/redisstore"
)

// Cached is the newest copy of one balance.
type Cached struct {
	Copy      *ledger.BalanceCopy // nil: there is none
	Confirmed bool                // no other instance has made a newer one, but for the last moment
	Unwanted  bool                // Redis has it, but it may be from before checks of this process asked for the balance
}

// Reads returns the reads of Redis for a check of keys, which have one tenant. It returns nil if Redis cannot help: in local
// mode, or when the caller accepts no copy (maxStale <= 0). A degraded answer then uses the local copies. From then on the commits of all
// instances publish these balances.
func (c *Cache) Reads(keys []ledger.BalanceKey, maxStale *time.Duration) *redisstore.Reads {
	if c.redis == nil || len(keys) == 0 || maxStale != nil && *maxStale <= 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = redisKey(keys[i])
	}
	reads, err := redisstore.NewReads(keys[0].Tenant, names)
	if err != nil { // more items than a check has, or keys of two tenants
		return nil
	}
	if c.interest.ask(keys, time.Now()) {
		c.wakePublisher()
	}
	return reads
}

// Held appends the newest copy of each of keys to out, if this process keeps all of them as they stand in Redis: it has announced no newer
// ones. ok is false if Redis must be asked, or if the caller accepts no copy.
func (c *Cache) Held(out []Cached, keys []ledger.BalanceKey, maxStale *time.Duration) (held []Cached, ok bool) {
	if c.redis == nil || len(keys) == 0 || len(keys) > redisstore.MaxReads || maxStale != nil && *maxStale <= 0 {
		return out, false
	}
	var names [redisstore.MaxReads]string
	for i := range keys {
		names[i] = redisKey(keys[i])
	}
	if !c.redis.store.Watch().Holds(names[:len(keys)]...) {
		return out, false
	}
	from, now := len(out), time.Now()
	if c.interest.ask(keys, now) {
		c.wakePublisher()
	}
	held = c.local.held(out, keys)
	c.interest.confirm(held[from:], keys, now)
	for i := range held[from:] {
		if !held[from+i].Confirmed {
			return out, false
		}
	}
	return held, true
}

// Read reads Redis for a check whose reads went with no other request. If Redis does not answer, reads.Values stays nil and the
// check uses the local copies.
func (c *Cache) Read(ctx context.Context, reads *redisstore.Reads) {
	if reads != nil {
		_ = c.redis.store.Read(ctx, reads)
	}
}

// Lookup appends the newest copy of each of keys to out. texts are the Values of Reads; nil means that Redis was not asked or did
// not answer.
func (c *Cache) Lookup(out []Cached, keys []ledger.BalanceKey, texts []string) []Cached {
	from := len(out)
	out = c.local.merge(out, keys, texts, c.redis == nil)
	if c.redis != nil && texts != nil {
		c.interest.confirm(out[from:], keys, time.Now())
	}
	return out
}

// LookupReads is Lookup with the Values of reads, nil if Redis was not asked. Redis announces when they change: until then the copies are
// held.
func (c *Cache) LookupReads(out []Cached, keys []ledger.BalanceKey, reads *redisstore.Reads) []Cached {
	if reads == nil {
		return c.Lookup(out, keys, nil)
	}
	out = c.Lookup(out, keys, reads.Values)
	c.redis.store.Kept(reads)
	return out
}

// localCopies has the newest copies this process has seen, of the balances it used last.
type localCopies struct {
	mu  sync.Mutex
	lru *simplelru.LRU[ledger.BalanceKey, localCopy]
}

// localCopy is a copy, with the text that Redis had for it last ("": none). An unchanged text is not decoded again.
type localCopy struct {
	copy *ledger.BalanceCopy
	text string
}

func newLocalCopies(size int) *localCopies {
	lru, err := simplelru.NewLRU[ledger.BalanceKey, localCopy](size, nil)
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
func (l *localCopies) merge(out []Cached, keys []ledger.BalanceKey, texts []string, alone bool) []Cached {
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

// held appends to out, for each key, the local copy, confirmed if Redis had a text for it last.
func (l *localCopies) held(out []Cached, keys []ledger.BalanceKey) []Cached {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		newest, _ := l.lru.Get(key)
		out = append(out, Cached{Copy: newest.copy, Confirmed: newest.text != ""})
	}
	return out
}

// redisKey returns the Redis key of a balance's copy. The tenant is the hash tag: its copies share a slot with its limits.
func redisKey(k ledger.BalanceKey) string {
	return "quota:{" + k.Tenant + "}:bal:" + k.Meter + ":" + k.Subject
}

func keyOf(c *ledger.BalanceCopy) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject}
}

// newer reports whether a replaces b: it has the higher seq, or the same seq and was read later, or b had ended when a was read. A read counts
// entries that nobody has written yet, and later there may be fewer of them, because idle periods have none.
func newer(a, b *ledger.BalanceCopy) bool {
	ended := !b.ValidUntil.IsZero() && !a.AsOf.Before(b.ValidUntil)
	return a.Seq > b.Seq || a.Seq == b.Seq && a.AsOf.After(b.AsOf) || ended
}
