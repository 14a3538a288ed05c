package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// leasesOnMovingSlots moves the slots of a tenant's leases and of a shared rule's leases forward and back, while
// leases are acquired and released. No lease is lost, and the number of held leases never exceeds the capacity.
func leasesOnMovingSlots(t *testing.T, c *testenv.RedisCluster) {
	const capacity, clients, each = 3, 6, 20
	l := patientLimiter(t, patientCluster(t, c), settings{})
	shared := sharedOn(t, c, 1, rule.Spec{Kind: "concurrency", Burst: capacity})
	requests := []LeaseRequest{
		{Tenant: tenantOn(c, 0, 6), Rule: concurrency(t, capacity)}, {Tenant: tenantOn(c, 2, 6), Rule: shared},
	}
	tags := []string{requests[0].Tenant, shared.ID}
	var holding, most, given [2]atomic.Int64
	var sent underWay
	load := new(sync.WaitGroup)
	for range clients {
		load.Go(func() {
			for range each {
				for i, req := range requests {
					sent.RLock()
					lease, err := l.Acquire(context.Background(), req)
					sent.RUnlock()
					if !assert.True(t, err == nil && !lease.Degraded, "acquire: %+v, %v", lease, err) {
						return
					}
					if !lease.Held {
						continue
					}
					n := holding[i].Add(1)
					for old := most[i].Load(); n > old && !most[i].CompareAndSwap(old, n); old = most[i].Load() {
					}
					given[i].Add(1)
					sent.RLock()
					renewed, err := l.Renew(context.Background(), lease.ID, req.Rule, 0)
					sent.RUnlock()
					assert.True(t, err == nil && !renewed.Degraded, "renew: %+v, %v", renewed, err)
					holding[i].Add(-1)
					sent.RLock()
					err = l.Release(context.Background(), lease.ID)
					sent.RUnlock()
					assert.NoError(t, err, "release")
				}
			}
		})
	}
	moves := moveDuring(load, func(at int) {
		for i, tag := range tags {
			c.Move(c.Slot("{"+tag+"}"), c.Masters[i+at], c.Masters[i+1-at])
			sent.wait()
		}
	})
	for i, req := range requests {
		assert.Zero(t, mustCount(t, l, req).InUse, tags[i])
		assert.True(t, most[i].Load() <= capacity && given[i].Load() != 0,
			"%s: at most %d were held at a time and %d given", tags[i], most[i].Load(), given[i].Load())
	}
	assert.True(t, moves >= 2, "%d moves: the test proved nothing", moves)
}
