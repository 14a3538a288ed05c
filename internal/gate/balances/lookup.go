package balances

import (
	"context"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// Cached is the newest copy of one balance.
type Cached struct {
	Copy      *ledger.BalanceCopy // nil: no copy is known
	Confirmed bool                // no other instance has published a newer copy, except in the last milliseconds
	Unwanted  bool                // Redis has the copy, but it may be from before this process announced the balance
}

// Reads returns the reads of Redis for a check of keys, which belong to one tenant. It returns nil in local mode, and
// if the caller accepts no copy (maxStale <= 0). If such a check needs a degraded answer, it uses the local copies.
// After a call of Reads, the commits of all instances publish these balances.
func (c *Cache) Reads(keys []ledger.BalanceKey, maxStale *time.Duration) *redisstore.Reads {
	if c.redis == nil || len(keys) == 0 || maxStale != nil && *maxStale <= 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = redisKey(keys[i])
	}
	reads, err := redisstore.NewReads(bound.Tag(keys[0].Tenant), names)
	if err != nil { // more keys than a check has items, or keys of two tenants
		return nil
	}
	if c.interest.ask(keys, time.Now()) {
		c.wakePublisher()
	}
	return reads
}

// Held appends the newest copy of each key to out. ok is true if this process holds all these copies as they are in
// Redis: Redis has announced no newer copies. ok is false if Redis must be read, or if the caller accepts no copy.
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

// Read reads copies from Redis for a check that did not send its reads with another request. If Redis does not
// answer, reads.Values stays nil and the check uses the local copies.
func (c *Cache) Read(ctx context.Context, reads *redisstore.Reads) {
	if reads != nil {
		_ = c.redis.store.Read(ctx, reads)
	}
}

// Lookup appends the newest copy of each key to out. texts are the Values of Reads; nil means that Redis was not read
// or did not answer.
func (c *Cache) Lookup(out []Cached, keys []ledger.BalanceKey, texts []string) []Cached {
	from := len(out)
	out = c.local.merge(out, keys, texts, c.redis == nil)
	if c.redis != nil && texts != nil {
		c.interest.confirm(out[from:], keys, time.Now())
	}
	return out
}

// LookupReads calls Lookup with the Values of reads. reads is nil if Redis was not read. After the call this process
// holds the copies, until Redis announces a change of their values.
func (c *Cache) LookupReads(out []Cached, keys []ledger.BalanceKey, reads *redisstore.Reads) []Cached {
	if reads == nil {
		return c.Lookup(out, keys, nil)
	}
	out = c.Lookup(out, keys, reads.Values)
	c.redis.store.Kept(reads)
	return out
}

// redisKey returns the Redis key of a balance's copy. Its hash tag is the tenant, so that the copies of a tenant are
// in the same slot as its limits. Meters and subjects may have colons. Those of the meter are escaped, so the first
// colon that is left ends it.
func redisKey(k ledger.BalanceKey) string {
	meter := k.Meter
	if strings.IndexByte(meter, ':') >= 0 {
		meter = strings.ReplaceAll(meter, ":", "%3A")
	}
	return "quota:{" + bound.Tag(k.Tenant) + "}:bal:" + meter + ":" + k.Subject
}

func keyOf(c *ledger.BalanceCopy) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject}
}
