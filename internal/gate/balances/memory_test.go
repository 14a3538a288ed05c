package balances

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// A balance that commits and checks use has a copy, an announcement, and a watch of its key in package redisstore. If
// the copy is not packed, they take 865 bytes. The test is not parallel, because it measures the heap.
func TestCache_ABalanceInUse_TakesAtMost360Bytes(t *testing.T) {
	const n, atOnce, most = 10_000, 500, 360
	c := startCache(t, testenv.RedisURL(t), Config{LocalMax: n})
	key := func(i int) ledger.BalanceKey { // a new string each time, as in a request
		return ledger.BalanceKey{Tenant: fmt.Sprintf("tenant-%08d", i), Meter: fmt.Sprint("api_calls", i%3)}
	}
	testenv.Eventually(t, func() bool { // afterwards connections and scripts exist
		c.Publish([]ledger.BalanceCopy{*copyOf(key(0).Tenant, 1, time.Now())})
		first := []ledger.BalanceKey{{Tenant: key(0).Tenant, Meter: "m"}}
		c.check(t, first[0])
		_, held := c.Held(nil, first, nil)
		return held
	}, "copies are held")
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
	for range 2 { // the first checks make commits publish; the second read makes Redis watch the copies
		testenv.Together(100, func(worker int) {
			for i := worker; i < n; i += 100 {
				c.check(t, key(i))
			}
		})
		testenv.Eventually(t, func() bool {
			c.interest.mu.Lock()
			defer c.interest.mu.Unlock()
			return len(c.interest.queue)+len(c.interest.passed[0])+len(c.interest.passed[1])+c.pending.len() == 0
		}, "all is announced and published, and nothing passed over")
	}
	each := float64(heap()-before) / n
	t.Logf("%.0f bytes", each)
	assert.True(t, each <= most, "%.0f bytes a balance, at most %d", each, most)
	runtime.KeepAlive(c)
}

// TestCopy_InRedis_TakesAtMost240Bytes measures the memory of a copy in Redis with all overhead, for a tenant's
// balance of a typical meter.
func TestCopy_InRedis_TakesAtMost240Bytes(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a Redis with 12,500 keys")
	}
	const atOnce, most = 4 * redisCallMax, 240
	n := 12_500
	if text := os.Getenv("QUOTASVC_REDIS_MEMORY_TENANTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1000 || n > 100_000_000 {
			t.Fatalf("QUOTASVC_REDIS_MEMORY_TENANTS is %q, not from 1000 to 100000000", text)
		}
	}
	server := testenv.RedisPrivate(t)
	options, ctx := server.Options(), t.Context()
	const patience = testenv.Patience
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	client := redis.NewClient(options)
	store := redisstore.New(client, redisstore.Config{})
	t.Cleanup(func() { _ = store.Stop(context.WithoutCancel(ctx)); _ = client.Close() })
	copies := newRedisCopies(store, 24*time.Hour)
	fill := func(from, until int) {
		for ; from < until; from += atOnce {
			batch := make([]*ledger.BalanceCopy, 0, atOnce)
			for i := from; i < min(from+atOnce, until); i++ {
				c := copyOf(fmt.Sprintf("t-%010d", i), int64(1+i%1000), time.Now())
				c.Meter = "api_calls"
				batch = append(batch, c)
			}
			failed, refused, err := copies.put(ctx, batch)
			require.True(t, err == nil && refused <= 0, "%v, %v, %v", len(failed), refused, err)
		}
	}
	fill(0, atOnce) // afterwards connections and scripts exist
	before, began := redisMemory(t, client), time.Now()
	fill(atOnce, atOnce+n)
	took := time.Since(began)
	measure := func() float64 { return float64(redisMemory(t, client)-before) / float64(n) }
	each := 0.0
	testenv.Eventually(t, func() bool { // Redis grows its table in small steps
		each = measure()
		return each <= most
	}, "at most ", most, " bytes a copy")
	encoding := client.ObjectEncoding(ctx, client.RandomKey(ctx).Val()).Val()
	t.Logf("| %-40s | %8d | %5.1f bytes | %-8s | %7.1f s | %8.0f/s |", "copy of a balance", n, each, encoding, took.Seconds(), float64(n)/took.Seconds())
	assert.True(t, each >= 100, "%.1f bytes a copy prove nothing", each)
}

func redisMemory(t *testing.T, client *redis.Client) int64 {
	t.Helper()
	n, err := strconv.ParseInt(client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"), 10, 64)
	require.NoError(t, err)
	return n
}

// check reads a balance from Redis as a check does.
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
