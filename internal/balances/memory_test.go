package balances

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// A balance that commits and checks use: its copy, what is announced, and the watch of its key in package redisstore. It was 865 bytes before
// copies were packed.
// Not parallel: it measures the heap.
func TestCache_ABalanceInUse_TakesAtMost360Bytes(t *testing.T) {
	const n, atOnce, most = 20_000, 500, 360
	c := startCache(t, testenv.RedisURL(t), Config{LocalMax: n})
	key := func(i int) ledger.BalanceKey { // texts of its own, as from a request
		return ledger.BalanceKey{Tenant: fmt.Sprintf("tenant-%08d", i), Meter: fmt.Sprint("api_calls", i%3)}
	}
	eventually(t, "copies are held", func() bool { // and connections and scripts are there
		c.Publish([]ledger.BalanceCopy{*copyOf(key(0).Tenant, 1, time.Now())})
		first := []ledger.BalanceKey{{Tenant: key(0).Tenant, Meter: "m"}}
		c.check(t, first[0])
		_, held := c.Held(nil, first, nil)
		return held
	})
	before := heap()
	for i := 0; i < n; i += atOnce {
		commit := make([]ledger.BalanceCopy, atOnce)
		for j := range commit {
			k, now := key(i+j), time.Now()
			commit[j] = *copyOf(k.Tenant, 1, now)
			commit[j].Meter = k.Meter
		}
		c.Publish(commit)
	}
	for range 2 { // the first checks make commits publish, and what is published is not watched until it is read again
		var checks sync.WaitGroup
		for worker := range 100 {
			checks.Go(func() {
				for i := worker; i < n; i += 100 {
					c.check(t, key(i))
				}
			})
		}
		checks.Wait()
		eventually(t, "all is announced and published, and nothing passed over", func() bool {
			c.interest.mu.Lock()
			defer c.interest.mu.Unlock()
			return len(c.interest.queue)+len(c.interest.passed[0])+len(c.interest.passed[1])+c.pending.len() == 0
		})
	}
	each := float64(heap()-before) / n
	if t.Logf("%.0f bytes", each); each > most {
		t.Errorf("%.0f bytes a balance, at most %d", each, most)
	}
	runtime.KeepAlive(c)
}

// check asks Redis for a balance.
func (c *Cache) check(t *testing.T, key ledger.BalanceKey) {
	keys := []ledger.BalanceKey{key}
	reads := c.Reads(keys, nil)
	c.Read(t.Context(), reads)
	c.LookupReads(nil, keys, reads)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
