package ratelimit

import (
	"context"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/redisstore"
)

// Reset makes the bucket what it was before it was first charged, in Redis and in this process; of a concurrency rule it forgets
// all leases. It reports whether anything was stored. Other processes must ForgetBucket, or they go on denying from memory for
// up to a second, and from what they knew if Redis goes away. The error matches ErrUnavailable if Redis did not answer within
// the budget: the bucket may have been reset or not, and resetting it again is safe.
func (l *Limiter) Reset(ctx context.Context, name string) (existed bool, err error) {
	if l.stopped.Load() {
		return false, ErrStopped
	}
	if l.store != nil {
		if existed, err = l.store.Delete(ctx, name); err != nil {
			return false, fmt.Errorf("%w: delete a bucket: %w", ErrUnavailable, err)
		}
	}
	known := l.forgetBucket(name)
	return existed || l.store == nil && known, nil
}

// ForgetBucket forgets what this process knows of a bucket that was reset elsewhere.
func (l *Limiter) ForgetBucket(name string) { l.forgetBucket(name) }

func (l *Limiter) forgetBucket(name string) (known bool) {
	l.denials.forget(name)
	return l.levels.forget(name) || l.leases.table.forget(name)
}

// forget drops what is known of a bucket.
func (l *levels) forget(key string) (known bool) {
	shard := l.shard(redisstore.HashTag(key))
	shard.mu.Lock()
	defer shard.mu.Unlock()
	_, known = shard.all[key]
	l.drop(shard, key)
	return known
}

// forget drops the leases of a bucket.
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
