package ratelimit

import (
	"context"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// Reset makes a bucket full and ends its ban, in Redis and in this process. It reports whether the bucket or a ban
// was stored. For a concurrency rule it drops all leases. name is a result of rule.Bucket.Name. Other processes must
// call ForgetBucket. Otherwise they deny from memory for up to a second, and use their old level if Redis goes away.
// If Redis did not answer within the budget, the error matches ErrUnavailable. Then the bucket may have been reset,
// and it is safe to reset it again.
func (l *Limiter) Reset(ctx context.Context, name string) (existed bool, err error) {
	if l.stopped.Load() {
		return false, ErrStopped
	}
	if l.store != nil {
		if existed, err = l.store.Delete(ctx, name, rule.BanKey(name)); err != nil {
			return false, fmt.Errorf("%w: delete a bucket: %w", ErrUnavailable, err)
		}
	}
	known := l.forgetBucket(name)
	return existed || l.store == nil && known, nil
}

// ForgetBucket drops this process's copies of a bucket that another process has reset.
func (l *Limiter) ForgetBucket(name string) { l.forgetBucket(name) }

func (l *Limiter) forgetBucket(name string) (known bool) {
	l.denials.forget(name)
	return l.local.forget(name) || l.leases.table.forget(name)
}

// forget drops the level and the ban of a bucket, and reports whether there was a level or ban.
func (l *localState) forget(key string) (known bool) {
	shard := l.stripe(redisstore.HashTag(key))
	shard.mu.Lock()
	defer shard.mu.Unlock()
	_, known = shard.all[key]
	_, banned := shard.bans[key]
	l.drop(shard, key)
	delete(shard.bans, key)
	return known || banned
}

// forget drops the leases of a bucket and reports whether there were any.
func (t *leaseTable) forget(key string) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[key]
	if b == nil {
		return false
	}
	known = len(b.leases) > 0
	for name := range b.leases {
		t.drop(b, name)
	}
	delete(t.buckets, key)
	return known
}
